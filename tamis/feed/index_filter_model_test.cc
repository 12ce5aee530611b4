// A coordinator that knows a filter by its events alone, at every number of the feed: its copy has
// the bits of the filter, and the copy of the number that WaitFor returns holds the entry. Writes
// are under way for some time, and so are searches for what removals have emptied. Now and then
// memory runs out.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <new>
#include <optional>
#include <set>

#include "tamis/base/coding.h"
#include "tamis/base/random.h"
#include "tamis/base/testing/failing_allocations.h"
#include "tamis/base/testing/sim_executor.h"
#include "tamis/feed/index_filter.h"

namespace tamis {
namespace {

constexpr uint64_t kRegion = 11, kEpoch = 12;
constexpr uint32_t kIndex = 13;
constexpr uint64_t kReader = 1, kCoordinator = 2;

// The filter as a coordinator knows it.
struct Copy {
  bool published = false;
  uint64_t generation = 0;
  SplitGeometry geometry;
  std::vector<std::vector<uint64_t>> layers;  // words
  std::optional<std::pair<std::string, std::string>> range;
  std::shared_ptr<const CellMap> map;
  std::set<uint32_t> cells;

  void SetLayers(uint32_t count) {
    layers.resize(count, std::vector<uint64_t>((geometry.positions() + 63) / 64));
  }
  void SetRange(const pb::Event& event) {
    range.reset();
    if (event.has_range()) range.emplace(event.min(), event.max());
  }
  void FlipCell(uint32_t flip) {
    ASSERT_TRUE(map != nullptr && flip / 2 < map->cells());
    EXPECT_TRUE(flip % 2 == 1 ? cells.insert(flip / 2).second : cells.erase(flip / 2) == 1);
  }
  void Flip(uint64_t flip) {
    const uint64_t layer = flip >> 33, position = (flip >> 1) & 0xffffffffu;
    ASSERT_LT(layer, layers.size());
    ASSERT_LT(position, geometry.positions());
    uint64_t& word = layers[layer][position / 64];
    const uint64_t bit = uint64_t{1} << (position % 64);
    EXPECT_EQ((word & bit) != 0, (flip & 1) == 0) << "a flip changes its bit";
    word ^= bit;
  }
  bool MayHold(const EntryKey& entry) const {
    if (!published) return true;
    if (!range.has_value() || entry.first < range->first || range->second < entry.first) {
      return false;
    }
    if (map != nullptr && !cells.contains(map->CellOf(entry.first))) return false;
    return std::ranges::all_of(entry.hashes, [this](uint64_t hash) {
      return std::ranges::any_of(layers, [&](const std::vector<uint64_t>& words) {
        for (uint32_t slice = 0; slice < geometry.slices; ++slice) {
          const uint64_t position = geometry.Position(hash, slice);
          if ((words[position / 64] >> (position % 64) & 1) == 0) return false;
        }
        return true;
      });
    });
  }
};

struct Tally {
  uint64_t waited = 0, waited_for_range = 0, layers = 0, publications = 0, bits_only = 0,
           restored = 0, short_of_memory = 0, dropped = 0, cleared = 0, narrowed = 0, refitted = 0;
};

class ModelRun {
 public:
  ModelRun(uint64_t seed, Tally* tally) : random_(seed), tally_(tally) {
    index_ = {.id = kIndex,
              .name = "i",
              .columns = {0, 1},
              .fpr = random_.OneIn(2) ? 0.3 : 0.02,
              .expected_values = 1 + random_.Uniform(100),
              .seed = seed};
    values_ = 2 + static_cast<int>(random_.Uniform(60));
    if (random_.OneIn(2)) {
      budget_ = std::make_shared<FilterBudget>(400 + random_.Uniform(2000));
      others_.emplace(budget_);
    }
    filter_.emplace(feed_.get(), index_, kRegion, kEpoch, Faults{}, budget_);
    Refit();
    Poll(kReader, 0);
    Poll(kCoordinator, 0);
  }

  void Steps(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      Step();
      ReadEvents();
      Check();
    }
    filter_.reset();
    others_.reset();
    EXPECT_EQ(budget_ ? budget_->used_bytes() : 0, 0u);
  }

 private:
  using Value = std::pair<int, int>;

  EntryKey KeyOf(const Value& value) const {
    const std::string first = "v" + std::to_string(value.first);
    const std::vector<std::string> prefixes = {first, first + "/" + std::to_string(value.second)};
    return MakeEntryKey(index_, prefixes);
  }
  Value AnyValue() {
    return {static_cast<int>(random_.Uniform(values_)), static_cast<int>(random_.Uniform(3))};
  }
  Value AnyStanding() {
    return *std::next(standing_.begin(), static_cast<ptrdiff_t>(random_.Uniform(standing_.size())));
  }

  // The coordinator has a lease that does not end; the reader has none, so nothing waits for it.
  pb::PollReply Poll(uint64_t coordinator, uint64_t applied) {
    pb::PollRequest request;
    request.set_coordinator(coordinator);
    request.set_start_code(1);
    request.set_applied(applied);
    std::optional<pb::PollReply> reply;
    feed_->Poll(
        request,
        [=, this] {
          return coordinator == kReader ? Time{} : executor_.Now() + std::chrono::hours(1);
        },
        [&](Result<pb::PollReply> answer) { reply.emplace(std::move(*answer)); });
    return *reply;
  }

  // Another cell map, or none, for the generations to come.
  void Refit() {
    std::shared_ptr<const CellMap> map;
    if (!random_.OneIn(4)) {
      std::vector<std::string> sample;
      for (int i = 0; i < values_; ++i) sample.push_back("v" + std::to_string(i));
      std::ranges::sort(sample);
      const CellMap::FitOptions options{.cells = static_cast<uint32_t>(1 + random_.Uniform(90)),
                                        .knots = 2 + random_.Uniform(9)};
      map = std::make_shared<const CellMap>(CellMap::Fit(sample, options));
      maps_[map->version()] = map;
    }
    filter_->SetCellMap(map);
  }

  void Step() {
    switch (random_.Uniform(21)) {
      case 0:
        return BeginOrGoOn();
      case 1:
        if (others_) others_->Set(random_.Uniform(2 * budget_->max_bytes()));
        return;
      case 2:
        acked_ += random_.Uniform(feed_->Last() - acked_ + 1);
        Poll(kCoordinator, acked_);
        return;
      case 3:
        if (random_.OneIn(8)) Restore();
        return;
      case 4:
      case 5:
      case 6:
      case 7:
        return Remove();
      case 8:
      case 9:
        if (!to_count_.empty()) return CountSome();
        [[fallthrough]];
      case 10:
      case 11:
        return clearing_.round == 0 ? BeginClearing() : EndClearing();
      case 12:
        return Commit();
      case 13:
        return RemoveAnEnd();
      default:
        return Add();
    }
  }

  void BeginClearing() {
    clearing_ = filter_->BeginClearing(1 + random_.Uniform(8));
    snapshot_ = standing_;
  }
  void EndClearing() {
    IndexFilter::Cleared cleared{.range_known = !random_.OneIn(4)};
    std::set<uint32_t> occupied;
    for (const Value& value : snapshot_) {
      const std::string first = KeyOf(value).first;
      if (clearing_.map != nullptr) occupied.insert(clearing_.map->CellOf(first));
      if (!cleared.range.has_value()) cleared.range.emplace(first, first);
      cleared.range->first = std::min(cleared.range->first, first);
      cleared.range->second = std::max(cleared.range->second, first);
    }
    for (const uint32_t cell : clearing_.cells) {
      if (random_.OneIn(6)) {
        cleared.undecided.push_back(cell);
      } else if (!occupied.contains(cell)) {
        cleared.empty.push_back(cell);
      }
    }
    filter_->EndClearing(clearing_, cleared);
    clearing_ = {};
  }

  void Add() {
    std::vector<EntryKey> keys;
    std::vector<Value> values;
    for (uint64_t n = 1 + random_.Uniform(3); n > 0; --n) {
      values.push_back(AnyValue());
      keys.push_back(KeyOf(values.back()));
    }
    const uint64_t before = feed_->Last();
    uint64_t told = 0;
    IndexFilter::Ticket ticket = 0;
    if (!DoShortOfMemory([&] { told = filter_->Add(keys, &ticket); })) {
      filter_->Leave(ticket);
      return AfterFailedAdd();
    }
    EXPECT_EQ(told, feed_->Last() == before ? 0 : feed_->Last());
    under_way_.emplace_back(ticket, std::move(values));
    if (!random_.OneIn(3)) Commit();
  }

  // Commits one of the writes that are under way.
  void Commit() {
    if (under_way_.empty()) return;
    const auto write = under_way_.begin() + random_.Uniform(under_way_.size());
    const auto [ticket, values] = *write;
    under_way_.erase(write);
    standing_.insert(values.begin(), values.end());
    filter_->Leave(ticket);
    ReadEvents();
    for (const Value& value : values) CheckWait(KeyOf(value));
  }

  // Calls fn; now and then one of its allocations fails. False: that made it fail.
  template <class Fn>
  bool DoShortOfMemory(Fn fn) {
    if (!random_.OneIn(12)) {
      fn();
      return true;
    }
    try {
      const FailingAllocations failing(random_.Uniform(30), /*only_one=*/true);
      fn();
      return true;
    } catch (const std::bad_alloc&) {
      ++tally_->short_of_memory;
      return false;
    }
  }

  // The entries are not committed. The next call of a writer drops a filter that has bits which no
  // event tells of, and asks for another one.
  void AfterFailedAdd() {
    current_is_exact_ = next_is_exact_ = false;
    const bool was_published = filter_->published();
    const uint64_t number = filter_->WaitFor({});
    if (!was_published || filter_->published()) return;
    ++tally_->dropped;
    EXPECT_EQ(number, feed_->Last());
    EXPECT_EQ(filter_->WantsRecount({}), !filter_->building());
  }

  void Remove() {
    if (!standing_.empty()) Remove(AnyStanding());
  }
  // All entries of the smallest value, or of some other one.
  void RemoveAnEnd() {
    if (standing_.empty()) return;
    const int first = random_.OneIn(2) ? standing_.begin()->first : AnyStanding().first;
    while (true) {
      const auto found = std::ranges::find(standing_, first, &Value::first);
      if (found == standing_.end()) return;
      Remove(Value(*found));
    }
  }
  void Remove(const Value& value) {
    standing_.erase(standing_.find(value));
    const EntryKey key = KeyOf(value);
    filter_->Remove(std::span(&key, 1));
  }

  void BeginOrGoOn() {
    if (filter_->building()) {
      if (random_.OneIn(6)) {
        filter_->AbandonGeneration();
        to_count_.clear();
      }
      return;
    }
    while (!under_way_.empty()) Commit();
    if (random_.OneIn(3)) Refit();
    const bool hold_removals = random_.OneIn(2);
    next_is_exact_ = true;
    filter_->BeginGeneration(hold_removals);
    EXPECT_TRUE(filter_->building());
    to_count_.assign(standing_.begin(), standing_.end());
    if (!hold_removals) {
      while (!to_count_.empty()) CountOne();
    }
    publish_ = true;
  }
  void CountOne() {
    const EntryKey key = KeyOf(to_count_.back());
    to_count_.pop_back();
    filter_->CountExisting(std::span(&key, 1));
  }
  void CountSome() {
    for (uint64_t n = 1 + random_.Uniform(8); n > 0 && !to_count_.empty(); --n) CountOne();
  }
  void Restore() {
    if (filter_->building()) return;
    while (!under_way_.empty()) Commit();
    const std::optional<std::string> bytes = filter_->Snapshot();
    if (!bytes.has_value() || !filter_->RestoreGeneration(*bytes)) return;
    ++tally_->restored;
    next_is_exact_ = current_is_exact_;
    filter_->Publish();
    EXPECT_FALSE(filter_->building());
    EXPECT_TRUE(filter_->as_restored());
    EXPECT_EQ(filter_->Snapshot(), bytes);
  }
  void Publish() {
    if (!DoShortOfMemory([&] { filter_->Publish(); })) {
      filter_->AbandonGeneration();
      return;
    }
    EXPECT_FALSE(filter_->building());
    current_is_exact_ = next_is_exact_;
    ++tally_->publications;
    tally_->bits_only += filter_->bits_only();
  }

  // The copies as of each number that there is.
  void ReadEvents() {
    if (filter_->building() && to_count_.empty() && publish_ && random_.OneIn(3)) {
      Publish();
      publish_ = false;
    }
    const pb::PollReply reply = Poll(kReader, copies_.size() - 1);
    ASSERT_FALSE(reply.full() && reply.to() > 0);
    for (const pb::Event& event : reply.events()) {
      ASSERT_EQ(event.sequence(), copies_.size());
      copies_.push_back(copies_.back());
      Apply(event, &copies_.back());
    }
  }
  void Apply(const pb::Event& event, Copy* copy) {
    EXPECT_EQ(event.region_id(), kRegion);
    EXPECT_EQ(event.epoch(), kEpoch);
    EXPECT_EQ(event.index_id(), kIndex);
    if (event.kind() == pb::Event::INDEX_COMPLETE) {
      EXPECT_GT(event.generation(), generation_);
      generation_ = event.generation();
      *copy = {.published = true, .generation = generation_};
      copy->geometry = {event.geometry().slices(), event.geometry().slice_positions()};
      copy->SetLayers(event.layers());
      copy->SetRange(event);
      if (event.cell_map() != 0) {
        copy->map = maps_.at(event.cell_map());
        EXPECT_EQ(copy->map->cells(), event.cell_count());
        const pb::Projection cells = ProjectCells();
        CellSet set(event.cell_count());
        ASSERT_TRUE(set.Decode(cells.cells(), 0, cells.end_cell()));
        for (uint32_t c = set.Next(0); c < set.cells(); c = set.Next(c + 1)) copy->cells.insert(c);
        ++tally_->refitted;
      }
      const pb::Projection bits = *filter_->Project();
      ASSERT_EQ(bits.as_of(), event.sequence()) << "the test reads right after a publication";
      for (int layer = 0; layer < bits.layers_size(); ++layer) {
        Reader reader(bits.layers(layer));
        for (uint64_t& word : copy->layers[static_cast<size_t>(layer)]) word = reader.Fixed64();
      }
      return;
    }
    EXPECT_EQ(event.generation(), copy->generation);
    switch (event.kind()) {
      case pb::Event::LAYER_ADDED:
        EXPECT_GT(event.layers(), copy->layers.size());
        ++tally_->layers;
        return copy->SetLayers(event.layers());
      case pb::Event::FLIPS:
        for (const uint64_t flip : event.flips()) copy->Flip(flip);
        for (const uint32_t flip : event.cells()) {
          copy->FlipCell(flip);
          tally_->cleared += flip % 2 == 0;
        }
        return;
      case pb::Event::INDEX_DROPPED:
        *copy = {};
        return;
      case pb::Event::RANGE_WIDENED:
        tally_->narrowed +=
            !event.has_range() || (copy->range.has_value() && (event.min() > copy->range->first ||
                                                               event.max() < copy->range->second));
        return copy->SetRange(event);
      default:
        FAIL() << event.ShortDebugString();
    }
  }

  pb::Projection ProjectCells() const {
    pb::ColumnId wanted;
    wanted.set_cells(true);
    return *filter_->Project(wanted);
  }

  // Every copy that a coordinator may use once the wait is over has the entry.
  void CheckWait(const EntryKey& key) {
    const uint64_t number = filter_->WaitFor(std::span(&key, 1));
    ASSERT_LE(number, feed_->Last());
    for (uint64_t n = std::max(number, acked_); n < copies_.size(); ++n) {
      ASSERT_TRUE(copies_[n].MayHold(key)) << "as of " << n << ", waited for " << number;
    }
    if (number == 0) return;
    ASSERT_GT(number, acked_) << "applied already";
    ++tally_->waited;
    const Copy& before = copies_[number - 1];
    if (!before.published || before.generation != copies_.back().generation) return;
    tally_->waited_for_range += copies_[number].range != before.range;
    EXPECT_FALSE(before.layers.size() == 1 && before.MayHold(key)) << "for nothing";
  }

  void Check() {
    const Copy& copy = copies_.back();
    EXPECT_EQ(copy.published, filter_->published());
    const std::optional<pb::Projection> bits = filter_->Project();
    ASSERT_EQ(bits.has_value(), copy.published);
    if (!bits.has_value()) return;
    EXPECT_EQ(bits->region_id(), kRegion);
    EXPECT_EQ(bits->epoch(), kEpoch);
    EXPECT_EQ(bits->index_id(), kIndex);
    EXPECT_EQ(bits->generation(), copy.generation);
    EXPECT_EQ(bits->as_of(), feed_->Last());
    EXPECT_EQ(bits->geometry().slices(), copy.geometry.slices);
    EXPECT_EQ(bits->geometry().slice_positions(), copy.geometry.slice_positions);
    EXPECT_EQ(bits->layer_count(), copy.layers.size());
    ASSERT_EQ(static_cast<size_t>(bits->layers_size()), copy.layers.size());
    for (int layer = 0; layer < bits->layers_size(); ++layer) {
      std::string words;
      for (const uint64_t word : copy.layers[static_cast<size_t>(layer)]) PutFixed64(&words, word);
      ASSERT_EQ(bits->layers(layer), words) << "layer " << layer;
    }
    ASSERT_EQ(bits->has_range(), copy.range.has_value());
    if (copy.range.has_value()) {
      EXPECT_EQ(bits->min(), copy.range->first);
      EXPECT_EQ(bits->max(), copy.range->second);
    }
    if (copy.map != nullptr) {
      const pb::Projection cells = ProjectCells();
      CellSet set(cells.cell_count());
      EXPECT_EQ(cells.cell_map(), copy.map->version());
      EXPECT_EQ(cells.as_of(), feed_->Last());
      ASSERT_TRUE(set.Decode(cells.cells(), 0, cells.end_cell()));
      ASSERT_EQ(set.count(), copy.cells.size());
      for (const uint32_t cell : copy.cells) ASSERT_TRUE(set.Contains(cell));
    }
    size_t counted = standing_.size();
    for (const auto& [ticket, values] : under_way_) counted += values.size();
    EXPECT_GE(filter_->entries(), counted);
    EXPECT_TRUE(!current_is_exact_ || filter_->entries() == counted);
    EXPECT_EQ(filter_->layers(), copy.layers.size());
    std::map<int, uint64_t> rows;
    for (const Value& value : standing_) {
      const EntryKey key = KeyOf(value);
      ASSERT_TRUE(filter_->MayContain(key));
      ASSERT_TRUE(copy.MayHold(key));
      ++rows[value.first];
    }
    for (const auto& [first, count] : rows) {
      EXPECT_GE(filter_->CountBound("v" + std::to_string(first)).value_or(count), count);
    }
    if (!standing_.empty()) CheckWait(KeyOf(AnyStanding()));
  }

  Random random_;
  Tally* const tally_;
  IndexSpec index_;
  int values_ = 0;
  SimExecutor executor_{1, Duration(0)};
  std::shared_ptr<FilterFeed> feed_ = std::make_shared<FilterFeed>(
      &executor_, "rs1", 1, FilterFeed::Options{.lease = std::chrono::hours(1)});
  std::shared_ptr<FilterBudget> budget_;
  std::optional<FilterBudget::Share> others_;
  std::optional<IndexFilter> filter_;
  std::map<uint64_t, std::shared_ptr<const CellMap>> maps_;  // by version
  std::multiset<Value> standing_;
  std::vector<std::pair<IndexFilter::Ticket, std::vector<Value>>> under_way_;
  IndexFilter::Clearing clearing_;
  std::multiset<Value> snapshot_;  // entries in the snapshot of the clearing
  std::vector<Value> to_count_;    // entries of the snapshot that the scan has not reached
  bool publish_ = false;
  bool current_is_exact_ = true;  // nothing was counted for entries that were not committed
  bool next_is_exact_ = true;
  uint64_t acked_ = 0;
  uint64_t generation_ = 0;
  std::vector<Copy> copies_{1};  // by number
};

TEST(IndexFilterModelTest, EventsGiveTheBitsAndWaitForTellsWhichOfThemAnEntryNeeds) {
  Tally tally;
  for (uint64_t seed = 1; seed <= 60 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ModelRun(seed, &tally).Steps(400);
  }
  // Otherwise it would have shown nothing.
  EXPECT_GT(tally.waited, 1000u);
  EXPECT_GT(tally.waited_for_range, 100u);
  EXPECT_GT(tally.layers, 5u);
  EXPECT_GT(tally.publications, 100u);
  EXPECT_GT(tally.bits_only, 10u);
  EXPECT_GT(tally.restored, 10u);
  EXPECT_GT(tally.short_of_memory, 100u);
  EXPECT_GT(tally.dropped, 20u);
  EXPECT_GT(tally.cleared, 70u);
  EXPECT_GT(tally.narrowed, 30u);
  EXPECT_GT(tally.refitted, 50u);
}

}  // namespace
}  // namespace tamis
