#include "tamis/server/store_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>

#include "tamis/base/answers.h"
#include "tamis/base/exception_status.h"
#include "tamis/cluster/server_state_name.h"
#include "tamis/table/key_format.h"

namespace tamis::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr Duration kViewTime = std::chrono::seconds(10);
constexpr size_t kRegionsOfEvent = 1000;

std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Hexadecimal(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[c & 15];
  }
  return text;
}

Json Names(const TableSchema& table, const std::vector<uint32_t>& positions) {
  Json names = Json::array();
  for (const uint32_t position : positions) names.push_back(table.columns[position].name);
  return names;
}

Json TablesJson(const std::vector<TableSchema>& tables) {
  Json list = Json::array();
  for (const TableSchema& table : tables) {
    Json columns = Json::array();
    for (const Column& column : table.columns) {
      if (!column.is_dropped()) columns.push_back(column.name);
    }
    Json indexes = Json::array();
    for (const IndexSpec& index : table.indexes) indexes.push_back(index.name);
    list.push_back({{"name", table.name},
                    {"columns", std::move(columns)},
                    {"key", Names(table, table.key)},
                    {"indexes", std::move(indexes)}});
  }
  return {{"tables", std::move(list)}};
}

Json ServersJson(const ClusterStatus& status) {
  Json list = Json::array();
  for (const ServerStatus& server : status.servers) {
    uint64_t behind = 0;
    for (const CoordinatorStatus& coordinator : server.coordinators) {
      behind = std::max(behind, coordinator.events_behind);
    }
    list.push_back({{"name", server.info.name},
                    {"state", StateName(server.info.state)},
                    {"regions", server.info.regions},
                    {"filter_bytes", server.filter_bytes},
                    {"feed_events", server.feed_events},
                    {"events_behind", behind},
                    {"coordinators", server.coordinators.size()},
                    {"searches", server.searches},
                    {"regions_searched", server.regions_searched}});
  }
  return {{"servers", std::move(list)}};
}

// Notes the event if it differs from the one before.
void Replace(std::string* before, std::string now, std::string* events) {
  if (*before == now) return;
  *events += now;
  *before = std::move(now);
}

}  // namespace

std::string Event(std::string_view name, std::string_view json) {
  std::string event = "event: ";
  return event.append(name).append("\ndata: ").append(json).append("\n\n");
}

template <class T, class Call>
Result<T> StoreView::Ask(Call call) const {
  Executor* const executor = &store_->engine().executor();
  return AwaitResult<T>(executor,
                        {.deadline = executor->Now() + kViewTime, .cancelled = cancelled_}, call);
}

std::string StoreView::Look() {
  std::string events;
  const Status status = WithoutExceptions([&] { return LookAt(&events); });
  const Json detail = status.ok() ? Json() : Json(status.message());
  if (!status.ok() || !trouble_.empty()) {
    Replace(&trouble_, Event("trouble", Text({{"detail", detail}})), &events);
  }
  return events;
}

Status StoreView::LookAt(std::string* events) {
  TAMIS_ASSIGN_OR_RETURN(const auto tables, Ask<std::vector<TableSchema>>([&](auto done) {
                           store_->engine().cluster().ListTables(std::move(done));
                         }));
  Replace(&tables_, Event("tables", Text(TablesJson(tables))), events);
  size_t room = max_regions_;
  std::set<std::string> seen;
  for (const TableSchema& table : tables) {
    Result<Regions> regions = RegionsOf(table, room);
    if (regions.status().code() == StatusCode::kNotFound) continue;  // dropped since
    TAMIS_RETURN_IF_ERROR(regions.status());
    room -= regions->size();
    // An event is not repeated, also when a later step fails.
    Regions& before = regions_[table.name];
    *events += ChangesOf(table.name, before, *regions);
    before = *std::move(regions);
    seen.insert(table.name);
  }
  std::erase_if(regions_, [&](const auto& table) { return !seen.contains(table.first); });
  TAMIS_ASSIGN_OR_RETURN(const ClusterStatus status, Ask<ClusterStatus>([&](auto done) {
                           store_->admin().GetStatus(std::move(done));
                         }));
  Replace(&servers_, Event("servers", Text(ServersJson(status))), events);
  return Status::Ok();
}

Result<StoreView::Regions> StoreView::RegionsOf(const TableSchema& table,
                                                size_t max_regions) const {
  TAMIS_ASSIGN_OR_RETURN(const auto infos, Ask<std::vector<RegionInfo>>([&](auto done) {
                           store_->engine().cluster().ListRegions(table.name, {}, std::move(done));
                         }));
  const std::vector<uint64_t> routed_ids = store_->engine().RoutedRegions(table);
  const std::unordered_set<uint64_t> routed(routed_ids.begin(), routed_ids.end());
  const KeyFormat format(table);
  Regions regions;
  for (const RegionInfo& info : infos) {
    if (regions.size() >= max_regions) break;
    regions[info.id.number()] = {.server = info.server,
                                 .start = Hexadecimal(info.start),
                                 .text = info.start.empty() ? "" : format.ToText(info.start),
                                 .size_bytes = info.size_bytes,
                                 .is_routed = routed.contains(info.id.number())};
  }
  return regions;
}

std::string StoreView::ChangesOf(const std::string& table, const Regions& before,
                                 const Regions& now) {
  std::string events;
  Json put = Json::array();
  Json removed = Json::array();
  const auto flush = [&](size_t least) {
    if (put.size() + removed.size() < least) return;
    events += Event("regions", Text({{"table", table}, {"put", put}, {"removed", removed}}));
    put = Json::array();
    removed = Json::array();
  };
  for (const auto& [id, region] : before) {
    if (!now.contains(id)) removed.push_back(std::to_string(id));
    flush(kRegionsOfEvent);
  }
  for (const auto& [id, region] : now) {
    const auto found = before.find(id);
    if (found != before.end() && found->second == region) continue;
    put.push_back({std::to_string(id), region.server, region.start, region.text, region.size_bytes,
                   region.is_routed ? 1 : 0});
    flush(kRegionsOfEvent);
  }
  flush(1);
  return events;
}

std::string StoreView::Whole() const {
  std::string events = trouble_ + tables_ + servers_;
  for (const auto& [table, regions] : regions_) events += ChangesOf(table, {}, regions);
  return events;
}

}  // namespace tamis::server
