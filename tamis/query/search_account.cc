#include "tamis/query/search_account.h"

#include <algorithm>
#include <string_view>

namespace tamis {

void SearchAccount::NoteCounters(uint64_t region_id, const pb::SearchCounters& counters,
                                 bool is_first_page) {
  explain.index_seeks += counters.index_seeks();
  explain.entries_read += counters.entries_read();
  explain.rows_read += counters.rows_read();
  explain.rows_from_entries += counters.rows_from_entries();
  for (const pb::IndexUse& use : counters.uses()) {
    pb::IndexUse& sum = uses_[use.index_id()];
    sum.set_led(sum.led() + (is_first_page ? use.led() : 0));
    sum.set_joined(sum.joined() + (is_first_page ? use.joined() : 0));
    sum.set_entries_expected(sum.entries_expected() + use.entries_expected());
    sum.set_entries_read(sum.entries_read() + use.entries_read());
    explain.entries_expected += use.entries_expected();
  }
  explain.cells_undecodable += counters.cells_undecodable();
  explain.rows_unparsed += counters.rows_unparsed();
  if (counters.scanned_regions() > 0) scanned_.insert(region_id);
}

void SearchAccount::NoteRows(const std::string& server, const std::string& region_start,
                             const ResultRows& read) {
  servers_asked_.insert(server);
  rows_of_region_[region_start] += read.rows_found;
  explain.groups += read.groups;
  explain.groups_with_totals += read.groups_with_totals;
  explain.rows_unparsed += read.rows_unparsed;
}

void SearchAccount::AddPart(const SearchAccount& part) {
  explain.AddCounts(part.explain);
  servers_asked_.insert(part.servers_asked_.begin(), part.servers_asked_.end());
}

void SearchAccount::Conclude(const QueryContext& context, const TableSchema& schema,
                             const Plan& plan, const std::vector<RegionInfo>& regions,
                             size_t explained_regions, uint64_t rows_returned) {
  explain.regions_total = regions.size();
  explain.regions_excluded_by_key = 0;
  std::set<std::string> servers;
  for (const RegionInfo& region : regions) {
    servers.insert(region.server);
    if (!plan.keys.Overlaps({region.start, region.end})) ++explain.regions_excluded_by_key;
  }
  explain.servers_total = servers.size();
  explain.rows_returned = rows_returned;
  explain.regions_asked = rows_of_region_.size();
  explain.servers_asked = servers_asked_.size();
  explain.regions_scanned = scanned_.size();
  explain.regions_in_parts = in_parts_.size();
  explain.uses.clear();
  for (const auto& [index_id, use] : uses_) {
    const IndexSpec* index = schema.FindIndex(index_id);
    explain.uses.push_back({.index = index == nullptr ? std::string(Explain::kRows) : index->name,
                            .led = use.led(),
                            .joined = use.joined(),
                            .entries_expected = use.entries_expected(),
                            .entries_read = use.entries_read()});
  }
  if (plan.routing.kind == RoutingTerm::Kind::kAll)
    return ConcludeRegions(plan, regions, nullptr, explained_regions);
  const GlobalIndex::Reasons reasons = context.global->Explain(
      schema.id, plan.keys, plan.routing, excluded_, context.executor->Now(),
      /*each_excluded=*/regions.size() <= explained_regions);
  ConcludeRegions(plan, regions, &reasons, explained_regions);
  explain.regions_excluded_by_filter = reasons.excluded_by_filter;
  explain.regions_excluded_by_cells = reasons.excluded_by_cells;
  explain.regions_excluded_by_range = reasons.excluded_by_range;
  explain.regions_unknown = reasons.unknown;
  const std::set<std::string> candidates(reasons.candidates.begin(), reasons.candidates.end());
  explain.false_positive_regions =
      static_cast<uint64_t>(std::ranges::count_if(rows_of_region_, [&](const auto& region) {
        return region.second == 0 && candidates.contains(region.first);
      }));
}

// `reasons` is null where no filter was asked.
void SearchAccount::ConcludeRegions(const Plan& plan, const std::vector<RegionInfo>& regions,
                                    const GlobalIndex::Reasons* reasons, size_t explained_regions) {
  explain.regions.clear();
  if (regions.size() > explained_regions) return;
  using Outcome = Explain::Outcome;
  std::unordered_map<std::string_view, Outcome> decided;  // by start key
  if (reasons != nullptr) {
    for (const std::string& start : reasons->candidates) decided[start] = Outcome::kInVain;
    for (const auto& [start, reason] : reasons->excluded) {
      decided[start] = reason == GlobalIndex::Reason::kRange   ? Outcome::kByRange
                       : reason == GlobalIndex::Reason::kCells ? Outcome::kByCells
                                                               : Outcome::kByFilter;
    }
  }
  const Outcome undecided = reasons == nullptr ? Outcome::kInVain : Outcome::kUnknown;
  for (const RegionInfo& region : regions) {
    const auto found = decided.find(region.start);
    const bool is_excluded = found != decided.end() && found->second != Outcome::kInVain;
    const auto rows = rows_of_region_.find(region.start);
    Outcome outcome = is_excluded ? found->second : Outcome::kNotAsked;
    if (!plan.keys.Overlaps({region.start, region.end})) outcome = Outcome::kByKey;
    if (rows != rows_of_region_.end()) {
      outcome = rows->second > 0         ? Outcome::kHit
                : found != decided.end() ? Outcome::kInVain
                                         : undecided;
    }
    explain.regions.push_back({.id = region.id.number(), .outcome = outcome});
  }
}

}  // namespace tamis
