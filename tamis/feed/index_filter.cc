#include "tamis/feed/index_filter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tamis/base/coding.h"
#include "tamis/base/hash.h"

namespace tamis {
namespace {

using ValueRange = std::pair<std::string, std::string>;

constexpr uint64_t kLeastCapacity = 64;  // or what is expected, where that is less
constexpr uint32_t kCells = 1u << 30;    // stands for the layer where a bit is that of a cell

// An event names a bit as layer * 2^32 + position.
uint64_t BitName(uint32_t layer, uint64_t position) {
  return (static_cast<uint64_t>(layer) << 32) | position;
}

bool Covers(const std::optional<ValueRange>& range, std::string_view value) {
  return range.has_value() && range->first <= value && value <= range->second;
}

// Returns whether it has become wider.
bool Widen(std::optional<ValueRange>* range, std::string_view value) {
  if (!range->has_value()) {
    range->emplace(value, value);
  } else if (value < (*range)->first) {
    (*range)->first = value;
  } else if (value > (*range)->second) {
    (*range)->second = value;
  } else {
    return false;
  }
  return true;
}

// Adds the cells from where `from` says on to a projection that has the generation.
void ProjectCells(const CellSet& occupied, const pb::ColumnId& from, size_t max_bytes,
                  pb::Projection* projection) {
  projection->set_cell_count(occupied.cells());
  if (from.generation() == projection->generation() && from.first_cell() < occupied.cells()) {
    projection->set_first_cell(from.first_cell());
  }
  uint32_t end = 0;
  projection->set_cells(occupied.Encode(projection->first_cell(), max_bytes, &end));
  projection->set_end_cell(end);
}

// Bits of a snapshot's first byte.
constexpr uint8_t kHasRange = 1;
constexpr uint8_t kHasCells = 2;
constexpr uint8_t kRangeIsStale = 4;

}  // namespace

EntryKey MakeEntryKey(const IndexSpec& index, std::span<const std::string> prefixes) {
  EntryKey key{.hashes = {}, .first = prefixes.front()};
  key.hashes.reserve(prefixes.size());
  for (const std::string& prefix : prefixes) key.hashes.push_back(Hash(prefix, index.seed));
  return key;
}

IndexFilter::IndexFilter(FilterFeed* feed, const IndexSpec& index, uint64_t region_id,
                         uint64_t epoch, const Faults& faults, std::shared_ptr<FilterBudget> budget)
    : feed_(feed), index_(index), region_id_(region_id), epoch_(epoch), faults_(faults) {
  if (budget != nullptr) share_.emplace(std::move(budget));
}

pb::Event IndexFilter::NewEvent(pb::Event::Kind kind, const Generation& generation) const {
  pb::Event event;
  event.set_kind(kind);
  event.set_region_id(region_id_);
  event.set_epoch(epoch_);
  event.set_index_id(index_.id);
  event.set_generation(generation.number);
  return event;
}

IndexFilter::Generation IndexFilter::NewGeneration(uint64_t number) const {
  const SplitGeometry geometry = current_ ? GeometryFor(current_->filter.Distinct())
                                          : SplitGeometry::For(index_.fpr, index_.expected_values);
  std::optional<RegionCells> cells;
  if (cell_map_ != nullptr) cells.emplace(cell_map_);
  if (!HasRoomFor(geometry)) {
    BitLayers bits(geometry);
    bits.set_erase_bits_for_test(faults_.erase_bits);
    return {.number = number, .filter = IndexCounters(std::move(bits)), .cells = std::move(cells)};
  }
  ScalableSplitCountingBloomFilter counters(geometry, index_.seed);
  counters.set_erase_first_match_for_test(faults_.erase_first_match);
  return {
      .number = number, .filter = IndexCounters(std::move(counters)), .cells = std::move(cells)};
}

// Hysteresis: a filter of bits alone gets counters only if they will not have to be taken away at
// once.
bool IndexFilter::HasRoomFor(SplitGeometry geometry) const {
  const size_t quarters = current_ && current_->filter.bits_only() ? 3 : 4;
  return !share_.has_value() || share_->Fits(IndexCounters::CounterBytes(geometry), quarters);
}

bool IndexFilter::WantsOtherForm() const {
  if (!share_.has_value()) return false;
  const bool bits_only = current_->filter.bits_only();
  // A cheap test that nearly always decides.
  if (share_->Fits(current_->filter.SizeBytes(), bits_only ? 3 : 4) != bits_only) return false;
  return HasRoomFor(GeometryFor(current_->filter.Distinct())) == bits_only;
}

void IndexFilter::Account() {
  if (!share_.has_value()) return;
  share_->Set((current_ ? current_->filter.SizeBytes() : 0) +
              (next_ ? next_->filter.SizeBytes() : 0));
}

SplitGeometry IndexFilter::GeometryFor(uint64_t distinct) const {
  const uint64_t least = std::clamp<uint64_t>(index_.expected_values, 1, kLeastCapacity);
  uint64_t capacity = least;
  for (int half_steps = 1; capacity < distinct && capacity < SplitGeometry::kMaxCapacity;
       ++half_steps) {
    capacity =
        static_cast<uint64_t>(std::ceil(static_cast<double>(least) * std::exp2(half_steps / 2.0)));
  }
  return SplitGeometry::For(index_.fpr, capacity);
}

bool IndexFilter::WantsRecount(const RecountRule& rule) const {
  std::lock_guard lock(mutex_);
  if (next_ || retired_) return false;
  if (!current_) return missing_;
  if (writes_.is_stuck()) return true;
  const auto map_of = [](const std::optional<RegionCells>& cells) {
    return cells.has_value() ? cells->map->version() : 0;
  };
  if (map_of(current_->cells) != (cell_map_ == nullptr ? 0 : cell_map_->version())) return true;
  const auto& filter = current_->filter;
  const uint64_t an_entry = filter.bits_only() ? rule.an_entry_of_bits : rule.an_entry;
  const bool worn = Ignored() >= std::max(rule.least, an_entry * CountedEntries());
  if (worn || WantsOtherForm()) return true;
  const bool small = filter.layers() >= 3;
  const bool large = filter.layers() == 1 && filter.Fill(0) < 0.25 &&
                     (current_->counted || current_->added >= filter.geometry().Capacity());
  // A new generation of the same geometry would gain nothing.
  return (small || large) && GeometryFor(filter.Distinct()) != filter.geometry();
}

uint64_t IndexFilter::distinct() const {
  std::lock_guard lock(mutex_);
  return current_ ? current_->filter.Distinct() : 0;
}

bool IndexFilter::bits_only() const {
  std::lock_guard lock(mutex_);
  return current_ && current_->filter.bits_only();
}

SplitGeometry IndexFilter::geometry() const {
  std::lock_guard lock(mutex_);
  return current_ ? current_->filter.geometry() : SplitGeometry{};
}

uint64_t IndexFilter::AddTo(Generation* generation, std::span<const EntryKey> entries, bool tell) {
  auto& filter = generation->filter;
  generation->as_restored = false;
  for (const EntryKey& entry : entries) generation->added += entry.hashes.size();
  std::vector<uint64_t> flips;
  std::vector<uint32_t> new_cells;
  bool widened = false;
  const size_t layers_before = filter.layers();
  for (const EntryKey& entry : entries) {
    for (const uint64_t hash : entry.hashes) {
      filter.Insert(hash, [&](uint32_t layer, uint64_t position, bool set) {
        flips.push_back(BitName(layer, position) * 2 + (set ? 1 : 0));
      });
    }
    widened |= Widen(&generation->range, entry.first);
    if (!generation->cells.has_value()) continue;
    const uint32_t cell = generation->cells->map->CellOf(entry.first);
    if (generation->cells->occupied.Insert(cell)) new_cells.push_back(cell);
  }
  const bool grown = filter.layers() != layers_before;
  if (grown) Account();
  uint64_t sequence = 0;
  if (!tell) return sequence;
  if (grown) {
    pb::Event event = NewEvent(pb::Event::LAYER_ADDED, *generation);
    event.set_layers(static_cast<uint32_t>(filter.layers()));
    sequence = feed_->Append(std::move(event));
  }
  if (!flips.empty() || !new_cells.empty()) {
    pb::Event event = NewEvent(pb::Event::FLIPS, *generation);
    event.mutable_flips()->Add(flips.begin(), flips.end());
    for (const uint32_t cell : new_cells) event.add_cells(cell * 2 + 1);
    sequence = feed_->Append(std::move(event));
    for (const uint64_t flip : flips) {
      pending_[flip / 2] = sequence;
      pending_order_.emplace_back(sequence, flip / 2);
    }
    for (const uint32_t cell : new_cells) {
      pending_[BitName(kCells, cell)] = sequence;
      pending_order_.emplace_back(sequence, BitName(kCells, cell));
    }
  }
  if (widened) {
    sequence = feed_->Append(RangeEvent(*generation));
    told_ranges_.push_back({sequence, generation->range});
  }
  return sequence;
}

pb::Event IndexFilter::RangeEvent(const Generation& generation) const {
  pb::Event event = NewEvent(pb::Event::RANGE_WIDENED, generation);
  if (generation.range.has_value()) {
    event.set_min(generation.range->first);
    event.set_max(generation.range->second);
    event.set_has_range(true);
  }
  return event;
}

// An entry with this first value goes: whatever of the range and of the cells rests upon it is to
// be looked at.
void IndexFilter::LeaveToClearer(Generation* generation, std::string_view first) {
  const auto& range = generation->range;
  generation->range_stale |= range.has_value() && (first == range->first || first == range->second);
  if (generation->cells.has_value()) {
    generation->cells->removed_from.Insert(generation->cells->map->CellOf(first));
  }
}

std::vector<uint64_t> IndexFilter::RemoveHashes(Generation* generation,
                                                std::span<const EntryKey> entries) {
  generation->as_restored = false;
  std::vector<uint64_t> flips;
  for (const EntryKey& entry : entries) {
    for (const uint64_t hash : entry.hashes) {
      generation->filter.Erase(hash, [&](uint32_t layer, uint64_t position, bool set) {
        flips.push_back(BitName(layer, position) * 2 + (set ? 1 : 0));
      });
    }
  }
  return flips;
}

void IndexFilter::RemoveFrom(Generation* generation, std::span<const EntryKey> entries, bool tell) {
  if (entries.empty()) return;
  for (const EntryKey& entry : entries) LeaveToClearer(generation, entry.first);
  const std::vector<uint64_t> flips = RemoveHashes(generation, entries);
  if (!tell || flips.empty()) return;
  pb::Event event = NewEvent(pb::Event::FLIPS, *generation);
  event.mutable_flips()->Add(flips.begin(), flips.end());
  feed_->Append(std::move(event));
}

// The range is widened and the cell set even for a cancelled entry: the scan may not have reached
// the one that stays.
void IndexFilter::AddWhileCounting(const EntryKey& entry) {
  if (held_removals_.Cancel(entry.hashes)) {
    Widen(&next_->range, entry.first);
    if (next_->cells.has_value()) {
      next_->cells->occupied.Insert(next_->cells->map->CellOf(entry.first));
    }
    return;
  }
  AddTo(next_.get(), std::span(&entry, 1), false);
  held_removals_.Added(entry.hashes);
}

uint64_t IndexFilter::Add(std::span<const EntryKey> entries, Ticket* ticket) {
  std::lock_guard lock(mutex_);
  const Ticket registered = Register(entries);
  if (ticket != nullptr) *ticket = registered;
  DropSpoilt();
  if (next_ && hold_removals_) {
    for (const EntryKey& entry : entries) AddWhileCounting(entry);
  } else if (next_) {
    AddTo(next_.get(), entries, false);
  }
  if (!current_) return 0;
  spoilt_ = !faults_.keep_spoilt_filter;  // where AddTo throws
  const uint64_t sequence = AddTo(current_.get(), entries, true);
  spoilt_ = false;
  return sequence;
}

// Without a generation there is nothing to clear. One that begins later counts what is committed by
// then, and no write is under way when it begins.
IndexFilter::Ticket IndexFilter::Register(std::span<const EntryKey> entries) {
  if (!current_ && !next_) return 0;
  std::vector<std::string> firsts;
  firsts.reserve(entries.size());
  for (const EntryKey& entry : entries) firsts.push_back(entry.first);
  for (const std::string& first : firsts) NoteRegistration(first);
  const Ticket ticket = writes_.Enter(std::move(firsts));
  if (faults_.leave_before_commit) writes_.Leave(ticket);
  return ticket;
}

void IndexFilter::Leave(Ticket ticket) {
  std::lock_guard lock(mutex_);
  writes_.Leave(ticket);
}

void IndexFilter::DropSpoilt() {
  if (!spoilt_) return;
  round_.reset();
  replaced_ = feed_->Append(NewEvent(pb::Event::INDEX_DROPPED, *current_));
  current_.reset();
  spoilt_ = false;
  missing_ = true;
  ForgetTold();
  Account();
}

void IndexFilter::ForgetTold() {
  pending_.clear();
  pending_order_.clear();
  told_ranges_.clear();
  acknowledged_range_.reset();
}

void IndexFilter::Remove(std::span<const EntryKey> entries) {
  std::lock_guard lock(mutex_);
  if (current_) RemoveFrom(current_.get(), entries, true);
  if (!next_) return;
  if (!hold_removals_) return RemoveFrom(next_.get(), entries, false);
  for (const EntryKey& entry : entries) {
    LeaveToClearer(next_.get(), entry.first);
    switch (held_removals_.Remove(entry.hashes)) {
      case HeldRemovals::Removal::kNow:
        RemoveFrom(next_.get(), std::span(&entry, 1), false);
        break;
      case HeldRemovals::Removal::kHeld:
        break;
      case HeldRemovals::Removal::kForgotten:
        ++next_->forgotten;
        break;
    }
  }
}

uint64_t IndexFilter::WaitFor(std::span<const EntryKey> entries) {
  std::lock_guard lock(mutex_);
  DropSpoilt();
  ForgetAcknowledged();
  uint64_t sequence = replaced_;
  if (!current_) return sequence;
  for (const EntryKey& entry : entries) {
    for (const uint64_t hash : entry.hashes) {
      if (pending_.empty()) break;
      const auto layer = current_->filter.FindLayer(hash);
      if (!layer.has_value()) continue;  // a later write has removed the value again
      const SplitGeometry& geometry = current_->filter.geometry();
      for (uint32_t slice = 0; slice < geometry.slices; ++slice) {
        auto bit = pending_.find(BitName(*layer, geometry.Position(hash, slice)));
        if (bit != pending_.end()) sequence = std::max(sequence, bit->second);
      }
    }
    if (current_->cells.has_value() && !pending_.empty()) {
      auto bit = pending_.find(BitName(kCells, current_->cells->map->CellOf(entry.first)));
      if (bit != pending_.end()) sequence = std::max(sequence, bit->second);
    }
    sequence = std::max(sequence, RangeToldAt(entry.first));
  }
  return sequence;
}

// The number of the event from which on every range that coordinators were told of covers the
// value; 0: so does the range that they have applied. Ranges are narrowed, too.
uint64_t IndexFilter::RangeToldAt(std::string_view first) const {
  bool covered = Covers(acknowledged_range_, first);
  uint64_t since = 0;
  for (const ToldRange& told : told_ranges_) {
    const bool covers = Covers(told.range, first);
    if (covers && !covered) since = told.sequence;
    covered = covers;
  }
  return covered ? since : 0;  // a later write has removed the value again, where it is not covered
}

void IndexFilter::ForgetAcknowledged() {
  const uint64_t floor = feed_->AcknowledgedFloor();
  while (!pending_order_.empty() && pending_order_.front().first <= floor) {
    const auto [sequence, bit] = pending_order_.front();
    auto it = pending_.find(bit);
    if (it != pending_.end() && it->second == sequence) pending_.erase(it);
    pending_order_.pop_front();
  }
  while (!told_ranges_.empty() && told_ranges_.front().sequence <= floor) {
    acknowledged_range_ = std::move(told_ranges_.front().range);
    told_ranges_.pop_front();
  }
  if (replaced_ <= floor) replaced_ = 0;
}

void IndexFilter::BeginGeneration(bool hold_removals) {
  std::lock_guard lock(mutex_);
  next_ = std::make_unique<Generation>(NewGeneration(++generations_));
  hold_removals_ = hold_removals;
  held_removals_.Clear();
  writes_.Mark();
  CancelRound();
  Account();
}

void IndexFilter::CountExisting(std::span<const EntryKey> entries) {
  std::lock_guard lock(mutex_);
  if (!next_) return;
  next_->counted = true;
  AddTo(next_.get(), entries, false);
}

void IndexFilter::Retire() {
  std::lock_guard lock(mutex_);
  retired_ = true;
}

void IndexFilter::Publish() {
  std::lock_guard lock(mutex_);
  if (!next_ || retired_) return;
  held_removals_.Drain([this](const HeldRemovals::Hashes& hashes) {
    const EntryKey entry{.hashes = hashes, .first = {}};  // the clearer knows of it already
    RemoveHashes(next_.get(), std::span(&entry, 1));
  });
  pb::Event event = NewEvent(pb::Event::INDEX_COMPLETE, *next_);
  const SplitGeometry& geometry = next_->filter.geometry();
  event.mutable_geometry()->set_slices(geometry.slices);
  event.mutable_geometry()->set_slice_positions(geometry.slice_positions);
  event.set_layers(static_cast<uint32_t>(next_->filter.layers()));
  if (next_->cells.has_value()) {
    event.set_cell_map(next_->cells->map->version());
    event.set_cell_count(next_->cells->map->cells());
  }
  if (next_->range.has_value()) {
    event.set_has_range(true);
    event.set_min(next_->range->first);
    event.set_max(next_->range->second);
  }
  // Coordinators that have not applied the publication exclude nothing by this range.
  std::optional<ValueRange> range = next_->range;
  const uint64_t sequence = feed_->Append(std::move(event));
  // Nothing behind this line takes memory: once the event is appended, the generation is published.
  if (current_) replaced_ = sequence;
  current_ = std::move(next_);
  spoilt_ = missing_ = false;
  ForgetTold();
  acknowledged_range_ = std::move(range);
  writes_.ForgetMarked();
  round_.reset();
  Account();
}

void IndexFilter::AbandonGeneration() {
  std::lock_guard lock(mutex_);
  next_.reset();
  held_removals_.Clear();
  Account();
}

std::optional<std::string> IndexFilter::Snapshot() const {
  std::lock_guard lock(mutex_);
  if (!current_ || current_->filter.bits_only() || current_->forgotten > 0) return std::nullopt;
  std::string body;
  body.push_back(static_cast<char>((current_->range.has_value() ? kHasRange : 0) |
                                   (current_->cells.has_value() ? kHasCells : 0) |
                                   (current_->range_stale ? kRangeIsStale : 0)));
  if (current_->range.has_value()) {
    PutLengthPrefixed(&body, current_->range->first);
    PutLengthPrefixed(&body, current_->range->second);
  }
  if (current_->cells.has_value()) current_->cells->Serialize(&body);
  body += current_->filter.counters()->Serialize();
  std::string bytes;
  PutFixed64(&bytes, Hash(body, 0));
  return bytes + body;
}

bool IndexFilter::RestoreGeneration(std::string_view bytes) {
  Reader reader(bytes);
  const uint64_t checksum = reader.Fixed64();
  if (!reader.ok() || checksum != Hash(reader.rest(), 0)) return false;
  const uint8_t parts = reader.Byte();
  std::optional<ValueRange> range;
  if ((parts & kHasRange) != 0) {
    const std::string_view first = reader.LengthPrefixed();
    const std::string_view second = reader.LengthPrefixed();
    range.emplace(first, second);
  }
  if (!reader.ok() || parts > (kHasRange | kHasCells | kRangeIsStale)) return false;
  std::shared_ptr<const CellMap> map;
  {
    std::lock_guard lock(mutex_);
    map = cell_map_;
  }
  if ((map != nullptr) != ((parts & kHasCells) != 0)) return false;
  std::optional<RegionCells> cells;
  if (map != nullptr) {
    cells = RegionCells::Deserialize(map, &reader);
    if (!cells.has_value()) return false;
  }
  auto filter = ScalableSplitCountingBloomFilter::Deserialize(reader.rest());
  if (!filter.ok() || filter->seed() != index_.seed) return false;
  // Any size: it was made for the region. The rate is that of the index.
  if (filter->geometry().slices != SplitGeometry::For(index_.fpr, 1).slices) return false;
  filter->set_erase_first_match_for_test(faults_.erase_first_match);
  std::lock_guard lock(mutex_);
  if (share_.has_value() && !share_->Fits(filter->SizeBytes(), 4)) return false;
  next_ = std::make_unique<Generation>(Generation{.number = ++generations_,
                                                  .filter = IndexCounters(*std::move(filter)),
                                                  .cells = std::move(cells),
                                                  .range = std::move(range),
                                                  .range_stale = (parts & kRangeIsStale) != 0,
                                                  .as_restored = true,
                                                  .counted = true});
  hold_removals_ = false;
  held_removals_.Clear();
  writes_.Mark();
  Account();
  return true;
}

bool IndexFilter::as_restored() const {
  std::lock_guard lock(mutex_);
  return current_ && current_->as_restored;
}

size_t IndexFilter::SizeBytes() const {
  std::lock_guard lock(mutex_);
  size_t size = 0;
  for (const Generation* generation : {current_.get(), next_.get()}) {
    if (generation == nullptr) continue;
    size += generation->filter.SizeBytes();
    if (generation->cells.has_value()) size += generation->cells->SizeBytes();
  }
  return size;
}

bool IndexFilter::published() const {
  std::lock_guard lock(mutex_);
  return current_ != nullptr;
}

bool IndexFilter::building() const {
  std::lock_guard lock(mutex_);
  return next_ != nullptr;
}

uint64_t IndexFilter::ignored_removals() const {
  std::lock_guard lock(mutex_);
  return current_ ? Ignored() : 0;
}

uint64_t IndexFilter::CountedEntries() const {
  const uint64_t counted = current_->filter.Count() / std::max<size_t>(1, index_.columns.size());
  return counted - std::min(counted, current_->forgotten);
}

uint64_t IndexFilter::Ignored() const {
  return current_->filter.Ignored() + current_->forgotten * index_.columns.size();
}

uint64_t IndexFilter::entries() const {
  std::lock_guard lock(mutex_);
  return current_ ? CountedEntries() : 0;
}

size_t IndexFilter::layers() const {
  std::lock_guard lock(mutex_);
  return current_ ? current_->filter.layers() : 0;
}

size_t IndexFilter::occupied_cells() const {
  std::lock_guard lock(mutex_);
  return current_ && current_->cells.has_value() ? current_->cells->occupied.count() : 0;
}

// ---- Clearing

void IndexFilter::SetCellMap(std::shared_ptr<const CellMap> map) {
  std::lock_guard lock(mutex_);
  cell_map_ = std::move(map);
}

bool IndexFilter::MayClear() const {
  if (!current_ || retired_ || spoilt_) return false;
  const bool complete = clearing_holds_ == 0 || faults_.clear_incomplete;
  return complete && next_ == nullptr;
}

bool IndexFilter::WantsClearing() const {
  std::lock_guard lock(mutex_);
  return MayClear() && (current_->range_stale ||
                        (current_->cells.has_value() && !current_->cells->removed_from.empty()));
}

IndexFilter::Clearing IndexFilter::BeginClearing(size_t max_cells) {
  std::lock_guard lock(mutex_);
  CancelRound();
  if (!MayClear()) return {};
  if (writes_.has_unlisted() && !faults_.clear_amid_writes) return {};
  Round round{.number = rounds_ + 1, .cells = {}, .added = {}};
  std::set<uint32_t> busy;
  if (!faults_.clear_amid_writes) {
    writes_.ForEach([&](const std::string& first) {
      if (current_->cells.has_value()) busy.insert(current_->cells->map->CellOf(first));
      Widen(&round.added, first);
    });
  }
  Clearing clearing{.round = round.number, .map = nullptr, .cells = {}, .range = false};
  if (current_->cells.has_value()) {
    clearing.map = current_->cells->map;
    clearing.cells = TakeCells(busy, max_cells);
    round.cells.insert(clearing.cells.begin(), clearing.cells.end());
  }
  clearing.range = std::exchange(current_->range_stale, false);
  if (clearing.cells.empty() && !clearing.range) return {};
  rounds_ = round.number;
  range_in_round_ = clearing.range;
  round_ = std::move(round);
  return clearing;
}

// Takes cells out of those that entries were removed from, from the one behind the last that was
// taken on, so that cells that are never decided do not keep others waiting.
std::vector<uint32_t> IndexFilter::TakeCells(const std::set<uint32_t>& busy, size_t max_cells) {
  RegionCells& cells = *current_->cells;
  std::vector<uint32_t> taken;
  const uint32_t begin = std::min(next_cell_, cells.map->cells());
  for (const bool from_begin : {true, false}) {
    const uint32_t end = from_begin ? cells.map->cells() : begin;
    for (uint32_t cell = cells.removed_from.Next(from_begin ? begin : 0);
         cell < end && taken.size() < max_cells; cell = cells.removed_from.Next(cell + 1)) {
      if (busy.contains(cell)) continue;
      if (cells.occupied.Contains(cell)) taken.push_back(cell);
      cells.removed_from.Erase(cell);
      next_cell_ = cell + 1;
    }
  }
  std::ranges::sort(taken);
  return taken;
}

// A write registers: it may commit behind the snapshot of the round that is under way.
void IndexFilter::NoteRegistration(std::string_view first) {
  if (!round_.has_value() || faults_.clear_despite_writes) return;
  if (current_ && current_->cells.has_value()) {
    round_->cells.erase(current_->cells->map->CellOf(first));
  }
  Widen(&round_->added, first);
}

// Nothing is cleared by it any more; what it was to look at is to be looked at again.
void IndexFilter::CancelRound() {
  if (!round_.has_value()) return;
  if (current_ && current_->cells.has_value()) {
    for (const uint32_t cell : round_->cells) current_->cells->removed_from.Insert(cell);
  }
  if (current_) current_->range_stale |= range_in_round_;
  round_.reset();
}

void IndexFilter::EndClearing(const Clearing& clearing, const Cleared& cleared) {
  std::lock_guard lock(mutex_);
  if (!round_.has_value() || round_->number != clearing.round || !MayClear()) return;
  const Round round = *std::exchange(round_, std::nullopt);
  if (current_->cells.has_value()) {
    std::vector<uint32_t> empty;
    for (const uint32_t cell : cleared.empty) {
      if (round.cells.contains(cell) || faults_.clear_despite_writes) {
        empty.push_back(cell);
      } else {
        current_->cells->removed_from.Insert(cell);  // a write may have filled it
      }
    }
    for (const uint32_t cell : cleared.undecided) current_->cells->removed_from.Insert(cell);
    ClearCells(empty);
  }
  if (!clearing.range) return;
  if (!cleared.range_known) {
    current_->range_stale = true;
    return;
  }
  std::optional<ValueRange> range = cleared.range;
  if (round.added.has_value()) {
    Widen(&range, round.added->first);
    Widen(&range, round.added->second);
  }
  // A write that bounds it may have been undone meanwhile, when its value was none of the ends.
  if (Narrow(range)) current_->range_stale |= range != cleared.range;
}

void IndexFilter::ClearCells(const std::vector<uint32_t>& cells) {
  pb::Event event = NewEvent(pb::Event::FLIPS, *current_);
  for (const uint32_t cell : cells) {
    if (!current_->cells->occupied.Contains(cell)) continue;
    event.add_cells(cell * 2);
  }
  if (event.cells().empty()) return;
  current_->as_restored = false;
  // A coordinator that is not told goes on asking; so the bits are cleared first.
  for (const uint32_t flip : event.cells()) current_->cells->occupied.Erase(flip / 2);
  feed_->Append(std::move(event));
}

bool IndexFilter::Narrow(const std::optional<ValueRange>& range) {
  if (current_->range == range) return false;
  current_->as_restored = false;
  // Where memory runs out, a coordinator may know the range, and a later write not that it has to
  // wait until the coordinator knows a wider one.
  spoilt_ = !faults_.keep_spoilt_filter;
  current_->range = range;
  const uint64_t sequence = feed_->Append(RangeEvent(*current_));
  told_ranges_.push_back({sequence, range});
  spoilt_ = false;
  return true;
}

void IndexFilter::HoldClearing() {
  std::lock_guard lock(mutex_);
  ++clearing_holds_;
  if (!faults_.clear_incomplete) CancelRound();
}

void IndexFilter::ReleaseClearing() {
  std::lock_guard lock(mutex_);
  --clearing_holds_;
}

// ---- Projections

std::optional<pb::Projection> IndexFilter::Project(const pb::ColumnId& from,
                                                   size_t max_bytes) const {
  std::unique_lock lock(mutex_);
  if (!current_) return std::nullopt;
  pb::Projection projection;
  projection.set_region_id(region_id_);
  projection.set_epoch(epoch_);
  projection.set_index_id(index_.id);
  projection.set_generation(current_->number);
  // Every append for this filter happens under mutex_, so the bits are as of the feed's last
  // number.
  projection.set_as_of(feed_->Last());
  if (current_->range.has_value()) {
    projection.set_has_range(true);
    projection.set_min(current_->range->first);
    projection.set_max(current_->range->second);
  }
  if (from.cells()) {
    if (!current_->cells.has_value()) return std::nullopt;
    projection.set_cell_map(current_->cells->map->version());
    const CellSet occupied = current_->cells->occupied;
    lock.unlock();  // a large set is encoded while writes go on
    ProjectCells(occupied, from, max_bytes, &projection);
    return projection;
  }
  const SplitGeometry& geometry = current_->filter.geometry();
  projection.mutable_geometry()->set_slices(geometry.slices);
  projection.mutable_geometry()->set_slice_positions(geometry.slice_positions);
  const auto layer_count = static_cast<uint32_t>(current_->filter.layers());
  const uint64_t layer_words = (geometry.positions() + 63) / 64;
  projection.set_layer_count(layer_count);
  if (from.generation() == current_->number && from.first_layer() < layer_count &&
      from.first_word() < layer_words) {
    projection.set_first_layer(from.first_layer());
    projection.set_first_word(from.first_word());
  }
  uint64_t words_left = std::max<uint64_t>(1, max_bytes / 8);
  uint64_t word = projection.first_word();
  for (uint32_t layer = projection.first_layer(); layer < layer_count && words_left > 0; ++layer) {
    const std::vector<uint64_t> words = current_->filter.Projection(layer);
    const uint64_t end = word + std::min(words_left, layer_words - word);
    words_left -= end - word;
    std::string* bytes = projection.add_layers();
    bytes->reserve((end - word) * 8);
    for (; word < end; ++word) PutFixed64(bytes, words[word]);
    word = 0;
  }
  return projection;
}

std::optional<uint64_t> IndexFilter::CountBound(std::string_view prefix) const {
  std::lock_guard lock(mutex_);
  if (!current_) return std::nullopt;
  return current_->filter.CountBound(Hash(prefix, index_.seed));
}

bool IndexFilter::MayContain(const EntryKey& entry) const {
  std::lock_guard lock(mutex_);
  if (!current_) return true;
  return Covers(current_->range, entry.first) &&
         (!current_->cells.has_value() ||
          current_->cells->occupied.Contains(current_->cells->map->CellOf(entry.first))) &&
         std::ranges::all_of(entry.hashes, [this](uint64_t hash) {
           return current_->filter.FindLayer(hash).has_value();
         });
}

void IndexFilter::ClearBitsForTest(const EntryKey& entry) {
  std::lock_guard lock(mutex_);
  if (current_) RemoveFrom(current_.get(), std::span(&entry, 1), true);
}

}  // namespace tamis
