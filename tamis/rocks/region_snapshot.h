// RegionSnapshot: one region as one search sees it: the range of row keys that is searched, a
// snapshot of the store, and the indexes whose entries are all in that snapshot.
//
// Threads: exclusive access. The context and the region outlive it.
#pragma once

#include <rocksdb/db.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/rocks/region.h"
#include "tamis/rocks/row_cursor.h"
#include "tamis/rocks/server_context.h"
#include "tamis/table/schema.h"

namespace tamis {

class RegionSnapshot {
 public:
  // The part of the region that lies in `asked`.
  RegionSnapshot(const ServerContext& context, const Region& region, const KeyRange& asked);

  // kUnavailable when the region is not open here any more. Before that nothing can be read.
  Status Take();
  // Whether all that was read still counts: the region is open here at the same epoch, and none of
  // the indexes used was dropped. REQUIRES: the snapshot was taken.
  bool IsCurrent() const;

  const Region& region() const { return region_; }
  const std::string& start() const { return start_; }
  const std::string& end() const { return end_; }  // exclusive; empty: no end
  // The first row key of the searched range behind `last`, up to which all is done; empty: nothing
  // is.
  std::string StartAfter(const std::string& last) const {
    return last.empty() ? start_ : std::max(start_, last + '\0');
  }
  void CutOffAt(std::string end) { end_ = std::move(end); }
  // Whether the searched range is all of the region.
  bool IsWhole() const { return start_ <= region_.info().start && end_ == region_.info().end; }
  // Whether the row key is outside of the searched range.
  bool IsOutside(std::string_view key) const {
    return key < start_ || (!end_.empty() && key >= end_);
  }

  bool IsComplete(uint32_t index_id) const { return complete_.contains(index_id); }
  // Notes that the search reads entries of the index.
  void NoteUse(uint32_t index_id) { used_.insert(index_id); }

  const rocksdb::ReadOptions& read_options() const { return read_options_; }
  // From `start` to the end of the searched range.
  RowCursor RowsFrom(const std::string& start) const {
    return RowCursor(*context_.store, region_.info().table_id, {start, end_}, read_options_);
  }
  // From the last row of the searched range before `end`, an empty one is none, for Prev().
  RowCursor RowsBefore(const std::string& end) const {
    const bool within = !end.empty() && (end_.empty() || end < end_);
    return RowCursor(*context_.store, region_.info().table_id, {start_, within ? end : end_},
                     read_options_, RowCursor::From::kLast);
  }
  // The stored bytes of each row, one status each.
  std::vector<rocksdb::Status> ReadRows(const std::vector<std::string>& keys,
                                        std::vector<std::string>* values) const;

  // Rows of the searched range; `most` when there are as many or more, or when they cannot be read.
  uint64_t CountRows(uint64_t most) const;
  // The number of rows of the whole region, as the filters of its indexes know it.
  std::optional<uint64_t> RowsOfRegion(const TableSchema& schema) const;
  // Estimated share of the region's bytes that lies in the searched range; nullopt: unknown.
  std::optional<double> ShareOfRegion() const;

 private:
  struct ReleaseSnapshot {
    rocksdb::DB* db;
    void operator()(const rocksdb::Snapshot* snapshot) const { db->ReleaseSnapshot(snapshot); }
  };

  const ServerContext& context_;
  const Region& region_;
  const std::string start_;
  std::string end_;
  std::unique_ptr<const rocksdb::Snapshot, ReleaseSnapshot> snapshot_;
  rocksdb::ReadOptions read_options_;
  std::set<uint32_t> complete_;
  std::set<uint32_t> used_;
};

}  // namespace tamis
