// Filters with cells at a region server, and a coordinator that polls it: what the coordinator
// excludes for a range of values never holds one, whatever comes and goes meanwhile, and cell maps
// that are replaced.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tamis/base/coding.h"
#include "tamis/base/random.h"
#include "tamis/base/testing/sim_executor.h"
#include "tamis/feed/index_filter.h"
#include "tamis/routing/global_index.h"

namespace tamis {
namespace {

constexpr uint32_t kTable = 4, kIndex = 1;
constexpr int kRegions = 70;
constexpr uint64_t kValues = 4000;

std::string Encoded(uint64_t value) {
  std::string bytes;
  PutBig64(&bytes, value * 1000);
  return bytes;
}

IndexSpec Index() {
  return {.id = kIndex, .name = "i", .columns = {0}, .fpr = 0.1, .expected_values = 20, .seed = 9};
}

EntryKey KeyOf(uint64_t value) {
  const std::vector<std::string> prefixes = {Encoded(value)};
  return MakeEntryKey(Index(), prefixes);
}

std::shared_ptr<const CellMap> MapOf(uint32_t cells) {
  std::vector<std::string> sample;
  for (uint64_t i = 0; i < kValues; ++i) sample.push_back(Encoded(i));
  return std::make_shared<const CellMap>(CellMap::Fit(sample, {.cells = cells, .knots = 50}));
}

class Scene {
 public:
  Scene(uint64_t seed, const GlobalIndex::Options& options, const Faults& faults = {})
      : random_(seed),
        feed_(std::make_shared<FilterFeed>(
            &executor_, "rs", 1,
            FilterFeed::Options{.max_events = 10'000,
                                .reply_bytes = seed % 2 == 0 ? 300 : size_t{4} << 20,
                                .projection_bytes = 1 + random_.Uniform(400),
                                .faults = faults})),
        coordinator_(options) {
    maps_ = {MapOf(20'000), MapOf(5'000)};
    feed_->SetProjectionSource([this](const pb::ColumnId& column, size_t max_bytes) {
      return filters_[column.region_id()]->Project(column, max_bytes);
    });
    for (uint64_t region = 0; region < kRegions; ++region) {
      pb::Event opened;
      opened.set_kind(pb::Event::REGION_OPENED);
      opened.set_region_id(region);
      opened.set_epoch(1);
      opened.set_table_id(kTable);
      opened.set_start(StartOf(region));
      opened.set_end(region + 1 < kRegions ? StartOf(region + 1) : "");
      feed_->Append(opened);
      filters_[region] = std::make_unique<IndexFilter>(feed_.get(), Index(), region, 1, faults);
      filters_[region]->SetCellMap(maps_[0]);
      filters_[region]->BeginGeneration(false);
      filters_[region]->Publish();
      for (int i = 0; i < 20; ++i) Add(region);
    }
  }

  static std::string StartOf(uint64_t region) {
    return region == 0 ? "" : std::string(1, static_cast<char>(region + 32));
  }

  void Add(uint64_t region) {
    const uint64_t value = random_.Uniform(kValues);
    const EntryKey key = KeyOf(value);
    IndexFilter::Ticket ticket = 0;
    filters_[region]->Add(std::span(&key, 1), &ticket);
    standing_[region].insert(value);
    filters_[region]->Leave(ticket);
  }
  void Remove(uint64_t region) {
    if (standing_[region].empty()) return;
    const auto gone = standing_[region].lower_bound(random_.Uniform(kValues));
    if (gone == standing_[region].end()) return;
    const EntryKey key = KeyOf(*gone);
    standing_[region].erase(gone);
    filters_[region]->Remove(std::span(&key, 1));
  }
  void Clear(uint64_t region) {
    IndexFilter& filter = *filters_[region];
    const IndexFilter::Clearing clearing = filter.BeginClearing(100);
    IndexFilter::Cleared cleared{.empty = {}, .range_known = true, .range = {}};
    std::set<uint32_t> occupied;
    for (const uint64_t value : standing_[region]) {
      if (clearing.map != nullptr) occupied.insert(clearing.map->CellOf(Encoded(value)));
      if (!cleared.range.has_value()) cleared.range.emplace(Encoded(value), "");
      cleared.range->second = Encoded(value);
    }
    for (const uint32_t cell : clearing.cells) {
      if (!occupied.contains(cell)) cleared.empty.push_back(cell);
    }
    filter.EndClearing(clearing, cleared);
  }
  // Counts the region again, by the map that is in use by then.
  void Recount(uint64_t region) {
    IndexFilter& filter = *filters_[region];
    filter.SetCellMap(maps_[random_.Uniform(2)]);
    filter.BeginGeneration(true);
    for (const uint64_t value : standing_[region]) {
      const EntryKey key = KeyOf(value);
      filter.CountExisting(std::span(&key, 1));
    }
    filter.Publish();
  }
  void Step() {
    if (random_.OneIn(12)) return Poll(random_.Uniform(20));
    Change();
  }
  void Change() {
    const uint64_t region = random_.Uniform(kRegions);
    switch (random_.Uniform(11)) {
      case 0:
        return Clear(region);
      case 1:
        if (random_.OneIn(20)) Recount(region);
        return;
      case 2:
      case 3:
      case 4:
        return Remove(region);
      default:
        return Add(region);
    }
  }

  // `changes`: how many changes come after the bits of the reply, and before its events.
  void Poll(uint64_t changes = 0) {
    feed_->Poll(
        coordinator_.NextPoll("rs", Duration(0)),
        [this] { return executor_.Now() + std::chrono::hours(1); },
        [this](Result<pb::PollReply> reply) { reply_ = std::move(*reply); });
    while (changes-- > 0) Change();
    executor_.RunFor(Duration(1));
    coordinator_.Apply("rs", reply_, executor_.Now(), executor_.Now());
  }
  // Until the coordinator has the state of now and no bits are missing that it has room for.
  void PollToTheEnd() {
    for (int i = 0; i < 5000; ++i) {
      Poll();
      const pb::PollRequest next = coordinator_.NextPoll("rs", Duration(0));
      if (next.applied() == feed_->Last() && next.wanted_size() == 0) return;
    }
    ADD_FAILURE() << "bits are still missing";
  }

  RoutingTerm Range(uint64_t low, uint64_t high, const CellMap& map) const {
    return {.kind = RoutingTerm::Kind::kRange,
            .index_id = kIndex,
            .low = Encoded(low),
            .high = Encoded(high),
            .cell_map = map.version(),
            .first_cell = map.CellOf(Encoded(low)),
            .last_cell = map.CellOf(Encoded(high))};
  }
  struct Answer {
    int missed = 0;    // regions that hold a value and are excluded
    int hitless = 0;   // regions that hold none
    int excluded = 0;  // the number of these that are excluded
    GlobalIndex::Reasons reasons;
  };
  // The regions between low and high, both included.
  Answer Ask(uint64_t low, uint64_t width, size_t map) {
    const RoutingTerm term = Range(low, low + width + 1, *maps_[map]);
    const Time now = executor_.Now();
    const auto route = coordinator_.Find(kTable, KeyRanges::All(), term, now);
    Answer answer;
    answer.reasons = coordinator_.Explain(kTable, KeyRanges::All(), term, route.excluded, now);
    for (uint64_t region = 0; region < kRegions; ++region) {
      const auto& values = standing_[region];
      const auto at = values.lower_bound(low);
      const bool hit = at != values.end() && *at <= low + width;
      const bool excluded = route.excluded.Contains(StartOf(region));
      answer.missed += hit && excluded;
      answer.hitless += !hit;
      answer.excluded += !hit && excluded;
    }
    return answer;
  }
  Answer AskAnything(size_t map) {
    return Ask(random_.Uniform(kValues), random_.OneIn(2) ? 0 : random_.Uniform(200), map);
  }
  struct Bounds {
    int wrong = 0;    // regions with a value outside of their bound
    int better = 0;   // bounds that cells improved
    int nothing = 0;  // regions that are known to hold no value of the range
  };
  // The bounds of the regions for values between low and high, both included.
  Bounds BoundsOf(uint64_t low, uint64_t high, bool largest, size_t map) {
    const Time now = executor_.Now();
    const GlobalIndex::Wanted wanted{Encoded(low), Encoded(high + 1), maps_[map].get()};
    const auto plain = coordinator_.Bounds(kTable, KeyRanges::All(), kIndex, largest, now);
    const auto bounds = coordinator_.Bounds(kTable, KeyRanges::All(), kIndex, largest, now, wanted);
    EXPECT_EQ(bounds.size(), plain.size());
    Bounds seen;
    for (size_t i = 0; i < bounds.size(); ++i) {
      const auto& bound = bounds[i].value;
      seen.better += bound != plain[i].value;
      seen.nothing += !bound.has_value();
      for (uint64_t region = 0; region < kRegions; ++region) {
        if (StartOf(region) != bounds[i].keys.start) continue;
        const auto& values = standing_[region];
        seen.wrong += std::any_of(values.begin(), values.end(), [&](uint64_t value) {
          if (value < low || value > high) return false;
          const std::string encoded = Encoded(value);
          return !bound.has_value() || (largest ? encoded > *bound : encoded < *bound);
        });
      }
    }
    return seen;
  }
  Random& random() { return random_; }
  GlobalIndex& coordinator() { return coordinator_; }

 private:
  Random random_;
  SimExecutor executor_{1, Duration(0)};
  std::shared_ptr<FilterFeed> feed_;
  GlobalIndex coordinator_;
  std::vector<std::shared_ptr<const CellMap>> maps_;
  std::map<uint64_t, std::unique_ptr<IndexFilter>> filters_;
  std::map<uint64_t, std::multiset<uint64_t>> standing_;
  pb::PollReply reply_;
};

TEST(CellRoutingTest, ExcludesNoRegionThatHoldsAValueOfTheRange) {
  int hitless = 0, excluded = 0;
  uint64_t by_cells = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Scene scene(seed, {});
    for (int step = 0; step < 3000; ++step) {
      scene.Step();
      if (step % 100 != 0) continue;
      // Bits come in parts, and flips between them.
      if (scene.random().OneIn(2)) scene.PollToTheEnd();
      if (!scene.coordinator().NextPoll("rs", Duration(0)).applied()) continue;
      scene.PollToTheEnd();
      for (int i = 0; i < 20; ++i) {
        const Scene::Answer answer = scene.AskAnything(scene.random().Uniform(2));
        ASSERT_EQ(answer.missed, 0);
        hitless += answer.hitless;
        excluded += answer.excluded;
        by_cells += answer.reasons.excluded_by_cells;
      }
    }
  }
  // A region follows one of the two maps, and is asked whenever the other one is asked by.
  EXPECT_GT(excluded, hitless / 3);
  EXPECT_GT(by_cells, 100u);
}

// However many separate runs of regions they are.
TEST(CellRoutingTest, ExcludesAllRegionsWhoseCellsExcludeThem) {
  Scene scene(3, {});
  scene.PollToTheEnd();
  for (uint64_t low = 0; low + 400 < kValues; low += 97) {
    for (const uint64_t width : {0, 60, 120, 180}) {
      EXPECT_EQ(scene.Ask(low, width, 0).reasons.unknown, 0u) << low << " to " << low + width;
    }
  }
}

TEST(CellRoutingTest, BoundsOfARangeHoldItsValues) {
  int better = 0, nothing = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Scene scene(seed, {});
    Random& random = scene.random();
    for (int step = 0; step < 2000; ++step) {
      scene.Step();
      if (step % 200 != 0) continue;
      scene.PollToTheEnd();
      for (int i = 0; i < 20; ++i) {
        const uint64_t low = random.Uniform(kValues);
        const uint64_t high = random.OneIn(2) ? kValues : low + random.Uniform(100);
        const auto seen = scene.BoundsOf(low, high, random.OneIn(2), random.Uniform(2));
        ASSERT_EQ(seen.wrong, 0);
        better += seen.better;
        nothing += seen.nothing;
      }
    }
  }
  EXPECT_GT(better, kRegions * 100);
  EXPECT_GT(nothing, kRegions * 10);
}

TEST(CellRoutingTest, CellsOfAnotherMapTellNoBounds) {
  Scene scene(3, {});
  scene.PollToTheEnd();
  const uint64_t middle = kValues / 2;
  EXPECT_EQ(scene.BoundsOf(middle, kValues, false, 0).better, kRegions);
  EXPECT_EQ(scene.BoundsOf(middle, kValues, false, 1).better, 0);
}

TEST(CellRoutingTest, RegionsOfAnotherMapAreAsked) {
  Scene scene(3, {});
  scene.PollToTheEnd();
  EXPECT_GT(scene.Ask(kValues / 2, 0, 0).excluded, kRegions / 2);
  const Scene::Answer other = scene.Ask(kValues / 2, 0, 1);
  EXPECT_EQ(other.reasons.excluded_by_cells, 0u);
  EXPECT_GT(other.reasons.candidates.size(),
            scene.Ask(kValues / 2, 0, 0).reasons.candidates.size());
}

TEST(CellRoutingTest, WithoutRoomForCellsRegionsAreAsked) {
  Scene roomy(3, {});
  roomy.PollToTheEnd();
  Scene scene(3, {.max_bytes = roomy.coordinator().SizeBytes() / 2});
  scene.PollToTheEnd();
  const Scene::Answer answer = scene.Ask(kValues / 2, 0, 0);
  EXPECT_EQ(answer.missed, 0);
  EXPECT_EQ(answer.reasons.excluded_by_cells, 0u);
  EXPECT_LE(scene.coordinator().SizeBytes(), roomy.coordinator().SizeBytes() / 2);
}

}  // namespace
}  // namespace tamis
