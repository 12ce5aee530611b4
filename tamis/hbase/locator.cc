#include "tamis/hbase/locator.h"

#include <algorithm>

#include "tamis/hbase/printable.h"
#include "tamis/hbase/retry_pauses.h"
#include "tamis/hbase/scanner.h"
#include "tamis/hbase/session.h"

namespace tamis::hbase {
namespace {

// A doubt is forgotten this long after its pause: the next look-up does not wait.
constexpr std::chrono::seconds kForgotten(10);
constexpr size_t kMostDoubts = 10'000;
// Rows of hbase:meta read by one look-up: parents of a split may come before the wanted row.
constexpr uint64_t kLookupRows = 5;

bool Fits(const std::string& start, const std::string& end, std::string_view row, bool before) {
  if (!before) return row >= start && (end.empty() || row < end);
  return row.empty() ? end.empty() : start < row && (end.empty() || row <= end);
}

// The entry with the largest start key that can hold the row.
template <class Map>
typename Map::const_iterator Candidate(const Map& map, std::string_view row, bool before) {
  auto next = before ? (row.empty() ? map.end() : map.lower_bound(row)) : map.upper_bound(row);
  return next == map.begin() ? map.end() : std::prev(next);
}

}  // namespace

Locator::Table::Table(Session& session) : waiters(session.io, session.timers) {}

Locator::Table& Locator::TableOf(const std::string& name) {
  auto& table = tables_[name];
  if (!table) table = std::make_unique<Table>(session_);
  return *table;
}

RegionPtr Locator::Known(const Table& table, std::string_view row, bool before) const {
  const auto found = Candidate(table.regions, row, before);
  if (found == table.regions.end() || !Fits(found->first, found->second->end, row, before)) {
    return {};
  }
  return found->second;
}

Deadline Locator::NotBefore(const Table& table, std::string_view row, bool before) const {
  const auto found = Candidate(table.doubts, row, before);
  if (found == table.doubts.end() || !Fits(found->first, found->second.end, row, before)) {
    return Deadline::min();
  }
  return found->second.not_before;
}

void Locator::Insert(Table& table, RegionPtr region) {
  // Entries that overlap the new region are older.
  auto begin = table.regions.upper_bound(region->start);
  if (begin != table.regions.begin()) {
    const auto before = std::prev(begin);
    if (before->second->end.empty() || before->second->end > region->start) begin = before;
  }
  const auto end =
      region->end.empty() ? table.regions.end() : table.regions.lower_bound(region->end);
  table.regions.erase(begin, end);
  std::string start = region->start;
  table.regions.insert_or_assign(std::move(start), std::move(region));
}

void Locator::Doubted(Table& table, const Region& region) {
  const Deadline now = Clock::now();
  if (table.doubts.size() >= kMostDoubts) {
    std::erase_if(table.doubts, [&](const auto& one) { return one.second.not_before < now; });
  }
  Doubt& doubt = table.doubts[region.start];
  const bool again = doubt.failures > 0 && doubt.server == region.server &&
                     doubt.open_sequence == region.open_sequence &&
                     now < doubt.not_before + kForgotten;
  // A region without a server comes from a look-up of a moment ago, so it starts with a pause.
  if (!again) doubt.failures = region.server.address.host.empty() ? 1 : 0;
  doubt.end = region.end;
  doubt.server = region.server;
  doubt.open_sequence = region.open_sequence;
  doubt.not_before =
      doubt.failures == 0 ? now : now + kRetryPauses.At(doubt.failures - 1, session_.random);
  ++doubt.failures;
}

void Locator::Suspect(const RegionPtr& region) {
  Table& table = TableOf(region->table);
  const auto found = table.regions.find(region->start);
  // another caller has dropped or replaced the entry
  if (found == table.regions.end() || found->second != region) return;
  table.regions.erase(found);
  Doubted(table, *region);
  if (region->table == kMetaTable) session_.registry.TryNext();
}

void Locator::Refused(const RegionPtr& region, const Exception& exception) {
  // The hint's number is that of the closing. It is never below the opening's number, and equal to
  // it if nothing was written in between.
  if (!exception.moved || exception.moved->sequence < region->open_sequence) {
    return Suspect(region);
  }
  Table& table = TableOf(region->table);
  const auto found = table.regions.find(region->start);
  if (found == table.regions.end() || found->second != region) return;
  ++counts_.hints_taken;
  auto moved = std::make_shared<Region>(*region);
  moved->server = exception.moved->server;
  moved->open_sequence = exception.moved->sequence;
  found->second = std::move(moved);
}

RegionPtr Locator::Known(std::string_view table, std::string_view row) const {
  const auto found = tables_.find(table);
  if (found == tables_.end() || session_.closed()) return {};
  return Known(*found->second, row, false);
}

Task<Result<RegionPtr>> Locator::Holding(std::string table, std::string row, Deadline deadline) {
  return Find(std::move(table), std::move(row), false, deadline);
}

Task<Result<RegionPtr>> Locator::Before(std::string table, std::string row, Deadline deadline) {
  return Find(std::move(table), std::move(row), true, deadline);
}

Task<Result<RegionPtr>> Locator::Find(std::string name, std::string row, bool before,
                                      Deadline deadline) {
  Table& table = TableOf(name);
  Status last = Unavailable("no time left");
  while (!session_.closed()) {
    if (RegionPtr known = Known(table, row, before)) co_return known;
    if (Clock::now() >= deadline) {
      co_return last.WithContext("cannot find the region of row " + Printable(row) + " of table " +
                                 Printable(name));
    }
    if (table.refreshing) {
      co_await table.waiters.Wait(deadline);
      continue;
    }
    const Deadline not_before = NotBefore(table, row, before);
    if (Clock::now() < not_before) {
      co_await session_.SleepUntil(std::min(not_before, deadline));
      continue;
    }
    table.refreshing = true;
    Status status = co_await Refresh(table, name, row, before, deadline);
    table.refreshing = false;
    table.waiters.WakeAll();
    if (status.ok()) continue;
    if (!IsTransient(status.code())) co_return status;
    last = std::move(status);
  }
  co_return Cancelled("the client was closed");
}

Task<Status> Locator::Refresh(Table& table, std::string name, std::string row, bool before,
                              Deadline deadline) {
  if (name == kMetaTable) {
    ++counts_.registry_lookups;
    auto server = co_await session_.registry.MetaServer(deadline);
    if (!server.ok()) {
      Doubted(table, MetaRegion({}));
      co_return server.status();
    }
    Insert(table, std::make_shared<Region>(MetaRegion(*server)));
    co_return Status();
  }
  ++counts_.meta_lookups;
  Scan scan;
  scan.reversed = true;
  scan.start_row = !before       ? MetaKeyOfRow(name, row)
                   : row.empty() ? MetaKeyEnd(name)
                                 : MetaKeyBefore(name, row);
  scan.stop_row = MetaKeyFirst(name);
  scan.include_stop = true;
  scan.columns = {{"info", {}}};
  scan.limit = kLookupRows;
  Scanner scanner(session_, std::string(kMetaTable), std::move(scan));
  bool any = false;
  for (uint64_t rows = 0; rows < kLookupRows;) {
    auto batch = co_await scanner.Next(deadline);
    if (!batch.ok()) co_return batch.status();
    if (batch->empty()) break;
    for (const Row& meta_row : *batch) {
      ++rows;
      any = true;
      auto parsed = ParseMetaRow(meta_row);
      if (!parsed.ok()) co_return parsed.status();
      if (!*parsed || (*parsed)->region.table != name) continue;
      MetaRow& found = **parsed;
      if (!Fits(found.region.start, found.region.end, row, before)) continue;
      if (found.open) {
        Insert(table, std::make_shared<Region>(std::move(found.region)));
        co_return Status();
      }
      const std::string region_name = found.region.name;
      found.region.server = {};
      Doubted(table, found.region);
      co_return Unavailable("region " + Printable(region_name) + " is open nowhere");
    }
  }
  if (!any) co_return NotFound("there is no table " + Printable(name));
  // The look-up may have read between two batches of hbase:meta, as during a split. Otherwise
  // hbase:meta has a hole, which an operator must repair.
  Region hole;
  hole.start = row;
  hole.end = row + '\0';
  Doubted(table, hole);
  co_return Unavailable("hbase:meta has no region for row " + Printable(row) + " of table " +
                        Printable(name));
}

Task<Result<std::vector<RegionPtr>>> Locator::All(std::string name, Deadline deadline) {
  ++counts_.meta_table_scans;
  auto regions = co_await ReadRegions(name, MetaKeyFirst(name), MetaKeyEnd(name), deadline);
  if (regions.ok() && regions->empty()) co_return NotFound("there is no table " + Printable(name));
  co_return regions;
}

Task<Result<std::vector<RegionPtr>>> Locator::Between(std::string name, std::string start,
                                                      std::string end, Deadline deadline) {
  ++counts_.meta_lookups;
  // Begin with the region that holds `start`; without one, with the position where it would be.
  std::string from_key = MetaKeyBefore(name, start);
  Scan scan;
  scan.reversed = true;
  scan.start_row = MetaKeyOfRow(name, start);
  scan.stop_row = MetaKeyFirst(name);
  scan.include_stop = true;
  scan.columns = {{"info", "regioninfo"}};
  scan.limit = kLookupRows;
  Scanner scanner(session_, std::string(kMetaTable), std::move(scan));
  bool found = false;
  for (uint64_t rows = 0; rows < kLookupRows && !found;) {
    auto batch = co_await scanner.Next(deadline);
    if (!batch.ok()) co_return batch.status();
    if (batch->empty()) break;
    for (const Row& meta_row : *batch) {
      ++rows;
      auto parsed = ParseMetaRow(meta_row);
      if (!parsed.ok()) co_return parsed.status();
      if (found || !*parsed || (*parsed)->region.table != name) continue;
      const Region& region = (*parsed)->region;
      found = Fits(region.start, region.end, start, false);
      if (found) from_key = MetaKeyBefore(name, region.start);
    }
  }
  std::string to_key = end.empty() ? MetaKeyEnd(name) : MetaKeyBefore(name, end);
  co_return co_await ReadRegions(std::move(name), std::move(from_key), std::move(to_key), deadline);
}

Task<Result<std::vector<RegionPtr>>> Locator::ReadRegions(std::string name, std::string from_key,
                                                          std::string to_key, Deadline deadline) {
  Table& table = TableOf(name);
  Scan scan;
  scan.start_row = std::move(from_key);
  scan.stop_row = std::move(to_key);
  scan.columns = {{"info", {}}};
  Scanner scanner(session_, std::string(kMetaTable), std::move(scan));
  std::vector<RegionPtr> regions;
  while (true) {
    auto batch = co_await scanner.Next(deadline);
    if (!batch.ok()) co_return batch.status();
    if (batch->empty()) break;
    for (const Row& meta_row : *batch) {
      auto parsed = ParseMetaRow(meta_row);
      if (!parsed.ok()) co_return parsed.status();
      if (!*parsed || (*parsed)->region.table != name) continue;
      MetaRow& found = **parsed;
      if (!found.open) found.region.server = {};
      regions.push_back(std::make_shared<Region>(std::move(found.region)));
    }
  }
  // Rows of hbase:meta come in the order of start keys. Entries that another coroutine inserted
  // meanwhile are just as recent, so they may be replaced.
  for (const RegionPtr& region : regions) {
    if (!region->server.address.host.empty()) Insert(table, region);
  }
  co_return regions;
}

}  // namespace tamis::hbase
