// SearchAccount: what a search did in which regions, from which its Explain is made.
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tamis/cluster/cluster.pb.h"
#include "tamis/query/explain.h"
#include "tamis/query/plan.h"
#include "tamis/query/query_context.h"
#include "tamis/query/result_rows.h"
#include "tamis/routing/global_index.h"
#include "tamis/table/schema.h"

namespace tamis {

class SearchAccount {
 public:
  // Texts, times and counters that need no more than to be added are set by the search itself.
  Explain explain;

  // Keys that the filters exclude, and that were never asked for.
  void NoteExcluded(const KeyRanges& keys) { excluded_.Add(keys); }
  // A page of a region. `is_first_page`: a region is one, however many pages it answers with.
  void NoteCounters(uint64_t region_id, const pb::SearchCounters& counters, bool is_first_page);
  // Rows, or none, that a region gave.
  void NoteRows(const std::string& server, const std::string& region_start, const ResultRows& read);
  // Groups of a region came in several pages. False: that is known already.
  bool NoteInParts(uint64_t region_id) { return in_parts_.insert(region_id).second; }
  // Another search was a part of this one.
  void AddPart(const SearchAccount& part);

  // Makes the rest of `explain`; walks over all regions. Lists each region's outcome if the table
  // has at most `explained_regions` regions.
  void Conclude(const QueryContext& context, const TableSchema& schema, const Plan& plan,
                const std::vector<RegionInfo>& regions, size_t explained_regions,
                uint64_t rows_returned);

 private:
  // `reasons` is null where no filter was asked.
  void ConcludeRegions(const Plan& plan, const std::vector<RegionInfo>& regions,
                       const GlobalIndex::Reasons* reasons, size_t explained_regions);

  std::unordered_map<std::string, uint64_t> rows_of_region_;  // by start key, of regions asked
  KeyRanges excluded_;
  std::set<std::string> servers_asked_;
  std::set<uint64_t> scanned_;
  std::set<uint64_t> in_parts_;
  std::map<uint32_t, pb::IndexUse> uses_;  // by index
};

}  // namespace tamis
