// SearchCost: what the ways to find the rows of a branch cost in one region, and which is cheaper.
// The unit is one index entry read in order.
//
// The jar has the same class with the same numbers; tests/golden/searches.txt holds both to them.
//
// Threads: const. Everything given to it outlives it.
#pragma once

#include <cstdint>

#include "tamis/rocks/branch_streams.h"
#include "tamis/rocks/region_snapshot.h"
#include "tamis/rocks/server_context.h"
#include "tamis/table/schema.h"

namespace tamis {

class SearchCost {
 public:
  static constexpr uint64_t kRow = 8;         // a row read by its key
  static constexpr uint64_t kScannedRow = 2;  // a row read in order
  // An entry of the stream with what it leads to: its row is read, unless the entry gives it.
  static uint64_t EntryCost(const BranchStreams::Stream& stream) {
    return stream.rows.has_value() ? 1 : 1 + kRow;
  }
  // A search for fewer rows than this gains nothing from a scan.
  static constexpr uint64_t kLeastToScan = 256;
  static constexpr uint64_t kFew = 32;     // entries that cost less than counting rows
  static constexpr uint64_t kSample = 32;  // rows looked at before a stream is joined

  SearchCost(const ServerContext& context, const RegionSnapshot& snapshot,
             const TableSchema& schema, uint64_t max_rows)
      : context_(context), snapshot_(snapshot), schema_(schema), max_rows_(max_rows) {}

  // Whether a scan is considered at all where an index could drive.
  bool MayScan() const { return max_rows_ >= kLeastToScan && context_.options.streams_by_cost; }
  // Entries that may be read ahead to see which stream has the fewest: as many as cost what reading
  // the wanted rows does, and no more than make a scan cheaper.
  // `entry_cost` is the least of all streams.
  uint64_t Probe(bool may_scan, uint64_t entry_cost) const;
  // Whether reading all rows of the range costs less than what the driving stream finds.
  bool IsScanCheaper(BranchStreams* streams, BranchStreams::Stream* driving) const;
  // Most entries of the stream that a join may read, of which a share `rows_in` of the rows looked
  // at has one, while the driving stream has `left` entries to come; 0: a join does not pay.
  uint64_t MostToJoin(BranchStreams* streams, BranchStreams::Stream* stream, double share,
                      double left) const;

  // Where the rows are wanted in the order of a walked stream: another stream, of so few entries
  // that sorting their rows costs less than the walk to the wanted ones; nullptr: there is none.
  BranchStreams::Stream* StreamToSort(BranchStreams* streams, BranchStreams::Stream* walked) const;
  // The same of the rows of the searched range, where that is a part of the region.
  bool IsSortOfRowsCheaper(BranchStreams* streams, BranchStreams::Stream* walked) const;

 private:
  // The number of rows that cost at least as much to sort as the walk to the wanted ones; 0: not
  // known.
  uint64_t MostToSort(BranchStreams* streams, BranchStreams::Stream* walked) const;

  const ServerContext& context_;
  const RegionSnapshot& snapshot_;
  const TableSchema& schema_;
  const uint64_t max_rows_;
};

}  // namespace tamis
