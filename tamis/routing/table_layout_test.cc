#include "tamis/routing/table_layout.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "tamis/base/random.h"

namespace tamis {
namespace {

using std::chrono::seconds;

bool Overlap(const KeyRange& a, const KeyRange& b) {
  return (a.end.empty() || b.start < a.end) && (b.end.empty() || a.start < b.end);
}

// Every rule asked of every pair of regions, and every neighbour compared.
class Checked {
 public:
  Checked(TableLayout* layout, size_t servers) : layout_(layout), leases_(servers, Time::min()) {}

  void Add(KeyRange range, uint32_t server) {
    const TableLayout::Slot slot = layout_->Add(range, server);
    ASSERT_FALSE(regions_.contains(slot)) << "a slot in use";
    regions_[slot] = {range, server};
  }
  void Remove(TableLayout::Slot slot) {
    layout_->Remove(slot);
    regions_.erase(slot);
  }
  void Lease(uint32_t server, Time until, Time now) {
    const bool revived = leases_[server] <= now && until > now;
    leases_[server] = std::max(leases_[server], until);
    if (!revived) return;
    for (const auto& [slot, region] : regions_) {
      if (region.second == server) layout_->Recheck(slot);
    }
  }
  void PlaceAllAndCheck(Time now) {
    while (PlaceSome(now)) continue;
    const auto lives = [&](uint32_t server) { return leases_[server] > now; };
    std::vector<std::pair<KeyRange, TableLayout::Slot>> placed;
    for (const auto& [slot, region] : regions_) {
      bool alone = true, rival = false;
      for (const auto& [other_slot, other] : regions_) {
        if (slot == other_slot || !Overlap(region.first, other.first)) continue;
        alone = false;
        rival |= lives(other.second);
      }
      const bool belongs = alone || (lives(region.second) && !rival);
      ASSERT_EQ(layout_->position(slot) != TableLayout::kNotPlaced, belongs) << "slot " << slot;
      if (belongs) placed.emplace_back(region.first, slot);
    }
    std::ranges::sort(placed, {}, [](const auto& p) { return p.first.start; });
    ASSERT_EQ(layout_->size(), placed.size());
    ASSERT_EQ(layout_->unplaced(), regions_.size() - placed.size());
    ASSERT_EQ(layout_->empty(), regions_.empty());
    bool covers =
        !placed.empty() && placed.front().first.start.empty() && placed.back().first.end.empty();
    for (size_t i = 0; i < placed.size(); ++i) {
      ASSERT_EQ(layout_->at(i), placed[i].second);
      ASSERT_EQ(layout_->position(placed[i].second), i);
      const bool breaks = i + 1 < placed.size() && placed[i].first.end != placed[i + 1].first.start;
      ASSERT_EQ(layout_->breaks().Get(i), breaks) << i;
      covers &= !breaks;
    }
    ASSERT_EQ(layout_->CoversEverything(), covers);
  }

  // False: all is as the rules say.
  bool PlaceSome(Time now) {
    if (testing::Test::HasFatalFailure() || !layout_->NeedsReconciling(now)) return false;
    layout_->Reconcile({leases_, now});
    CheckThatNobodyIsBelievedWrongly(now);
    return true;
  }

  const auto& regions() const { return regions_; }

 private:
  // The invariants while some slots near which a lease has ended are still to be examined.
  void CheckThatNobodyIsBelievedWrongly(Time now) {
    for (const auto& [slot, region] : regions_) {
      if (layout_->position(slot) == TableLayout::kNotPlaced) continue;
      for (const auto& [other_slot, other] : regions_) {
        if (slot == other_slot || !Overlap(region.first, other.first)) continue;
        ASSERT_EQ(layout_->position(other_slot), TableLayout::kNotPlaced);
        ASSERT_FALSE(leases_[region.second] > now && leases_[other.second] > now);
      }
    }
  }

  TableLayout* layout_;
  std::vector<Time> leases_;
  std::map<TableLayout::Slot, std::pair<KeyRange, uint32_t>> regions_;
};

KeyRange RandomRange(Random* random) {
  const auto key = [&] { return std::string(1, static_cast<char>('a' + random->Uniform(26))); };
  KeyRange range;
  do {
    range = {random->OneIn(10) ? "" : key(), random->OneIn(10) ? "" : key()};
  } while (range.empty());
  // Mostly short ones, so that many do not overlap.
  if (random->OneIn(4) || range.start.empty()) return range;
  range.end = std::string(1, static_cast<char>(range.start[0] + 1));
  return range;
}

TEST(TableLayoutTest, RandomChangesGiveWhatTheRulesSay) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    TableLayout layout;
    const size_t servers = 1 + random.Uniform(5);
    const uint64_t most = random.OneIn(3) ? 100 : 30;  // more than are looked at at once
    Checked checked(&layout, servers);
    Time now = seconds(100);
    for (int step = 0; step < 400; ++step) {
      for (uint64_t changes = random.Uniform(4); changes > 0; --changes) {
        if (checked.regions().size() < 5 + random.Uniform(most)) {
          checked.Add(RandomRange(&random), static_cast<uint32_t>(random.Uniform(servers)));
        } else {
          auto it = checked.regions().begin();
          std::advance(it, random.Uniform(checked.regions().size()));
          checked.Remove(it->first);
        }
      }
      if (random.OneIn(3)) {
        checked.Lease(static_cast<uint32_t>(random.Uniform(servers)),
                      now + seconds(random.Uniform(20)), now);
      }
      if (random.OneIn(3)) now += seconds(random.Uniform(10));
      if (random.OneIn(2)) {
        checked.PlaceSome(now);
      } else {
        checked.PlaceAllAndCheck(now);
      }
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(TableLayoutTest, SlotRemovedBeforeItWasExaminedIsForgotten) {
  TableLayout layout;
  const std::vector<Time> leases = {seconds(9), seconds(1), seconds(1)};
  std::vector<TableLayout::Slot> slots;
  for (char c = 'a'; c <= 'z'; ++c) {
    for (const uint32_t server : {1, 2}) {
      slots.push_back(layout.Add({std::string(1, c), std::string(1, c) + "z"}, server));
    }
  }
  layout.Reconcile({leases, seconds(0)});
  EXPECT_EQ(layout.unplaced(), slots.size());
  layout.Reconcile({leases, seconds(1)});
  ASSERT_TRUE(layout.NeedsReconciling(seconds(1))) << "all at once";
  for (size_t i = 2; i < slots.size(); ++i) layout.Remove(slots[i]);
  while (layout.NeedsReconciling(seconds(1))) layout.Reconcile({leases, seconds(1)});
  EXPECT_EQ(layout.unplaced(), 2u);
  EXPECT_EQ(layout.size(), 0u);
}

TEST(TableLayoutTest, PositionsAreThoseOfRegionsWithKeysInTheRange) {
  TableLayout layout;
  const Time lease = seconds(1);
  for (const auto& [start, end] : {std::pair("", "b"), {"b", "d"}, {"f", "h"}, {"h", ""}}) {
    layout.Add({start, end}, 0);
  }
  layout.Reconcile({std::span(&lease, 1), seconds(0)});
  using Pair = std::pair<size_t, size_t>;
  EXPECT_EQ(layout.Positions({"", ""}), Pair(0, 4));
  EXPECT_EQ(layout.Positions({"a", "b"}), Pair(0, 1));
  EXPECT_EQ(layout.Positions({"a", "b1"}), Pair(0, 2));
  EXPECT_EQ(layout.Positions({"b", "c"}), Pair(1, 2));
  EXPECT_EQ(layout.Positions({"d", "f"}), Pair(2, 2));
  EXPECT_EQ(layout.Positions({"c", "g"}), Pair(1, 3));
  EXPECT_EQ(layout.Positions({"z", ""}), Pair(3, 4));
}

TEST(TableLayoutTest, ARegionIsUndecidedWhileNoPartOfItIsPlacedElsewhere) {
  TableLayout layout;
  std::vector<Time> leases = {seconds(1), seconds(2)};
  layout.Add({"a", "c"}, 0);
  layout.Add({"b", "d"}, 1);
  layout.Reconcile({leases, seconds(0)});
  EXPECT_EQ(layout.Undecided(KeyRanges::All()), 2u);
  EXPECT_EQ(layout.Undecided(KeyRanges::Of({"c", ""})), 1u);
  EXPECT_TRUE(layout.NeedsReconciling(seconds(1)));
  layout.Reconcile({leases, seconds(1)});
  EXPECT_EQ(layout.Undecided(KeyRanges::All()), 0u);
  EXPECT_EQ(layout.size(), 1u);
  EXPECT_EQ(layout.unplaced(), 1u);
}

TEST(TableLayoutTest, AnUndecidedRegionCountsOnceForSeveralKeyRanges) {
  TableLayout layout;
  std::vector<Time> leases = {seconds(1), seconds(2)};
  layout.Add({"a", "m"}, 0);
  layout.Add({"b", "x"}, 1);
  layout.Reconcile({leases, seconds(0)});
  KeyRanges keys = KeyRanges::Of({"c", "d"});
  EXPECT_EQ(layout.Undecided(keys), 2u);
  keys.Add(KeyRange{"e", "f"});
  EXPECT_EQ(layout.Undecided(keys), 2u);
  keys.Add(KeyRange{"n", "o"});
  EXPECT_EQ(layout.Undecided(keys), 2u);
  EXPECT_EQ(layout.Undecided(KeyRanges()), 0u);
}

}  // namespace
}  // namespace tamis
