#include "tamis/routing/feed_copy.h"

#include <chrono>
#include <iterator>
#include <utility>

#include "tamis/filter/split_geometry.h"
#include "tamis/table/cell_map.h"

namespace tamis {
namespace {

// A bound on what a reply may make us allocate.
constexpr uint32_t kMaxSlicePositions = 1u << 26;
constexpr int kMaxWanted = 512;  // columns asked for in one poll

bool SaneGeometry(const pb::Geometry& geometry) {
  return geometry.slices() >= 1 && geometry.slices() <= SplitGeometry::kMaxSlices &&
         geometry.slice_positions() >= 1 && geometry.slice_positions() <= kMaxSlicePositions;
}

}  // namespace

// ---- Tables

const RoutedTable* FeedCopy::FindTable(uint32_t table_id) const {
  const auto found = tables_.find(table_id);
  return found == tables_.end() ? nullptr : &found->second;
}

IndexCopies* FeedCopy::CopiesOf(const Region& region, uint32_t index_id) {
  RoutedTable& table = TableOf(region);
  auto found = table.indexes.find(index_id);
  return found == table.indexes.end() || found->second.Find(region.slot) == nullptr
             ? nullptr
             : &found->second;
}

CellCopies* FeedCopy::CellsOf(const Region& region, uint32_t index_id) {
  IndexCopies* copies = CopiesOf(region, index_id);
  return copies == nullptr || copies->cells().Find(region.slot) == nullptr ? nullptr
                                                                           : &copies->cells();
}

bool FeedCopy::Reconcile() {
  bool again = false;
  const TableLayout::Leases leases = servers_.leases();
  for (auto it = tables_.begin(); it != tables_.end();) {
    TableLayout& layout = it->second.layout;
    if (layout.NeedsReconciling(leases.now)) layout.Reconcile(leases);
    again |= layout.NeedsReconciling(leases.now);
    it = layout.empty() ? tables_.erase(it) : std::next(it);
  }
  return again;
}

void FeedCopy::ReconcileAll(Lock* lock) {
  while (Reconcile()) LetOthers(lock);
}

void FeedCopy::LetOthers(Lock* lock) {
  lock->unlock();
  lock->lock();
}

// ---- Regions and indexes of a server

void FeedCopy::OpenRegion(RoutedServer* server, const pb::Event& event) {
  DropRegion(server, event.region_id());
  KeyRange range{event.start(), event.end()};
  if (range.empty()) return;  // invalid; without the region its keys are candidates
  const auto slot = tables_[event.table_id()].layout.Add(std::move(range), server->number);
  server->regions[event.region_id()] = {event.epoch(), event.table_id(), slot};
}

void FeedCopy::DropRegion(RoutedServer* server, uint64_t region_id) {
  auto found = server->regions.find(region_id);
  if (found == server->regions.end()) return;
  RoutedTable& table = TableOf(found->second);
  for (auto it = table.indexes.begin(); it != table.indexes.end();) {
    it->second.Drop(found->second.slot);
    server->missing.erase({it->first, region_id});
    server->missing_cells.erase({it->first, region_id});
    it = it->second.empty() ? table.indexes.erase(it) : std::next(it);
  }
  table.layout.Remove(found->second.slot);
  server->regions.erase(found);
}

void FeedCopy::Clear(RoutedServer* server, Lock* lock) {
  servers_.EndLease(*server);
  server->applied = 0;
  server->start_code = 0;
  for (size_t dropped = 1; !server->regions.empty(); ++dropped) {
    DropRegion(server, server->regions.begin()->first);
    if (dropped % kEventsAtOnce == 0) {
      Reconcile();
      LetOthers(lock);
    }
  }
  server->missing.clear();
  server->missing_cells.clear();
}

void FeedCopy::CompleteIndex(RoutedServer* server, const pb::Event& event) {
  if (!SaneGeometry(event.geometry()) || event.layers() < 1 || event.layers() > kMaxLayers) {
    // The event is invalid, and the present copy is out of date.
    return DropIndex(server, event.region_id(), event.index_id());
  }
  const Region& region = server->regions.at(event.region_id());
  IndexCopies& copies = TableOf(region).indexes[event.index_id()];
  copies.Begin(region.slot, {.generation = event.generation(),
                             .geometry = {.slices = event.geometry().slices(),
                                          .slice_positions = event.geometry().slice_positions()},
                             .layers = event.layers()});
  copies.SetRange(region.slot, event.has_range(), event.min(), event.max());
  server->missing.insert({event.index_id(), event.region_id()});
  server->missing_cells.erase({event.index_id(), event.region_id()});
  if (event.cell_map() == 0) return;
  if (event.cell_count() < 1 || event.cell_count() > CellMap::kMaxCells) return;  // invalid
  copies.cells().Begin(region.slot, event.generation(), event.cell_map(), event.cell_count());
  server->missing_cells.insert({event.index_id(), event.region_id()});
}

void FeedCopy::DropIndex(RoutedServer* server, uint64_t region_id, uint32_t index_id) {
  const Region& region = server->regions.at(region_id);
  if (IndexCopies* copies = CopiesOf(region, index_id)) {
    copies->Drop(region.slot);
    if (copies->empty()) TableOf(region).indexes.erase(index_id);
  }
  server->missing.erase({index_id, region_id});
  server->missing_cells.erase({index_id, region_id});
}

void FeedCopy::GrantLease(RoutedServer* server, Time until) {
  if (faults_.expired_lease_excludes) until += std::chrono::hours(1);
  if (!servers_.ExtendLease(*server, until)) return;
  for (const auto& [id, region] : server->regions) TableOf(region).layout.Recheck(region.slot);
}

// ---- Bits that are missing

bool FeedCopy::HasRoomForCells(const Region& region, const CellCopies& cells) const {
  const size_t slots = tables_.at(region.table_id).layout.slots();
  return budget_.HasRoomForCells(cells, region.slot, slots);
}

void FeedCopy::AddWanted(const RoutedServer& server, pb::PollRequest* request) const {
  for (const auto& [index_id, region_id] : server.missing) {
    if (request->wanted_size() >= kMaxWanted) break;
    const Region& region = server.regions.at(region_id);
    const IndexCopies& copies = tables_.at(region.table_id).indexes.at(index_id);
    const IndexCopies::Copy& copy = *copies.Find(region.slot);
    if (!budget_.CouldHaveRoom(copies, copy.geometry, copy.layers)) continue;
    auto* wanted = request->add_wanted();
    wanted->set_region_id(region_id);
    wanted->set_index_id(index_id);
    wanted->set_generation(copy.generation);
    if (copy.arriving) copy.arriving->Describe(wanted);
  }
  for (const auto& [index_id, region_id] : server.missing_cells) {
    if (request->wanted_size() >= kMaxWanted) break;
    const Region& region = server.regions.at(region_id);
    const CellCopies& cells = tables_.at(region.table_id).indexes.at(index_id).cells();
    if (!HasRoomForCells(region, cells)) continue;
    auto* wanted = request->add_wanted();
    wanted->set_region_id(region_id);
    wanted->set_index_id(index_id);
    wanted->set_generation(cells.Find(region.slot)->generation);
    wanted->set_cells(true);
    wanted->set_first_cell(cells.Find(region.slot)->arrived_to);
  }
}

}  // namespace tamis
