// Recounts of an IndexFilter: when one is wanted, and removals while one is under way.
#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <set>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/feed/index_filter.h"
#include "tamis/feed/testing/index_filter_test_case.h"

namespace tamis {
namespace {

// How many entries were read to count filters again while rows were updated, one by one, each to
// another of the values; the filter is looked at after every write, as a region's is.
class RecountTest : public IndexFilterTest {
 protected:
  void Count() {
    Recount(filter_.get(), standing_);
    counted_ += standing_.size();
  }
  void Update(size_t row, int value, const RecountRule& rule) {
    const EntryKey now = Entry(value);
    IndexFilter::Ticket ticket = 0;
    filter_->Add(std::span(&now, 1), &ticket);
    filter_->Leave(ticket);
    filter_->Remove(std::span(&standing_[row], 1));
    standing_[row] = now;
    EXPECT_EQ(filter_->entries(), standing_.size());
    if (filter_->WantsRecount(rule)) Count();
  }
  uint64_t CountedFor(int updates, size_t rows, int values, bool bits_only,
                      const RecountRule& rule) {
    auto budget = std::make_shared<FilterBudget>(bits_only ? 0 : 1 << 20);
    filter_ = std::make_unique<IndexFilter>(feed_.get(), Index(), 1, 1, Faults{}, budget);
    standing_.clear();
    Random random(5);
    for (size_t row = 0; row < rows; ++row) {
      standing_.push_back(Entry(static_cast<int>(row) % values));
    }
    for (int i = 0; i < 3; ++i) Count();  // the size fits
    EXPECT_EQ(filter_->bits_only(), bits_only);
    counted_ = 0;
    for (int i = 0; i < updates; ++i) {
      Update(random.Uniform(rows), static_cast<int>(random.Uniform(values)), rule);
    }
    for (const EntryKey& entry : standing_) EXPECT_TRUE(filter_->MayContain(entry));
    filter_->Retire();
    return counted_;
  }

  std::unique_ptr<IndexFilter> filter_;
  std::vector<EntryKey> standing_;
  uint64_t counted_ = 0;
};

TEST_F(RecountTest, ALargeIndexIsNotReadForAFewUpdates) {
  constexpr int kUpdates = 40'000;
  const RecountRule for_any_size = {.an_entry = 0, .an_entry_of_bits = 0};
  for (const size_t rows : {1000u, 5000u}) {
    EXPECT_LE(CountedFor(kUpdates, rows, 10, false, {}), kUpdates / 4);
    EXPECT_LE(CountedFor(kUpdates, rows, 10, true, {}), kUpdates);
    EXPECT_GT(CountedFor(kUpdates, rows, 10, false, for_any_size), kUpdates * rows / 200);
    EXPECT_GT(CountedFor(kUpdates, rows, 10, true, for_any_size), kUpdates * rows / 200);
  }
}

// Rows come twenty a value and go again: more than a counter holds, so each value leaves its bits
// until they are counted again. Few rows at a time are too few to fill the filter, which would have
// it counted, too.
TEST_F(RecountTest, ASmallIndexForgetsValuesThatAreGone) {
  constexpr int kRows = 200;
  constexpr int kValues = 90;
  const auto left_behind = [&](bool bits_only, const RecountRule& rule) {
    auto budget = std::make_shared<FilterBudget>(bits_only ? 0 : 1 << 20);
    IndexSpec index = Index();
    index.expected_values = 150;
    filter_ = std::make_unique<IndexFilter>(feed_.get(), index, 1, 1, Faults{}, budget);
    standing_.clear();
    for (int row = 0; row < kRows; ++row) standing_.push_back(Entry(row / 20));
    Count();
    for (int row = kRows; row < 20 * kValues; ++row) {
      Update(static_cast<size_t>(row % kRows), row / 20, rule);
    }
    const int gone = kValues - kRows / 20;
    int left = 0;
    for (int value = 0; value < gone; ++value) left += filter_->MayContain(Entry(value)) ? 1 : 0;
    filter_->Retire();
    return left;
  };
  for (const bool bits_only : {false, true}) {
    EXPECT_LE(left_behind(bits_only, {}), 45) << bits_only;
    EXPECT_GE(left_behind(bits_only, {.least = 5000}), 75) << bits_only;
  }
}

class RemovalsDuringRecountTest : public IndexFilterTest {
 protected:
  void Add(int i) {
    const EntryKey entry = Entry(i);
    filter_->Add(std::span(&entry, 1));
  }
  void Remove(int i) {
    const EntryKey entry = Entry(i);
    filter_->Remove(std::span(&entry, 1));
  }
  void CountExisting(const std::multiset<int>& entries) {
    for (const int i : entries) {
      const EntryKey entry = Entry(i);
      filter_->CountExisting(std::span(&entry, 1));
    }
  }

  std::unique_ptr<IndexFilter> filter_ = Filled(20);
  const std::multiset<int> standing_ = [] {
    std::multiset<int> entries;
    for (int i = 0; i < 20; ++i) entries.insert(i);
    return entries;
  }();
};

TEST_F(RemovalsDuringRecountTest, AValueThatComesAndGoesLeavesNoFullCounters) {
  filter_->BeginGeneration(/*hold_removals=*/true);
  for (int i = 0; i < 100; ++i) {
    Add(1000);
    Remove(1000);
    Remove(3);  // stands in the snapshot; the scan has not reached it
    Add(3);
  }
  CountExisting(standing_);
  filter_->Publish();
  EXPECT_EQ(filter_->ignored_removals(), 0u);
  EXPECT_EQ(filter_->entries(), 20u);
  EXPECT_FALSE(filter_->MayContain(Entry(1000)));
  EXPECT_TRUE(filter_->MayContain(Entry(3)));
  Remove(3);
  EXPECT_FALSE(filter_->MayContain(Entry(3)));
}

// More of them than removals are held.
TEST_F(RemovalsDuringRecountTest, DistinctValuesThatComeAndGoForgetNothing) {
  const int last = static_cast<int>(HeldRemovals::kMost) + 1000;
  filter_->BeginGeneration(/*hold_removals=*/true);
  for (int i = 1000; i < 1000 + last; ++i) {
    Add(i);
    Remove(i);
  }
  CountExisting(standing_);
  filter_->Publish();
  EXPECT_EQ(filter_->ignored_removals(), 0u);
  EXPECT_EQ(filter_->entries(), 20u);
}

TEST_F(RemovalsDuringRecountTest, DistinctValuesThatGoAndComeForgetNothing) {
  const int last = static_cast<int>(HeldRemovals::kMost) + 1000;
  std::multiset<int> entries;
  for (int i = 0; i < last; ++i) entries.insert(i);
  filter_->BeginGeneration(/*hold_removals=*/true);
  for (int i = 0; i < last; ++i) {
    Remove(i);
    Add(i);
  }
  CountExisting(entries);
  filter_->Publish();
  EXPECT_EQ(filter_->ignored_removals(), 0u);
  EXPECT_EQ(filter_->entries(), static_cast<uint64_t>(last));
}

TEST_F(RemovalsDuringRecountTest, AHotValueLeavesRoomForTheRemovalsOfOthers) {
  filter_->BeginGeneration(/*hold_removals=*/true);
  for (size_t i = 0; i < HeldRemovals::kMost + 1000; ++i) {
    Add(1000);
    Remove(1000);
  }
  Remove(3);
  CountExisting(standing_);
  filter_->Publish();
  EXPECT_FALSE(filter_->MayContain(Entry(3)));
  EXPECT_EQ(filter_->entries(), 19u);
  EXPECT_EQ(filter_->ignored_removals(), 0u);
}

TEST_F(RemovalsDuringRecountTest, RemovalsBeyondTheBoundStayUntilTheNextRecount) {
  constexpr int kBeyond = 1000;
  const int gone = static_cast<int>(HeldRemovals::kMost) + kBeyond;
  std::multiset<int> entries;
  for (int i = 0; i <= gone; ++i) entries.insert(i);
  filter_->BeginGeneration(/*hold_removals=*/true);
  for (int i = 1; i <= gone; ++i) Remove(i);
  CountExisting(entries);
  filter_->Publish();
  EXPECT_TRUE(filter_->MayContain(Entry(0)));
  EXPECT_EQ(filter_->entries(), 1u);
  EXPECT_GE(filter_->ignored_removals(), static_cast<uint64_t>(kBeyond));
  EXPECT_TRUE(filter_->WantsRecount({.least = kBeyond}));
  EXPECT_FALSE(filter_->Snapshot().has_value()) << "it would count removed entries";
}

// Entries come and go in random order while a scan counts a snapshot.
TEST_F(RemovalsDuringRecountTest, StandingValuesStayAndRemovedValuesGo) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    filter_ = Filled(0);
    std::multiset<int> now;
    const auto add = [&](int i) {
      now.insert(i);
      Add(i);
    };
    for (int i = 0; i < 60; ++i) add(static_cast<int>(random.Uniform(30)));
    const std::vector<int> snapshot(now.begin(), now.end());
    filter_->BeginGeneration(/*hold_removals=*/true);
    size_t scanned = 0;
    while (scanned < snapshot.size()) {
      if (random.OneIn(6)) {
        const EntryKey entry = Entry(snapshot[scanned++]);
        filter_->CountExisting(std::span(&entry, 1));
      } else if (now.empty() || random.OneIn(2)) {
        add(static_cast<int>(random.Uniform(40)));
      } else {
        auto it = now.begin();
        std::advance(it, static_cast<ptrdiff_t>(random.Uniform(now.size())));
        const int i = *it;
        now.erase(it);
        Remove(i);
      }
    }
    filter_->Publish();
    EXPECT_EQ(filter_->entries(), now.size());
    for (const int i : now) EXPECT_TRUE(filter_->MayContain(Entry(i))) << i;
    int stay = 0;
    for (int i = 0; i < 40; ++i) stay += !now.contains(i) && filter_->MayContain(Entry(i));
    EXPECT_LE(stay, 3);  // false positives
  }
}

}  // namespace
}  // namespace tamis
