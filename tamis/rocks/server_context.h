// ServerContext: what the parts of one region server share.
#pragma once

#include <functional>
#include <memory>

#include "tamis/feed/filter_budget.h"
#include "tamis/feed/filter_feed.h"
#include "tamis/feed/index_filter.h"
#include "tamis/rocks/catalog.h"
#include "tamis/rocks/fence.h"
#include "tamis/rocks/filter_snapshots.h"
#include "tamis/rocks/server_executor.h"
#include "tamis/rocks/store.h"

namespace tamis {

struct RegionServerOptions {
  FilterFeed::Options feed;
  // A heartbeat that succeeds proves that the server owned its regions when it was sent. For so
  // long after that, and no longer, leases live and searches are answered; and for so long, and a
  // margin for clocks that run at different rates, a region acknowledges nothing that was opened
  // after an owner who did not close it in good order.
  Duration proof_term = std::chrono::milliseconds(1500);
  Duration heartbeat_interval = std::chrono::milliseconds(300);
  // Searches look at the fence of their region, too. A store may have none for reads (false): then
  // only the proof keeps a server that was expelled from answering.
  bool fence_searches = true;
  Duration write_timeout = std::chrono::seconds(10);  // where a request names none
  Duration search_timeout = std::chrono::seconds(10);
  uint64_t split_bytes = 64 << 20;  // a region that has grown beyond it is split; 0 = never
  // RocksDB estimates the bytes of a region that opens; of those in memory it says something else
  // in each run. false: the rows are read instead, so that a run can be repeated.
  bool estimate_region_bytes = true;
  uint64_t page_rows = 1000;          // of one region in one answer
  uint64_t page_bytes = 4 << 20;      // of one answer, roughly
  uint64_t page_candidates = 20'000;  // rows looked at for one region in one answer
  // Index streams of one branch are read side by side, to see which ends first, for so many entries
  // at the least, and for as many as the rows that are wanted may cost; beyond that RocksDB's
  // estimates decide.
  uint64_t probe_entries = 256;
  bool streams_by_cost = true;  // false: the first one leads, whatever it costs
  bool join_streams = true;     // false: none is looked into but the one that leads
  uint64_t build_rows = 256;    // rows or entries taken in one step of a background job
  RecountRule recount;          // of a filter, for removals that it could not follow
  // Bound of all filters together; a filter that does not fit keeps bits alone (filter_budget.h).
  uint64_t filter_bytes = uint64_t{1} << 30;
  bool inline_steps = true;  // see ServerExecutor
  // For tests: what happens elsewhere while a search of a region has its snapshot, and has not
  // looked yet whether the region is still here.
  std::function<void()> during_search;
  Faults faults;
};

struct ServerContext {
  // The surroundings of the server, given when it starts.
  std::string name;
  uint64_t start_code = 0;
  RegionServerOptions options;
  Store* store = nullptr;
  Catalog* catalog = nullptr;
  FenceTable* fences = nullptr;
  FilterSnapshots* snapshots = nullptr;
  // Sends a heartbeat; answered with whether this life of the server has not been expelled.
  std::function<void(std::function<void(bool)>)> heartbeat;
  std::function<void()> on_expelled;
  std::function<void()> on_split;  // a region that had grown was split

  // Its own.
  std::shared_ptr<ServerExecutor> executor;
  std::shared_ptr<FilterFeed> feed;
  std::shared_ptr<FilterBudget> filter_budget;
  std::function<bool()> is_verified;                                      // ownership, now
  std::function<void(const std::shared_ptr<class Region>&)> after_write;  // sizes, recounts
};

}  // namespace tamis
