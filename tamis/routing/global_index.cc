#include "tamis/routing/global_index.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <shared_mutex>

#include "tamis/routing/feed_copy.h"
#include "tamis/routing/region_bits.h"
#include "tamis/routing/reply_events.h"
#include "tamis/routing/reply_projections.h"
#include "tamis/routing/routed_table.h"

namespace tamis {

struct GlobalIndex::State {
  explicit State(const Options& options)
      : options(options), copy(options.max_bytes, options.faults) {}

  // The bits, by slot, of the table's regions whose servers have no lease.
  RegionBits WithoutLease(uint32_t table_id, const TableLayout& layout, Time now) const {
    RegionBits without(layout.slots());
    copy.servers().AddWithoutLease(table_id, now, &without);
    return without;
  }

  const Options options;
  mutable std::shared_mutex mutex;  // guards the following
  FeedCopy copy;
  uint64_t events = 0;  // that were taken in
};

GlobalIndex::GlobalIndex(Options options) : state_(std::make_unique<State>(options)) {}
GlobalIndex::~GlobalIndex() = default;

pb::PollRequest GlobalIndex::NextPoll(const std::string& name, Duration wait) const {
  std::shared_lock lock(state_->mutex);
  pb::PollRequest request;
  request.set_coordinator(state_->options.coordinator);
  request.set_wait_ns(static_cast<uint64_t>(wait.count()));
  const auto server = state_->copy.servers().Find(name);
  if (server == nullptr) return request;
  request.set_start_code(server->start_code);
  request.set_applied(server->applied);
  state_->copy.AddWanted(*server, &request);
  return request;
}

void GlobalIndex::Forget(const std::string& name, Time now) {
  FeedCopy& copy = state_->copy;
  FeedCopy::Lock lock(state_->mutex);
  const auto server = copy.servers().Find(name);
  if (server == nullptr) return;
  lock.unlock();
  std::lock_guard one(server->taking_in);
  lock.lock();
  if (!copy.servers().Knows(*server)) return;  // another call has forgotten it
  copy.servers().NoteTime(now);
  copy.Clear(server.get(), &lock);
  copy.ReconcileAll(&lock);
  copy.servers().Forget(name);
}

void GlobalIndex::Apply(const std::string& name, const pb::PollReply& reply, Time sent, Time now) {
  const bool any = state_->options.faults.ignore_sequence;
  FeedCopy& copy = state_->copy;
  FeedCopy::Lock lock(state_->mutex);
  const auto known_server = copy.servers().Named(name);
  RoutedServer& server = *known_server;
  lock.unlock();
  std::lock_guard one(server.taking_in);
  lock.lock();
  if (!copy.servers().Knows(server)) return;  // forgotten meanwhile
  copy.servers().NoteTime(now);
  // Ignores the answer to an older poll than the last one applied. It may come from an earlier life
  // of the server: only the order of our polls tells which of two lives is the later one.
  if (sent < server.last_sent && !any) return;
  const bool known = reply.start_code() == server.start_code;
  if (reply.full()) {
    if (known && reply.to() <= server.applied && !any) return;  // late: we know more
    copy.Clear(&server, &lock);
    server.start_code = reply.start_code();
  } else if (!known || reply.from() > server.applied) {
    return;  // events before it are missing: the next poll asks for them
  }
  server.last_sent = std::max(server.last_sent, sent);
  try {
    ReplyEvents events(&copy, &server, reply, &lock);
    state_->events += events.Apply();
    server.applied = std::max(server.applied, reply.to());
    if (reply.lease_ns() > 0) {
      const Time until = sent + SentDuration(reply.lease_ns()) - state_->options.lease_margin;
      copy.GrantLease(&server, until);
    }
    copy.ReconcileAll(&lock);
    if (!reply.full() && server.applied == reply.to() && reply.projections_size() > 0) {
      ReplyProjections(&copy, &server, reply, &events, &lock).Load();
    }
  } catch (const std::bad_alloc&) {
    // A part of the reply is applied. The copy is not used until the server has sent its whole
    // state again, which begins with Clear.
    if (!lock.owns_lock()) lock.lock();
    copy.servers().EndLease(server);
    server.start_code = 0;
    server.applied = 0;
    throw;
  }
}

GlobalIndex::Route GlobalIndex::Find(uint32_t table_id, const KeyRanges& keys,
                                     const RoutingTerm& term, Time now) const {
  std::shared_lock lock(state_->mutex);
  Route route;
  const RoutedTable* const table = state_->copy.FindTable(table_id);
  if (table == nullptr) return route;
  RegionBits may = table->MayHold(term, RoutedTable::By::kFilters);
  state_->copy.servers().AddWithoutLease(table_id, now, &may);
  route.excluded = table->AllBut(may, keys);
  return route;
}

std::vector<GlobalIndex::Bound> GlobalIndex::Bounds(uint32_t table_id, const KeyRanges& keys,
                                                    uint32_t index_id, bool largest, Time now,
                                                    const Wanted& wanted) const {
  std::shared_lock lock(state_->mutex);
  const RoutedTable* const table = state_->copy.FindTable(table_id);
  if (table == nullptr) return {};
  const auto copies = table->indexes.find(index_id);
  if (copies == table->indexes.end()) return {};
  RegionBits unknown(table->layout.slots());
  const Faults& faults = state_->options.faults;
  if (!faults.stale_bounds) state_->copy.servers().AddWithoutLease(table_id, now, &unknown);
  if (!faults.unknown_bounds) copies->second.AddUnknown(&unknown);
  return RegionBounds(table->layout, copies->second, unknown, keys, largest, wanted);
}

GlobalIndex::Reasons GlobalIndex::Explain(uint32_t table_id, const KeyRanges& keys,
                                          const RoutingTerm& term, const KeyRanges& excluded,
                                          Time now, bool each_excluded) const {
  std::shared_lock lock(state_->mutex);
  const RoutedTable* const table = state_->copy.FindTable(table_id);
  if (table == nullptr) return {};
  return ExplainExclusions(*table, state_->WithoutLease(table_id, table->layout, now), keys, term,
                           excluded, each_excluded);
}

bool GlobalIndex::IsComplete(uint32_t table_id, const std::vector<uint32_t>& index_ids,
                             Time now) const {
  std::shared_lock lock(state_->mutex);
  const RoutedTable* const table = state_->copy.FindTable(table_id);
  if (table == nullptr) return false;
  const TableLayout& layout = table->layout;
  if (!layout.CoversEverything()) return false;
  RegionBits unknown = state_->WithoutLease(table_id, layout, now);
  for (const uint32_t index_id : index_ids) {
    const auto copies = table->indexes.find(index_id);
    if (copies == table->indexes.end()) return false;
    RegionBits of_index(layout.slots());
    copies->second.AddUnknown(&of_index);
    for (const auto& [name, server] : state_->copy.servers().by_name()) {
      state_->copy.ForEachLeftOut(*server,
                                  [&](uint32_t left_out, const RoutedServer::Region& region) {
                                    if (region.table_id == table_id && left_out == index_id)
                                      of_index.Unset(region.slot);
                                  });
    }
    unknown |= of_index;
  }
  for (size_t i = 0; i < layout.size(); ++i) {
    if (unknown.Get(layout.at(i))) return false;
  }
  return true;
}

std::vector<uint64_t> GlobalIndex::Routed(uint32_t table_id, const std::vector<uint32_t>& index_ids,
                                          Time now) const {
  std::shared_lock lock(state_->mutex);
  std::vector<uint64_t> routed;
  const RoutedTable* const table = state_->copy.FindTable(table_id);
  if (table == nullptr) return routed;
  const TableLayout& layout = table->layout;
  RegionBits unknown = state_->WithoutLease(table_id, layout, now);
  for (const uint32_t index_id : index_ids) {
    const auto copies = table->indexes.find(index_id);
    if (copies == table->indexes.end()) return routed;
    copies->second.AddUnknown(&unknown);
  }
  for (const auto& [name, server] : state_->copy.servers().by_name()) {
    for (const auto& [id, region] : server->regions) {
      const bool is_placed =
          region.table_id == table_id && layout.position(region.slot) != TableLayout::kNotPlaced;
      if (is_placed && !unknown.Get(region.slot)) routed.push_back(id);
    }
  }
  return routed;
}

GlobalIndex::Stats GlobalIndex::stats(Time now) const {
  std::shared_lock lock(state_->mutex);
  const RoutedServers& servers = state_->copy.servers();
  Stats stats{.servers = servers.by_name().size(),
              .matrix_bytes = state_->copy.budget().SizeBytes(),
              .max_bytes = state_->options.max_bytes,
              .events = state_->events};
  for (const auto& [name, server] : servers.by_name()) {
    if (!servers.HasLease(*server, now)) ++stats.servers_without_lease;
    stats.regions += server->regions.size();
    stats.indexes_missing += server->missing.size();
    state_->copy.ForEachLeftOut(
        *server, [&](uint32_t, const RoutedServer::Region&) { ++stats.indexes_left_out; });
  }
  for (const auto& [id, table] : state_->copy.tables()) {
    stats.regions_unplaced += table.layout.unplaced();
    for (const auto& [index_id, copies] : table.indexes) {
      stats.filters_coarse += copies.CoarseColumns();
    }
  }
  return stats;
}

size_t GlobalIndex::SizeBytes() const {
  std::shared_lock lock(state_->mutex);
  return state_->copy.budget().SizeBytes();
}

}  // namespace tamis
