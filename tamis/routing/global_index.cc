#include "tamis/routing/global_index.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "tamis/routing/index_copies.h"
#include "tamis/routing/matrix_budget.h"
#include "tamis/routing/region_bits.h"
#include "tamis/routing/routed_table.h"
#include "tamis/routing/table_layout.h"
#include "tamis/table/cell_map.h"

namespace tamis {
namespace {

using Slot = TableLayout::Slot;

// Bounds on what a reply may make us allocate.
constexpr uint32_t kMaxSlicePositions = 1u << 26;
constexpr uint32_t kMaxLayers = 4096;
constexpr int kMaxWanted = 512;  // columns asked for in one poll

// How much is done before searches get their turn: events, flips, regions dropped; and words of
// rows that are loaded.
constexpr size_t kEventsAtOnce = 64;
constexpr size_t kFlipsPerEvent = 16;  // an event costs as much as this many flips
constexpr uint64_t kWordsAtOnce = 8192;

struct Region {
  uint64_t epoch = 0;
  uint32_t table_id = 0;
  Slot slot = 0;
};

struct Server {
  std::mutex taking_in;  // held while one reply is applied; locked before State::mutex
  uint32_t number = 0;
  uint64_t start_code = 0;
  uint64_t applied = 0;
  Time last_sent = Time::min();  // the latest sending of a poll whose answer was taken in
  std::unordered_map<uint64_t, Region> regions;
  // The pairs (index, region) whose bits are to be requested. Pairs that lie side by side in a
  // matrix arrive in one reply, so that each cache line of its rows is touched once for all of
  // them.
  std::set<std::pair<uint32_t, uint64_t>> missing;
  std::set<std::pair<uint32_t, uint64_t>> missing_cells;  // the same, of cells
};

bool SaneGeometry(const pb::Geometry& geometry) {
  return geometry.slices() >= 1 && geometry.slices() <= SplitGeometry::kMaxSlices &&
         geometry.slice_positions() >= 1 && geometry.slice_positions() <= kMaxSlicePositions;
}

SplitGeometry ToGeometry(const pb::Geometry& geometry) {
  return {.slices = geometry.slices(), .slice_positions = geometry.slice_positions()};
}

}  // namespace

struct GlobalIndex::State {
  explicit State(Options options) : options(options) {}

  using Lock = std::unique_lock<std::shared_mutex>;

  const Options options;
  mutable std::shared_mutex mutex;
  std::map<std::string, std::shared_ptr<Server>> servers;  // shared with threads at taking_in
  std::vector<Server*> by_number;                          // nullptr: forgotten
  std::vector<Time> lease_until;                           // by number of the server
  uint64_t events = 0;                                     // that were taken in
  Time latest = Time::min();                               // the latest time of all calls
  MatrixBudget::Tables tables;
  const MatrixBudget budget{tables, options.max_bytes};

  // ---- Applying replies. The caller holds the mutex exclusively. A function that takes a Lock
  // releases and locks it again on the way.

  std::shared_ptr<Server> ServerNamed(const std::string& name) {
    auto& server = servers[name];
    if (!server) {
      server = std::make_shared<Server>();
      const auto free = std::ranges::find(by_number, nullptr);
      server->number = static_cast<uint32_t>(free - by_number.begin());
      if (free == by_number.end()) {
        by_number.push_back(nullptr);
        lease_until.push_back(Time::min());
      }
      by_number[server->number] = server.get();
    }
    return server;
  }

  static void LetOthers(Lock* lock) {
    lock->unlock();
    lock->lock();
  }

  // A thread that waited for the lock may hold an older clock reading than the thread before it,
  // which may have ended a lease by a newer one. So the latest reading of all threads counts.
  void NoteTime(Time now) { latest = std::max(latest, now); }

  // Brings the layouts of all tables up to date with what has been applied; to be called before the
  // lock is released. True: call it again, after other threads had their turn.
  bool Reconcile() {
    bool again = false;
    for (auto it = tables.begin(); it != tables.end();) {
      TableLayout& layout = it->second.layout;
      if (layout.NeedsReconciling(latest)) layout.Reconcile({lease_until, latest});
      again |= layout.NeedsReconciling(latest);
      it = layout.empty() ? tables.erase(it) : std::next(it);
    }
    return again;
  }
  void SettleAll(Lock* lock) {
    while (Reconcile()) LetOthers(lock);
  }

  // REQUIRES: of the server; its table, while it is known.
  RoutedTable& TableOf(const Region& region) { return tables.at(region.table_id); }

  IndexCopies* CopiesOf(const Region& region, uint32_t index_id) {
    RoutedTable& table = TableOf(region);
    auto found = table.indexes.find(index_id);
    return found == table.indexes.end() || found->second.Find(region.slot) == nullptr
               ? nullptr
               : &found->second;
  }

  void DropRegion(Server* server, uint64_t id) {
    auto found = server->regions.find(id);
    if (found == server->regions.end()) return;
    RoutedTable& table = TableOf(found->second);
    for (auto it = table.indexes.begin(); it != table.indexes.end();) {
      it->second.Drop(found->second.slot);
      server->missing.erase({it->first, id});
      server->missing_cells.erase({it->first, id});
      it = it->second.empty() ? table.indexes.erase(it) : std::next(it);
    }
    table.layout.Remove(found->second.slot);
    server->regions.erase(found);
  }

  void Clear(Server* server, Lock* lock) {
    lease_until[server->number] = Time::min();
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

  void OpenRegion(Server* server, const pb::Event& event) {
    DropRegion(server, event.region_id());
    KeyRange range{event.start(), event.end()};
    if (range.empty()) return;  // invalid; without the region its keys are candidates
    const Slot slot = tables[event.table_id()].layout.Add(std::move(range), server->number);
    server->regions[event.region_id()] = {event.epoch(), event.table_id(), slot};
  }

  void CompleteIndex(Server* server, const Region& region, const pb::Event& event) {
    if (!SaneGeometry(event.geometry()) || event.layers() < 1 || event.layers() > kMaxLayers) {
      return DropIndex(server, region, event);  // invalid; the present copy is out of date
    }
    IndexCopies& copies = TableOf(region).indexes[event.index_id()];
    copies.Begin(region.slot, {.generation = event.generation(),
                               .geometry = ToGeometry(event.geometry()),
                               .layers = event.layers()});
    copies.SetRange(region.slot, event.has_range(), event.min(), event.max());
    server->missing.insert({event.index_id(), event.region_id()});
    server->missing_cells.erase({event.index_id(), event.region_id()});
    if (event.cell_map() == 0) return;
    if (event.cell_count() < 1 || event.cell_count() > CellMap::kMaxCells) return;  // invalid
    copies.cells().Begin(region.slot, event.generation(), event.cell_map(), event.cell_count());
    server->missing_cells.insert({event.index_id(), event.region_id()});
  }

  void DropIndex(Server* server, const Region& region, const pb::Event& event) {
    if (IndexCopies* copies = CopiesOf(region, event.index_id())) {
      copies->Drop(region.slot);
      if (copies->empty()) TableOf(region).indexes.erase(event.index_id());
    }
    server->missing.erase({event.index_id(), event.region_id()});
    server->missing_cells.erase({event.index_id(), event.region_id()});
  }

  // Loads bits into columns that no search reads yet, position by position. Before each step it
  // releases the lock for a moment, so that searches and other replies can go on.
  static void Load(FilterMatrix* matrix, std::span<const FilterMatrix::Filling> fillings,
                   Lock* lock) {
    const uint64_t words = (fillings.size() + 63) / 64;
    constexpr uint64_t kRows = FilterMatrix::kRowsAtOnce;
    const uint64_t step = std::max<uint64_t>(kWordsAtOnce / words / kRows, 1) * kRows;
    // The matrix may keep fewer positions while others have the lock.
    for (uint64_t first = 0; first < matrix->geometry().positions(); first += step) {
      {
        lock->unlock();
        const std::shared_lock beside(*lock->mutex());
        matrix->Bring(fillings, first, first + step);
      }
      lock->lock();
      matrix->Load(fillings, first, first + step);
    }
  }

  // Gives the copy as many columns as the filter has layers. New columns are empty until the events
  // after this one.
  void AddLayers(IndexCopies* copies, Slot slot, Lock* lock) {
    IndexCopies::Copy& copy = *copies->Find(slot);
    while (copy.columns.size() < copy.layers) {
      const FilterMatrix::Filling zeros(copy.matrix->bits.Allocate(), std::string_view());
      Load(&copy.matrix->bits, std::span(&zeros, 1), lock);
      copies->AddLayer(slot, zeros.column);
    }
  }

  // Applies an event that changes bits, layers or the range of a copy; also events that follow a
  // projection. False when the copy cannot hold the change: then it must not exclude any more.
  [[nodiscard]] bool ApplyToCopy(Server* server, IndexCopies* copies, Slot slot,
                                 const pb::Event& event, Lock* lock) {
    IndexCopies::Copy& copy = *copies->Find(slot);
    if (event.generation() != copy.generation) return true;
    switch (event.kind()) {
      case pb::Event::LAYER_ADDED:
        if (event.layers() > kMaxLayers) return false;
        copy.layers = std::max(copy.layers, event.layers());
        if (copy.matrix == nullptr) break;
        if (budget.MakeRoom(copies, copy.geometry, copy.layers - copy.columns.size(), lock)) {
          AddLayers(copies, slot, lock);
        } else {
          copies->FreeColumns(slot);
          server->missing.insert({event.index_id(), event.region_id()});
        }
        break;
      case pb::Event::FLIPS:
        if (!FlipCells(copies, slot, event)) return false;
        if (copy.matrix == nullptr && !copy.arriving) break;
        for (const uint64_t flip : event.flips()) {
          const uint64_t layer = flip >> 33;
          const uint64_t position = (flip >> 1) & 0xffffffffu;
          if (copy.arriving) copy.arriving->Flip(layer, position, (flip & 1) != 0);
          if (copy.matrix == nullptr) continue;
          if (layer >= copy.columns.size() || position >= copy.geometry.positions()) return false;
          copies->Set(slot, layer, position, (flip & 1) != 0);
        }
        break;
      case pb::Event::RANGE_WIDENED:
        copies->SetRange(slot, event.has_range(), event.min(), event.max());
        break;
      default:
        break;
    }
    return true;
  }

  // False when there are no such cells.
  [[nodiscard]] static bool FlipCells(IndexCopies* copies, Slot slot, const pb::Event& event) {
    CellCopies& cells = copies->cells();
    const CellCopies::Copy* copy = cells.Find(slot);
    if (copy == nullptr || copy->generation != event.generation()) return event.cells().empty();
    return std::ranges::all_of(
        event.cells(), [&](uint32_t flip) { return cells.Set(slot, flip / 2, flip % 2 == 1); });
  }

  void ApplyEvent(Server* server, const pb::Event& event, Lock* lock) {
    if (event.kind() == pb::Event::REGION_OPENED) return OpenRegion(server, event);
    auto found = server->regions.find(event.region_id());
    if (found == server->regions.end() || found->second.epoch != event.epoch()) return;
    const Region region = found->second;
    switch (event.kind()) {
      case pb::Event::REGION_CLOSED:
        return DropRegion(server, event.region_id());
      case pb::Event::INDEX_COMPLETE:
        return CompleteIndex(server, region, event);
      case pb::Event::INDEX_DROPPED:
        return DropIndex(server, region, event);
      default:
        if (IndexCopies* copies = CopiesOf(region, event.index_id());
            copies != nullptr && !ApplyToCopy(server, copies, region.slot, event, lock)) {
          DropIndex(server, region, event);
        }
    }
  }

  void ApplyEvents(Server* server, const pb::PollReply& reply, Lock* lock) {
    size_t done = 0;
    for (const pb::Event& event : reply.events()) {
      const bool is_new = event.sequence() > server->applied || options.faults.ignore_sequence;
      if (!reply.full() && !is_new) continue;
      if (done >= kEventsAtOnce) {
        done = 0;
        Reconcile();
        LetOthers(lock);
      }
      ApplyEvent(server, event, lock);
      ++events;
      done += 1 + static_cast<size_t>(event.flips_size()) / kFlipsPerEvent;
    }
  }

  void GrantLease(Server* server, Time until) {
    if (options.faults.expired_lease_excludes) until += std::chrono::hours(1);
    Time& lease = lease_until[server->number];
    const bool revived = lease <= latest && until > latest;
    lease = std::max(lease, until);
    if (!revived) return;
    for (const auto& [id, region] : server->regions) TableOf(region).layout.Doubt(region.slot);
  }

  // ---- Bits

  // Calls fn(index, region) for the indexes of the server's regions whose bits find no room.
  template <class Fn>
  void ForEachLeftOut(const Server& server, Fn&& fn) const {
    for (const auto& [index_id, region_id] : server.missing) {
      const Region& region = server.regions.at(region_id);
      const IndexCopies& copies = tables.at(region.table_id).indexes.at(index_id);
      const IndexCopies::Copy& copy = *copies.Find(region.slot);
      if (!budget.CouldHaveRoom(copies, copy.geometry, copy.layers)) fn(index_id, region);
    }
  }

  struct Loading {
    const pb::Projection* projection;
    Slot slot;
    IndexCopies* copies;
    std::unique_ptr<ProjectionParts> parts;  // where the bits are, when they came in parts
  };

  static bool IsWhole(const pb::Projection& projection, const IndexCopies::Copy& copy) {
    const size_t layer_bytes = (copy.geometry.positions() + 63) / 64 * 8;
    const auto layers = static_cast<uint32_t>(projection.layers_size());
    return copy.generation == projection.generation() &&
           ToGeometry(projection.geometry()) == copy.geometry && layers >= 1 &&
           layers <= kMaxLayers && projection.first_layer() == 0 && projection.first_word() == 0 &&
           (projection.layer_count() == 0 || projection.layer_count() == layers) &&
           std::ranges::all_of(projection.layers(), [&](const std::string& layer) {
             return layer.size() == layer_bytes;
           });
  }

  // Gives columns to the copy when with this projection all its bits are here, and room for them.
  std::optional<Loading> BeginLoading(Server* server, const pb::Projection& projection,
                                      const pb::PollReply& reply, Lock* lock) {
    auto found = server->regions.find(projection.region_id());
    if (found == server->regions.end() || found->second.epoch != projection.epoch()) return {};
    const Region region = found->second;
    IndexCopies* copies = CopiesOf(region, projection.index_id());
    if (copies == nullptr) return {};
    IndexCopies::Copy& copy = *copies->Find(region.slot);
    // The events of the reply lead from the number of the bits to where the copy stands.
    const bool is_ahead = projection.as_of() > reply.to() && !options.faults.newer_projections;
    if (copy.matrix != nullptr || is_ahead || projection.as_of() < reply.from()) return {};
    Loading loading{&projection, region.slot, copies, nullptr};
    auto layers = static_cast<uint32_t>(projection.layers_size());
    if (copy.arriving || !IsWhole(projection, copy)) {
      if (!copy.arriving) {
        copy.arriving =
            std::make_unique<ProjectionParts>(copy.geometry, copy.generation, kMaxLayers);
      }
      if (!copy.arriving->Add(projection)) return {};
      if (!copy.arriving->complete()) {
        Replay(server, loading, reply, lock);
        return {};
      }
      loading.parts = std::move(copy.arriving);
      layers = static_cast<uint32_t>(loading.parts->layers().size());
    }
    if (!budget.MakeRoom(copies, copy.geometry, layers, lock)) return {};
    copy.layers = layers;
    if (copies->GrowthBytes(copy.geometry, layers) > 0) {
      // Makes room for all copies of the geometry that wait for columns, if max_bytes allows it.
      const size_t lacking = copies->Lacking(copy.geometry);
      if (lacking > 0 && budget.HasRoom(*copies, copy.geometry, lacking)) {
        copies->ReserveLacking(copy.geometry);
      }
    }
    copies->GiveColumns(region.slot);
    return loading;
  }

  // Applies the events of the reply that are newer than the projection to its bits. False when the
  // copy could not hold the changes.
  bool Replay(Server* server, const Loading& loading, const pb::PollReply& reply, Lock* lock) {
    if (options.faults.parts_without_replay) return true;
    const pb::Projection& projection = *loading.projection;
    // Events after the projection stand at the end of the reply.
    int next = reply.events_size();
    while (next > 0 && reply.events(next - 1).sequence() > projection.as_of()) --next;
    for (; next < reply.events_size(); ++next) {
      const pb::Event& event = reply.events(next);
      if (event.region_id() != projection.region_id() || event.epoch() != projection.epoch() ||
          event.index_id() != projection.index_id()) {
        continue;
      }
      if (!ApplyToCopy(server, loading.copies, loading.slot, event, lock)) {
        DropIndex(server, server->regions.at(projection.region_id()), event);
        return false;
      }
    }
    return true;
  }

  // All bits have arrived: from now on searches use the copy.
  void EndLoading(Server* server, const Loading& loading, const pb::PollReply& reply, Lock* lock) {
    const pb::Projection& projection = *loading.projection;
    IndexCopies* copies = loading.copies;
    copies->SetRange(loading.slot, projection.has_range(), projection.min(), projection.max());
    server->missing.erase({projection.index_id(), projection.region_id()});
    if (!Replay(server, loading, reply, lock)) return;
    if (copies->Find(loading.slot)->matrix != nullptr) copies->Use(loading.slot);
  }

  // ---- Cells

  // nullptr: the region has no cells of that index.
  CellCopies* CellsOf(const Region& region, uint32_t index_id) {
    IndexCopies* copies = CopiesOf(region, index_id);
    return copies == nullptr || copies->cells().Find(region.slot) == nullptr ? nullptr
                                                                             : &copies->cells();
  }
  bool HasRoomForCells(const Region& region, const CellCopies& cells) const {
    const size_t slots = tables.at(region.table_id).layout.slots();
    return budget.HasRoomForCells(cells, region.slot, slots);
  }

  // Takes a part of the bits of cells; with the last one the copy is used.
  void TakeCells(Server* server, const pb::Projection& part, const pb::PollReply& reply,
                 Lock* lock) {
    auto found = server->regions.find(part.region_id());
    if (found == server->regions.end() || found->second.epoch != part.epoch()) return;
    const Region region = found->second;
    CellCopies* const cells = CellsOf(region, part.index_id());
    if (cells == nullptr || cells->usable(region.slot)) return;
    const CellCopies::Copy& copy = *cells->Find(region.slot);
    const bool is_of_copy = part.generation() == copy.generation &&
                            part.cell_map() == copy.version->version &&
                            part.cell_count() == copy.version->bits.cells();
    // The events of the reply lead from the number of the bits to where the copy stands.
    if (!is_of_copy || part.as_of() > reply.to() || part.as_of() < reply.from()) return;
    if (!cells->Add(region.slot, part.cells(), part.first_cell(), part.end_cell())) return;
    if (!ReplayCells(region, part, reply)) return DropIndex(server, region, IndexEvent(part));
    if (!cells->arrived(region.slot)) return;
    if (!HasRoomForCells(region, *cells)) return cells->StartOver(region.slot);
    LoadCells(region, cells, lock);
    server->missing_cells.erase({part.index_id(), part.region_id()});
  }

  static pb::Event IndexEvent(const pb::Projection& part) {
    pb::Event event;
    event.set_region_id(part.region_id());
    event.set_index_id(part.index_id());
    return event;
  }

  bool ReplayCells(const Region& region, const pb::Projection& part, const pb::PollReply& reply) {
    if (options.faults.parts_without_replay) return true;
    return std::ranges::all_of(reply.events(), [&](const pb::Event& event) {
      const bool is_later = event.sequence() > part.as_of() && event.kind() == pb::Event::FLIPS &&
                            event.region_id() == part.region_id() &&
                            event.epoch() == part.epoch() && event.index_id() == part.index_id();
      return !is_later || FlipCells(CopiesOf(region, part.index_id()), region.slot, event);
    });
  }

  void LoadCells(const Region& region, CellCopies* cells, Lock* lock) {
    CellMatrix& matrix = cells->Find(region.slot)->version->bits;
    matrix.Reserve(std::max<size_t>(TableOf(region).layout.slots(), region.slot + 1));
    const std::span<const uint64_t> arrived = cells->Find(region.slot)->arriving.words();
    std::vector<uint64_t> words(arrived.begin(), arrived.end());
    for (size_t level = 0; level < matrix.levels(); ++level) {
      const FilterMatrix::Filling filling(region.slot, words);
      Load(&matrix.level(level), std::span(&filling, 1), lock);
      words = CellMatrix::Summary(words);
    }
    cells->Use(region.slot);
  }

  // REQUIRES: all events of the reply are applied, so that the copy is as of reply.to.
  void LoadProjections(Server* server, const pb::PollReply& reply, Lock* lock) {
    std::vector<Loading> loadings;
    std::map<IndexCopies::Matrix*, std::vector<FilterMatrix::Filling>> fillings;
    size_t begun = 0;
    for (const pb::Projection& projection : reply.projections()) {
      if (++begun % kEventsAtOnce == 0) LetOthers(lock);
      if (projection.cell_map() != 0) {
        TakeCells(server, projection, reply, lock);
        continue;
      }
      auto loading = BeginLoading(server, projection, reply, lock);
      if (!loading) continue;
      const IndexCopies::Copy& copy = *loading->copies->Find(loading->slot);
      for (size_t layer = 0; layer < copy.columns.size(); ++layer) {
        if (loading->parts) {
          const std::vector<uint64_t>& words = loading->parts->layers()[layer];
          fillings[copy.matrix].emplace_back(copy.columns[layer], std::span(words));
        } else {
          fillings[copy.matrix].emplace_back(
              copy.columns[layer], std::string_view(projection.layers(static_cast<int>(layer))));
        }
      }
      loadings.push_back(std::move(*loading));
    }
    for (auto& [matrix, columns] : fillings) Load(&matrix->bits, columns, lock);
    for (size_t i = 0; i < loadings.size(); ++i) {
      if (i % kEventsAtOnce == 0) LetOthers(lock);
      EndLoading(server, loadings[i], reply, lock);
    }
  }

  // ---- Answering. The caller holds the mutex, shared suffices.

  void AddWithoutLease(uint32_t table_id, Time now, RegionBits* may) const {
    for (size_t number = 0; number < lease_until.size(); ++number) {
      if (lease_until[number] > now || by_number[number] == nullptr) continue;
      for (const auto& [id, region] : by_number[number]->regions) {
        if (region.table_id == table_id) may->Set(region.slot);
      }
    }
  }
};

GlobalIndex::GlobalIndex(Options options) : state_(std::make_unique<State>(options)) {}
GlobalIndex::~GlobalIndex() = default;

pb::PollRequest GlobalIndex::NextPoll(const std::string& name, Duration wait) const {
  std::shared_lock lock(state_->mutex);
  pb::PollRequest request;
  request.set_coordinator(state_->options.coordinator);
  request.set_wait_ns(static_cast<uint64_t>(wait.count()));
  auto found = state_->servers.find(name);
  if (found == state_->servers.end()) return request;
  const Server& server = *found->second;
  request.set_start_code(server.start_code);
  request.set_applied(server.applied);
  for (const auto& [index_id, region_id] : server.missing) {
    if (request.wanted_size() >= kMaxWanted) break;
    const Region& region = server.regions.at(region_id);
    const IndexCopies& copies = state_->tables.at(region.table_id).indexes.at(index_id);
    const IndexCopies::Copy& copy = *copies.Find(region.slot);
    if (!state_->budget.CouldHaveRoom(copies, copy.geometry, copy.layers)) continue;
    auto* wanted = request.add_wanted();
    wanted->set_region_id(region_id);
    wanted->set_index_id(index_id);
    wanted->set_generation(copy.generation);
    if (copy.arriving) copy.arriving->Describe(wanted);
  }
  for (const auto& [index_id, region_id] : server.missing_cells) {
    if (request.wanted_size() >= kMaxWanted) break;
    const Region& region = server.regions.at(region_id);
    const CellCopies& cells = state_->tables.at(region.table_id).indexes.at(index_id).cells();
    if (!state_->HasRoomForCells(region, cells)) continue;
    auto* wanted = request.add_wanted();
    wanted->set_region_id(region_id);
    wanted->set_index_id(index_id);
    wanted->set_generation(cells.Find(region.slot)->generation);
    wanted->set_cells(true);
    wanted->set_first_cell(cells.Find(region.slot)->arrived_to);
  }
  return request;
}

void GlobalIndex::Forget(const std::string& name, Time now) {
  State::Lock lock(state_->mutex);
  auto found = state_->servers.find(name);
  if (found == state_->servers.end()) return;
  const std::shared_ptr<Server> server = found->second;
  lock.unlock();
  std::lock_guard one(server->taking_in);
  lock.lock();
  if (state_->by_number[server->number] != server.get()) return;  // another call has forgotten it
  state_->NoteTime(now);
  state_->Clear(server.get(), &lock);
  state_->SettleAll(&lock);
  state_->by_number[server->number] = nullptr;
  state_->servers.erase(name);
}

void GlobalIndex::Apply(const std::string& name, const pb::PollReply& reply, Time sent, Time now) {
  const bool any = state_->options.faults.ignore_sequence;
  State::Lock lock(state_->mutex);
  const std::shared_ptr<Server> known_server = state_->ServerNamed(name);
  Server& server = *known_server;
  lock.unlock();
  std::lock_guard one(server.taking_in);
  lock.lock();
  if (state_->by_number[server.number] != &server) return;  // forgotten meanwhile
  state_->NoteTime(now);
  // Ignores the answer to an older poll than the last one applied. It may come from an earlier life
  // of the server: only the order of our polls tells which of two lives is the later one.
  if (sent < server.last_sent && !any) return;
  const bool known = reply.start_code() == server.start_code;
  if (reply.full()) {
    if (known && reply.to() <= server.applied && !any) return;  // late: we know more
    state_->Clear(&server, &lock);
    server.start_code = reply.start_code();
  } else if (!known || reply.from() > server.applied) {
    return;  // events before it are missing: the next poll asks for them
  }
  server.last_sent = std::max(server.last_sent, sent);
  try {
    state_->ApplyEvents(&server, reply, &lock);
    server.applied = std::max(server.applied, reply.to());
    if (reply.lease_ns() > 0) {
      const Time until = sent + SentDuration(reply.lease_ns()) - state_->options.lease_margin;
      state_->GrantLease(&server, until);
    }
    state_->SettleAll(&lock);
    if (!reply.full() && server.applied == reply.to() && reply.projections_size() > 0) {
      state_->LoadProjections(&server, reply, &lock);
    }
  } catch (const std::bad_alloc&) {
    // A part of the reply is applied. The copy is not used until the server has sent its whole
    // state again, which begins with Clear.
    if (!lock.owns_lock()) lock.lock();
    state_->lease_until[server.number] = Time::min();
    server.start_code = 0;
    server.applied = 0;
    throw;
  }
}

GlobalIndex::Route GlobalIndex::Find(uint32_t table_id, const KeyRanges& keys,
                                     const RoutingTerm& term, Time now) const {
  std::shared_lock lock(state_->mutex);
  Route route;
  auto found = state_->tables.find(table_id);
  if (found == state_->tables.end()) return route;
  RegionBits may = found->second.MayHold(term, RoutedTable::By::kFilters);
  state_->AddWithoutLease(table_id, now, &may);
  route.excluded = found->second.AllBut(may, keys);
  return route;
}

namespace {

std::vector<CellCopies::FirstCell> FirstCellsOf(const CellCopies& copies,
                                                const GlobalIndex::Wanted& wanted, bool largest) {
  if (wanted.cells == nullptr) return {};
  const CellMap& map = *wanted.cells;
  const uint32_t last = wanted.high.empty() ? map.cells() - 1 : map.CellOf(wanted.high);
  return copies.FirstCellsIn(map.version(), map.CellOf(wanted.low), last, largest);
}

// Moves the smallest or largest value of a region to where its cells begin.
void Narrow(const CellMap& map, const CellCopies::FirstCell& begin, bool largest,
            std::optional<std::string>* value) {
  if (!begin.known || !value->has_value()) return;
  if (begin.none) {
    value->reset();
  } else if (!largest) {
    *value = std::max(**value, map.LowestOf(begin.cell));
  } else if (begin.cell + 1 < map.cells()) {
    // Values of the cell are less than any of a later one.
    const std::string above = map.LowestOf(begin.cell + 1);
    if (map.CellOf(above) > begin.cell) *value = std::min(**value, above);
  }
}

}  // namespace

std::vector<GlobalIndex::Bound> GlobalIndex::Bounds(uint32_t table_id, const KeyRanges& keys,
                                                    uint32_t index_id, bool largest, Time now,
                                                    const Wanted& wanted) const {
  std::shared_lock lock(state_->mutex);
  std::vector<Bound> bounds;
  auto found = state_->tables.find(table_id);
  if (found == state_->tables.end()) return bounds;
  auto copies = found->second.indexes.find(index_id);
  if (copies == found->second.indexes.end()) return bounds;
  const TableLayout& layout = found->second.layout;
  RegionBits unknown(layout.slots());
  const Faults& faults = state_->options.faults;
  if (!faults.stale_bounds) state_->AddWithoutLease(table_id, now, &unknown);
  if (!faults.unknown_bounds) copies->second.AddUnknown(&unknown);
  const auto begins = FirstCellsOf(copies->second.cells(), wanted, largest);
  size_t next = 0;  // position; ranges may lie in one region
  for (const KeyRange& range : keys.ranges()) {
    const auto [begin, end] = layout.Positions(range);
    for (size_t i = std::max(begin, next); i < end; ++i) {
      const Slot slot = layout.at(i);
      if (!unknown.Get(slot)) {
        auto value = copies->second.EndOf(slot, largest);
        if (slot < begins.size()) Narrow(*wanted.cells, begins[slot], largest, &value);
        bounds.push_back({layout.range(slot), std::move(value)});
      }
    }
    next = std::max(next, end);
  }
  return bounds;
}

GlobalIndex::Reasons GlobalIndex::Explain(uint32_t table_id, const KeyRanges& keys,
                                          const RoutingTerm& term, const KeyRanges& excluded,
                                          Time now, bool each_excluded) const {
  std::shared_lock lock(state_->mutex);
  Reasons reasons;
  auto found = state_->tables.find(table_id);
  if (found == state_->tables.end()) return reasons;
  const TableLayout& layout = found->second.layout;
  const RegionBits by_range = found->second.MayHold(term, RoutedTable::By::kRanges);
  const RegionBits by_cells = found->second.MayHold(term, RoutedTable::By::kCells);
  const RegionBits by_all = found->second.MayHold(term, RoutedTable::By::kFilters);
  RegionBits unknown(layout.slots());
  state_->AddWithoutLease(table_id, now, &unknown);
  found->second.AddUnknown(term, &unknown);
  size_t next = 0;  // position; ranges may lie in one region
  for (const KeyRange& range : keys.ranges()) {
    const auto [begin, end] = layout.Positions(range);
    for (size_t i = std::max(begin, next); i < end; ++i) {
      ++reasons.regions;
      const Slot slot = layout.at(i);
      const std::string& start = layout.range(slot).start;
      if (!excluded.Contains(std::max(start, range.start))) {
        if (unknown.Get(slot) || !by_all.Get(slot)) {
          ++reasons.unknown;
        } else {
          reasons.candidates.push_back(start);
        }
        continue;
      }
      const Reason reason = !by_range.Get(slot)   ? Reason::kRange
                            : !by_cells.Get(slot) ? Reason::kCells
                                                  : Reason::kFilter;
      ++(reason == Reason::kRange   ? reasons.excluded_by_range
         : reason == Reason::kCells ? reasons.excluded_by_cells
                                    : reasons.excluded_by_filter);
      if (each_excluded) reasons.excluded.emplace_back(start, reason);
    }
    next = std::max(next, end);
  }
  const uint64_t undecided = layout.Undecided(keys);
  reasons.regions += undecided;
  reasons.unknown += undecided;
  return reasons;
}

bool GlobalIndex::IsComplete(uint32_t table_id, const std::vector<uint32_t>& index_ids,
                             Time now) const {
  std::shared_lock lock(state_->mutex);
  auto found = state_->tables.find(table_id);
  if (found == state_->tables.end()) return false;
  const TableLayout& layout = found->second.layout;
  if (!layout.CoversEverything()) return false;
  RegionBits unknown(layout.slots());
  state_->AddWithoutLease(table_id, now, &unknown);
  for (const uint32_t index_id : index_ids) {
    auto copies = found->second.indexes.find(index_id);
    if (copies == found->second.indexes.end()) return false;
    RegionBits of_index(layout.slots());
    copies->second.AddUnknown(&of_index);
    for (const auto& [name, server] : state_->servers) {
      state_->ForEachLeftOut(*server, [&](uint32_t left_out, const Region& region) {
        if (region.table_id == table_id && left_out == index_id) of_index.Unset(region.slot);
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
  auto found = state_->tables.find(table_id);
  if (found == state_->tables.end()) return routed;
  const TableLayout& layout = found->second.layout;
  RegionBits unknown(layout.slots());
  state_->AddWithoutLease(table_id, now, &unknown);
  for (const uint32_t index_id : index_ids) {
    auto copies = found->second.indexes.find(index_id);
    if (copies == found->second.indexes.end()) return routed;
    copies->second.AddUnknown(&unknown);
  }
  for (const auto& [name, server] : state_->servers) {
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
  Stats stats{.servers = state_->servers.size(),
              .matrix_bytes = state_->budget.SizeBytes(),
              .max_bytes = state_->options.max_bytes,
              .events = state_->events};
  for (const auto& [name, server] : state_->servers) {
    if (state_->lease_until[server->number] <= now) ++stats.servers_without_lease;
    stats.regions += server->regions.size();
    stats.indexes_missing += server->missing.size();
    state_->ForEachLeftOut(*server, [&](uint32_t, const Region&) { ++stats.indexes_left_out; });
  }
  for (const auto& [id, table] : state_->tables) {
    stats.regions_aside += table.layout.aside();
    for (const auto& [index_id, copies] : table.indexes) {
      stats.filters_coarse += copies.CoarseColumns();
    }
  }
  return stats;
}

size_t GlobalIndex::SizeBytes() const {
  std::shared_lock lock(state_->mutex);
  return state_->budget.SizeBytes();
}

}  // namespace tamis
