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
  // A heartbeat that succeeds proves that the server owned its regions when it was sent. No lease
  // lives and no search is answered longer than `proof_term` after that moment. A region that was
  // opened after an owner that did not close it cleanly acknowledges no put for the same
  // time, and a margin for clocks that run at different rates.
  Duration proof_term = std::chrono::milliseconds(1500);
  Duration heartbeat_interval = std::chrono::milliseconds(300);
  // True: searches check the fence of their region as well. False: as with a store that has no
  // fence for reads, only the proof keeps an expelled server from answering.
  bool fence_searches = true;
  Duration write_timeout = std::chrono::seconds(10);  // where a request names none
  Duration search_timeout = std::chrono::seconds(10);
  uint64_t split_bytes = 64 << 20;  // a region that has grown beyond it is split; 0 = never
  // True: RocksDB estimates the bytes of a region that opens; its estimate of bytes in memory
  // differs from run to run. False: the rows are read instead, so that a run can be repeated.
  bool estimate_region_bytes = true;
  uint64_t page_rows = 1000;          // rows of one region in one answer
  uint64_t page_bytes = 4 << 20;      // bytes of one answer, roughly
  uint64_t page_candidates = 20'000;  // rows looked at for one region in one answer
  uint64_t page_grouped = 1'000'000;  // the same, where rows are sent as groups
  // Index streams of one branch are read side by side to find the shortest: at least so many
  // entries of each, at most as many as reading the wanted rows may cost. If none has ended by
  // then, RocksDB's estimates decide.
  uint64_t probe_entries = 256;
  bool streams_by_cost = true;  // false: the first stream drives the search, whatever it costs
  bool join_streams = true;     // false: no stream is joined with the driving one
  uint64_t build_rows = 256;    // rows or entries taken in one step of a background job
  // Most bytes of changes that are noted while the entries of an upper daughter are copied
  // (entry_copy.h). With more of them its entries are made from its rows after the split, and with
  // 0 they always are.
  uint64_t copied_change_bytes = 64 << 20;
  // After a removal so long passes before the index is searched for what it has emptied
  // (filter_clearer.h), so that many removals are looked at together.
  Duration clear_delay = std::chrono::seconds(1);
  RecountRule recount;  // when a filter is counted again for removals that it could not follow
  // Bound of all filters together; a filter that does not fit keeps bits alone (filter_budget.h).
  uint64_t filter_bytes = uint64_t{1} << 30;
  bool inline_steps = true;  // see ServerExecutor
  // For tests: called when a search of a region has taken its snapshot, before it checks that the
  // region is still open here.
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
