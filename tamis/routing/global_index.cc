#include "tamis/routing/global_index.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>

#include "tamis/routing/projection_parts.h"
#include "tamis/routing/region_bits.h"

namespace tamis {
namespace {

// Bounds on what a reply may make us allocate.
constexpr uint32_t kMaxSlicePositions = 1u << 26;
constexpr uint32_t kMaxLayers = 4096;
constexpr int kMaxWanted = 64;  // columns asked for in one poll

struct Region;

// All columns of one index with one geometry.
struct IndexMatrix {
  explicit IndexMatrix(SplitGeometry geometry) : geometry(geometry), matrix(geometry) {}

  SplitGeometry geometry;
  FilterMatrix matrix;
  std::vector<Region*> column_region;
};

// The copy of one index of one region.
struct IndexCopy {
  uint64_t generation = 0;
  SplitGeometry geometry;
  uint32_t layers = 0;
  std::shared_ptr<IndexMatrix> matrix;
  std::vector<FilterMatrix::Column> columns;  // one a layer
  bool loaded = false;                        // the bits are here
  std::unique_ptr<ProjectionParts> arriving;  // until they are
  bool has_range = false;
  std::string min, max;
};

struct Server {
  std::string name;
  uint64_t start_code = 0;
  uint64_t applied = 0;
  Time lease_until{};
  std::map<uint64_t, std::unique_ptr<Region>> regions;
  std::set<std::pair<uint64_t, uint32_t>>
      missing;  // (region, index) whose bits are to be asked for
};

constexpr size_t kNoPosition = ~size_t{0};

struct Region {
  uint64_t id = 0;
  uint64_t epoch = 0;
  uint32_t table_id = 0;
  KeyRange range;
  Server* server = nullptr;
  std::map<uint32_t, IndexCopy> indexes;
  size_t position = kNoPosition;  // in the table's layout
};

// Regions of one table that overlap no other, by start key, and per index which of them lack bits.
struct Table {
  std::vector<Region*> layout;
  std::vector<bool> touches_next;  // layout[i].end == layout[i + 1].start
  std::map<uint32_t, RegionBits> not_loaded;
  uint64_t conflicted = 0;
  bool layout_stale = false;
  bool masks_stale = false;
};

bool Overlap(const KeyRange& a, const KeyRange& b) {
  return (a.end.empty() || b.start < a.end) && (b.end.empty() || a.start < b.end);
}

bool SaneGeometry(const pb::Geometry& geometry) {
  return geometry.slices() >= 1 && geometry.slices() <= SplitGeometry::kMaxSlices &&
         geometry.slice_positions() >= 1 && geometry.slice_positions() <= kMaxSlicePositions;
}

}  // namespace

struct GlobalIndex::State {
  explicit State(Options options) : options(options) {}

  const Options options;
  mutable std::shared_mutex mutex;
  std::map<std::string, std::unique_ptr<Server>> servers;
  // Owned by the copies: a matrix goes with the last of them.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::weak_ptr<IndexMatrix>> matrices;
  std::map<uint32_t, Table> tables;

  // ---- Taking replies in. The caller holds the mutex exclusively.

  Server& ServerNamed(const std::string& name) {
    auto& server = servers[name];
    if (!server) {
      server = std::make_unique<Server>();
      server->name = name;
    }
    return *server;
  }

  std::shared_ptr<IndexMatrix> MatrixOf(uint32_t index_id, SplitGeometry geometry) {
    std::erase_if(matrices, [](const auto& entry) { return entry.second.expired(); });
    auto& known = matrices[{index_id, geometry.slices, geometry.slice_positions}];
    auto matrix = known.lock();
    if (!matrix) known = matrix = std::make_shared<IndexMatrix>(geometry);
    return matrix;
  }

  void AddColumn(Region* region, IndexCopy* copy) {
    const FilterMatrix::Column column = copy->matrix->matrix.Allocate();
    auto& owners = copy->matrix->column_region;
    if (owners.size() <= column) owners.resize(column + 1, nullptr);
    owners[column] = region;
    copy->columns.push_back(column);
  }

  void FreeColumns(IndexCopy* copy) {
    for (const auto column : copy->columns) {
      copy->matrix->column_region[column] = nullptr;
      copy->matrix->matrix.Free(column);
    }
    copy->columns.clear();
    copy->loaded = false;
    copy->arriving.reset();
  }

  void DropRegion(Server* server, uint64_t id) {
    auto found = server->regions.find(id);
    if (found == server->regions.end()) return;
    for (auto& [index_id, copy] : found->second->indexes) {
      FreeColumns(&copy);
      server->missing.erase({id, index_id});
    }
    tables[found->second->table_id].layout_stale = true;
    server->regions.erase(found);
  }

  void Clear(Server* server) {
    while (!server->regions.empty()) DropRegion(server, server->regions.begin()->first);
    server->missing.clear();
    server->lease_until = Time{};
    server->applied = 0;
    server->start_code = 0;
  }

  void OpenRegion(Server* server, const pb::Event& event) {
    DropRegion(server, event.region_id());
    auto region = std::make_unique<Region>();
    region->id = event.region_id();
    region->epoch = event.epoch();
    region->table_id = event.table_id();
    region->range = {event.start(), event.end()};
    region->server = server;
    tables[region->table_id].layout_stale = true;
    server->regions[region->id] = std::move(region);
  }

  void CompleteIndex(Server* server, Region* region, const pb::Event& event) {
    if (!SaneGeometry(event.geometry()) || event.layers() < 1 || event.layers() > kMaxLayers) {
      return DropIndex(server, region, event.index_id());  // what we have is history
    }
    IndexCopy& copy = region->indexes[event.index_id()];
    if (copy.matrix != nullptr) FreeColumns(&copy);
    copy = IndexCopy{};
    copy.generation = event.generation();
    copy.geometry.slices = event.geometry().slices();
    copy.geometry.slice_positions = event.geometry().slice_positions();
    copy.layers = event.layers();
    copy.matrix = MatrixOf(event.index_id(), copy.geometry);
    copy.has_range = event.has_range();
    copy.min = event.min();
    copy.max = event.max();
    server->missing.insert({region->id, event.index_id()});
    tables[region->table_id].masks_stale = true;
  }

  void DropIndex(Server* server, Region* region, uint32_t index_id) {
    auto copy = region->indexes.find(index_id);
    if (copy == region->indexes.end()) return;
    FreeColumns(&copy->second);
    region->indexes.erase(copy);
    server->missing.erase({region->id, index_id});
    tables[region->table_id].masks_stale = true;
  }

  // Events that change bits, layers or the range of a copy; used for what comes behind a
  // projection, too. False when the copy cannot hold what they say: it must not exclude any more.
  [[nodiscard]] bool ApplyToCopy(Region* region, IndexCopy* copy, const pb::Event& event) {
    if (event.generation() != copy->generation) return true;
    switch (event.kind()) {
      case pb::Event::LAYER_ADDED:
        if (event.layers() > kMaxLayers) return false;
        copy->layers = std::max(copy->layers, event.layers());
        while (copy->loaded && copy->columns.size() < copy->layers) AddColumn(region, copy);
        break;
      case pb::Event::FLIPS:
        if (!copy->loaded && !copy->arriving) break;
        for (const uint64_t flip : event.flips()) {
          const uint64_t layer = flip >> 33;
          const uint64_t position = (flip >> 1) & 0xffffffffu;
          if (copy->arriving) copy->arriving->Flip(layer, position, (flip & 1) != 0);
          if (!copy->loaded) continue;
          if (layer >= copy->columns.size() || position >= copy->geometry.positions()) return false;
          copy->matrix->matrix.Set(copy->columns[layer], position, (flip & 1) != 0);
        }
        break;
      case pb::Event::RANGE_WIDENED:
        copy->has_range = true;
        copy->min = event.min();
        copy->max = event.max();
        break;
      default:
        break;
    }
    return true;
  }

  void ApplyEvent(Server* server, const pb::Event& event) {
    if (event.kind() == pb::Event::REGION_OPENED) {
      OpenRegion(server, event);
      return;
    }
    auto found = server->regions.find(event.region_id());
    if (found == server->regions.end() || found->second->epoch != event.epoch()) return;
    Region* region = found->second.get();
    switch (event.kind()) {
      case pb::Event::REGION_CLOSED:
        DropRegion(server, event.region_id());
        break;
      case pb::Event::INDEX_COMPLETE:
        CompleteIndex(server, region, event);
        break;
      case pb::Event::INDEX_DROPPED:
        DropIndex(server, region, event.index_id());
        break;
      default:
        if (auto copy = region->indexes.find(event.index_id()); copy != region->indexes.end()) {
          if (!ApplyToCopy(region, &copy->second, event)) DropIndex(server, region, copy->first);
        }
    }
  }

  // REQUIRES: all events of the reply are applied, so that the copy is as of reply.to.
  void LoadProjection(Server* server, const pb::Projection& projection,
                      const pb::PollReply& reply) {
    auto found = server->regions.find(projection.region_id());
    if (found == server->regions.end() || found->second->epoch != projection.epoch()) return;
    Region* region = found->second.get();
    auto index = region->indexes.find(projection.index_id());
    if (index == region->indexes.end()) return;
    IndexCopy& copy = index->second;
    // The events of the reply lead from the number of the bits to where the copy stands.
    const bool young = projection.as_of() > reply.to() && !options.faults.young_projections;
    if (copy.loaded || young || projection.as_of() < reply.from()) return;
    if (!copy.arriving) {
      copy.arriving = std::make_unique<ProjectionParts>(copy.geometry, copy.generation, kMaxLayers);
    }
    if (!copy.arriving->Add(projection)) return;
    if (copy.arriving->complete()) {
      copy.layers = 0;
      for (const std::vector<uint64_t>& layer : copy.arriving->layers()) {
        AddColumn(region, &copy);
        copy.matrix->matrix.Load(copy.columns.back(), layer);
        ++copy.layers;
      }
      copy.has_range = projection.has_range();
      copy.min = projection.min();
      copy.max = projection.max();
      copy.arriving.reset();
      copy.loaded = true;
    }
    for (const pb::Event& event : reply.events()) {
      if (event.sequence() > projection.as_of() && event.region_id() == region->id &&
          event.epoch() == region->epoch && event.index_id() == projection.index_id() &&
          !options.faults.parts_without_replay) {
        if (!ApplyToCopy(region, &copy, event)) {
          return DropIndex(server, region, projection.index_id());
        }
      }
    }
    if (!copy.loaded) return;
    server->missing.erase({region->id, projection.index_id()});
    tables[region->table_id].masks_stale = true;
  }

  // ---- Layout

  std::vector<Region*> RegionsOf(uint32_t table_id) {
    std::vector<Region*> regions;
    for (auto& [name, server] : servers) {
      for (auto& [id, region] : server->regions) {
        if (region->table_id == table_id) regions.push_back(region.get());
      }
    }
    std::ranges::sort(regions, [](const Region* a, const Region* b) {
      return std::tie(a->range.start, a->epoch) < std::tie(b->range.start, b->epoch);
    });
    return regions;
  }

  // Where regions of two servers overlap, one of them is history. The older one is forgotten once
  // the lease of its server is over; until then neither can exclude anything.
  bool ForgetOverlapped(uint32_t table_id, Time now) {
    const std::vector<Region*> regions = RegionsOf(table_id);
    for (size_t i = 0; i < regions.size(); ++i) {
      for (size_t j = i + 1; j < regions.size() && Overlap(regions[i]->range, regions[j]->range);
           ++j) {
        Region* older = regions[i]->epoch < regions[j]->epoch ? regions[i] : regions[j];
        if (older->server->lease_until > now) continue;
        DropRegion(older->server, older->id);
        return true;
      }
    }
    return false;
  }

  void RebuildLayout(uint32_t table_id, Table* table, Time now) {
    while (ForgetOverlapped(table_id, now)) {
    }
    const std::vector<Region*> regions = RegionsOf(table_id);
    std::vector<bool> conflicted(regions.size(), false);
    size_t widest = 0;  // the region before i that reaches furthest
    for (size_t i = 1; i < regions.size(); ++i) {
      if (Overlap(regions[widest]->range, regions[i]->range)) {
        conflicted[widest] = conflicted[i] = true;
      }
      const std::string& end = regions[widest]->range.end;
      if (!end.empty() && (regions[i]->range.end.empty() || regions[i]->range.end > end))
        widest = i;
    }
    table->layout.clear();
    table->conflicted = 0;
    for (size_t i = 0; i < regions.size(); ++i) {
      regions[i]->position = conflicted[i] ? kNoPosition : table->layout.size();
      if (conflicted[i]) {
        ++table->conflicted;
      } else {
        table->layout.push_back(regions[i]);
      }
    }
    table->touches_next.assign(table->layout.size(), false);
    for (size_t i = 0; i + 1 < table->layout.size(); ++i) {
      table->touches_next[i] = table->layout[i]->range.end == table->layout[i + 1]->range.start;
    }
    table->layout_stale = table->conflicted > 0;  // look again: leases run out
    table->masks_stale = true;
  }

  static void RebuildMasks(Table* table) {
    std::map<uint32_t, RegionBits> loaded;
    for (size_t i = 0; i < table->layout.size(); ++i) {
      for (const auto& [index_id, copy] : table->layout[i]->indexes) {
        if (!copy.loaded) continue;
        loaded.try_emplace(index_id, table->layout.size()).first->second.Set(i);
      }
    }
    table->not_loaded.clear();
    for (const auto& [index_id, bits] : loaded) {
      RegionBits missing(table->layout.size());
      for (size_t i = bits.Find(0, false); i < bits.size(); i = bits.Find(i + 1, false))
        missing.Set(i);
      table->not_loaded.emplace(index_id, std::move(missing));
    }
    table->masks_stale = false;
  }

  void Refresh(Time now) {
    std::erase_if(tables, [](const auto& entry) {
      return !entry.second.layout_stale && entry.second.layout.empty();
    });
    for (auto& [id, table] : tables) {
      if (table.layout_stale) RebuildLayout(id, &table, now);
      if (table.masks_stale) RebuildMasks(&table);
    }
  }

  // ---- Answering. The caller holds the mutex, shared suffices.

  // Bit i: the region at position i may hold a matching row. `probe` false: by ranges only.
  RegionBits MayHold(const Table& table, const RoutingTerm& term, bool probe) const {
    const size_t n = table.layout.size();
    switch (term.kind) {
      case RoutingTerm::Kind::kAll:
        return RegionBits(n, true);
      case RoutingTerm::Kind::kNone:
        return RegionBits(n, false);
      case RoutingTerm::Kind::kAnd: {
        RegionBits all(n, true);
        for (const auto& child : term.children) all &= MayHold(table, child, probe);
        return all;
      }
      case RoutingTerm::Kind::kOr: {
        RegionBits any(n, false);
        for (const auto& child : term.children) any |= MayHold(table, child, probe);
        return any;
      }
      case RoutingTerm::Kind::kRange:
        return InRange(table, term, [&](const IndexCopy& copy) {
          return copy.max >= term.low && (term.high.empty() || copy.min < term.high);
        });
      case RoutingTerm::Kind::kValue: {
        const auto covers = [&](const IndexCopy& copy) {
          return copy.min <= term.first && term.first <= copy.max;
        };
        return probe ? Probed(table, term, covers) : InRange(table, term, covers);
      }
    }
    return RegionBits(n, true);
  }

  template <class Covers>
  RegionBits InRange(const Table& table, const RoutingTerm& term, const Covers& covers) const {
    auto missing = table.not_loaded.find(term.index_id);
    if (missing == table.not_loaded.end()) return RegionBits(table.layout.size(), true);
    RegionBits may = missing->second;
    for (size_t i = may.Find(0, false); i < may.size(); i = may.Find(i + 1, false)) {
      const IndexCopy& copy = table.layout[i]->indexes.at(term.index_id);
      if (copy.has_range && covers(copy)) may.Set(i);
    }
    return may;
  }

  template <class Covers>
  RegionBits Probed(const Table& table, const RoutingTerm& term, const Covers& covers) const {
    auto missing = table.not_loaded.find(term.index_id);
    if (missing == table.not_loaded.end()) return RegionBits(table.layout.size(), true);
    RegionBits may = missing->second;
    std::vector<uint64_t> columns;
    for (auto it = matrices.lower_bound({term.index_id, 0, 0});
         it != matrices.end() && std::get<0>(it->first) == term.index_id; ++it) {
      const auto shared = it->second.lock();
      if (!shared) continue;
      const IndexMatrix& matrix = *shared;
      matrix.matrix.Probe(term.hash, &columns);
      for (size_t word = 0; word < columns.size(); ++word) {
        for (uint64_t bits = columns[word]; bits != 0; bits &= bits - 1) {
          const size_t column = word * 64 + static_cast<size_t>(std::countr_zero(bits));
          const Region* region =
              column < matrix.column_region.size() ? matrix.column_region[column] : nullptr;
          if (region == nullptr || region->position >= may.size()) continue;
          const IndexCopy& copy = region->indexes.at(term.index_id);
          if (copy.has_range && covers(copy)) may.Set(region->position);
        }
      }
    }
    return may;
  }

  RegionBits WithoutLease(const Table& table, Time now) const {
    RegionBits dead(table.layout.size());
    for (const auto& [name, server] : servers) {
      if (server->lease_until > now) continue;
      for (const auto& [id, region] : server->regions) {
        if (region->position != kNoPosition && region->position < table.layout.size() &&
            table.layout[region->position] == region.get()) {
          dead.Set(region->position);
        }
      }
    }
    return dead;
  }

  // Regions of which an index that the term names has no bits here.
  static void AddUnknown(const Table& table, const RoutingTerm& term, RegionBits* unknown) {
    for (const auto& child : term.children) AddUnknown(table, child, unknown);
    if (term.kind != RoutingTerm::Kind::kValue && term.kind != RoutingTerm::Kind::kRange) return;
    auto missing = table.not_loaded.find(term.index_id);
    *unknown |=
        missing != table.not_loaded.end() ? missing->second : RegionBits(table.layout.size(), true);
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
  for (const auto& [region_id, index_id] : server.missing) {
    if (request.wanted_size() >= kMaxWanted) break;
    auto* wanted = request.add_wanted();
    wanted->set_region_id(region_id);
    wanted->set_index_id(index_id);
    const IndexCopy& copy = server.regions.at(region_id)->indexes.at(index_id);
    wanted->set_generation(copy.generation);
    if (copy.arriving) copy.arriving->Describe(wanted);
  }
  return request;
}

void GlobalIndex::Forget(const std::string& name, Time now) {
  std::unique_lock lock(state_->mutex);
  auto found = state_->servers.find(name);
  if (found == state_->servers.end()) return;
  state_->Clear(found->second.get());
  state_->servers.erase(found);
  state_->Refresh(now);
}

void GlobalIndex::Apply(const std::string& name, const pb::PollReply& reply, Time sent, Time now) {
  std::unique_lock lock(state_->mutex);
  Server& server = state_->ServerNamed(name);
  if (reply.start_code() < server.start_code) return;  // of an earlier life of the server
  const bool known = reply.start_code() == server.start_code;
  if (reply.full()) {
    if (known && reply.to() <= server.applied && !state_->options.faults.ignore_sequence) {
      return;  // late: we know more
    }
    state_->Clear(&server);
    server.start_code = reply.start_code();
  } else if (!known || reply.from() > server.applied) {
    return;  // events before it are missing: the next poll asks for them
  }
  for (const pb::Event& event : reply.events()) {
    const bool is_new = event.sequence() > server.applied || state_->options.faults.ignore_sequence;
    if (reply.full() || is_new) state_->ApplyEvent(&server, event);
  }
  server.applied = std::max(server.applied, reply.to());
  if (!reply.full() && server.applied == reply.to()) {
    for (const pb::Projection& projection : reply.projections()) {
      state_->LoadProjection(&server, projection, reply);
    }
  }
  if (reply.lease_ns() > 0) {
    const Time until = sent + Duration(reply.lease_ns()) - state_->options.lease_margin;
    server.lease_until = std::max(server.lease_until, until);
  }
  state_->Refresh(now);
}

GlobalIndex::Route GlobalIndex::Find(uint32_t table_id, const KeyRanges& keys,
                                     const RoutingTerm& term, Time now) const {
  std::shared_lock lock(state_->mutex);
  Route route;
  auto found = state_->tables.find(table_id);
  if (found == state_->tables.end()) return route;
  const Table& table = found->second;
  const auto& layout = table.layout;

  const RegionBits dead = state_->WithoutLease(table, now);
  RegionBits may = state_->MayHold(table, term, true);
  may |= dead;
  RegionBits in_range = state_->MayHold(table, term, false);
  in_range |= dead;
  RegionBits unknown = dead;
  State::AddUnknown(table, term, &unknown);

  route.unknown = table.conflicted;
  route.regions = table.conflicted;
  for (const KeyRange& range : keys.ranges()) {
    auto first = std::ranges::upper_bound(layout, range.start, {},
                                          [](const Region* r) { return r->range.start; });
    if (first != layout.begin() && Overlap((*std::prev(first))->range, range)) --first;
    const size_t begin = static_cast<size_t>(first - layout.begin());
    size_t end = layout.size();
    if (!range.end.empty()) {
      end = static_cast<size_t>(
          std::ranges::lower_bound(layout, range.end, {},
                                   [](const Region* r) { return r->range.start; }) -
          layout.begin());
    }
    if (begin >= end) continue;
    route.regions += end - begin;
    size_t excluded = 0;
    for (size_t i = may.Find(begin, false); i < end;) {
      size_t last = i;  // of a run of excluded regions that touch each other
      while (last + 1 < end && !may.Get(last + 1) && table.touches_next[last]) ++last;
      route.excluded.Add({layout[i]->range.start, layout[last]->range.end});
      excluded += last - i + 1;
      i = may.Find(last + 1, false);
    }
    const size_t by_range = (end - begin) - in_range.Count(begin, end);
    route.excluded_by_range += by_range;
    route.excluded_by_filter += excluded - by_range;
    for (size_t i = may.Find(begin, true); i < end; i = may.Find(i + 1, true)) {
      route.candidates.push_back(layout[i]->range.start);
      if (unknown.Get(i)) ++route.unknown;
    }
  }
  return route;
}

bool GlobalIndex::IsComplete(uint32_t table_id, const std::vector<uint32_t>& index_ids,
                             Time now) const {
  std::shared_lock lock(state_->mutex);
  auto found = state_->tables.find(table_id);
  if (found == state_->tables.end()) return false;
  const Table& table = found->second;
  if (table.layout.empty() || table.conflicted > 0) return false;
  if (!table.layout.front()->range.start.empty() || !table.layout.back()->range.end.empty())
    return false;
  for (size_t i = 0; i + 1 < table.layout.size(); ++i) {
    if (!table.touches_next[i]) return false;
  }
  if (state_->WithoutLease(table, now).Find(0, true) < table.layout.size()) return false;
  return std::ranges::all_of(index_ids, [&](uint32_t index_id) {
    auto missing = table.not_loaded.find(index_id);
    return missing != table.not_loaded.end() &&
           missing->second.Find(0, true) >= table.layout.size();
  });
}

size_t GlobalIndex::SizeBytes() const {
  std::shared_lock lock(state_->mutex);
  size_t size = 0;
  for (const auto& [key, known] : state_->matrices) {
    if (const auto matrix = known.lock()) size += matrix->matrix.SizeBytes();
  }
  return size;
}

}  // namespace tamis
