// StoreView: what the console shows of a store, as server-sent events:
//
//   tables   {"tables": [{"name", "columns": [names], "key": [names], "indexes": [names]}]}: all
//   servers  {"servers": [{"name", "state", "regions", "filter_bytes", "feed_events",
//             "events_behind", "coordinators", "searches", "regions_searched"}]}: all
//   regions  {"table", "put": [[id, server, start, text of start, size, routed]],
//             "removed": [ids]}: changes; keys in hexadecimal, so that they sort as texts
//   trouble  {"detail"}: why the store could not be looked at; null once it could again
//
// Threads: exclusive access.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/store/opened_store.h"

namespace tamis::server {

// "event: NAME\ndata: JSON\n\n". REQUIRES: `json` has no line break.
std::string Event(std::string_view name, std::string_view json);

class StoreView {
 public:
  // Shows at most `max_regions` regions of all tables. A look ends early when `cancelled` is set.
  StoreView(OpenedStore* store, const std::atomic<bool>* cancelled, size_t max_regions)
      : store_(store), cancelled_(cancelled), max_regions_(max_regions) {}

  // Asks the store; returns the events that tell the changes since the last look.
  std::string Look();
  // The events that tell all of the last look.
  std::string Whole() const;

 private:
  struct Region {
    std::string server;
    std::string start;  // in hexadecimal
    std::string text;   // the values of the start
    uint64_t size_bytes = 0;
    bool is_routed = false;

    bool operator==(const Region&) const = default;
  };
  using Regions = std::map<uint64_t, Region>;

  Status LookAt(std::string* events);
  Result<Regions> RegionsOf(const TableSchema& table, size_t max_regions) const;
  static std::string ChangesOf(const std::string& table, const Regions& before, const Regions& now);
  template <class T, class Call>
  Result<T> Ask(Call call) const;

  OpenedStore* const store_;
  const std::atomic<bool>* const cancelled_;
  const size_t max_regions_;
  std::string tables_;  // events as they were sent
  std::string servers_;
  std::string trouble_;
  std::map<std::string, Regions> regions_;  // by table
};

}  // namespace tamis::server
