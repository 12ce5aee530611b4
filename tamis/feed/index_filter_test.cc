#include "tamis/feed/index_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <thread>

#include "tamis/base/random.h"
#include "tamis/base/testing/sim_executor.h"

namespace tamis {
namespace {

constexpr RecountRule kForSizeAlone = {.least = 1'000'000};

class IndexFilterTest : public ::testing::Test {
 protected:
  static IndexSpec Index() {
    return {.id = 1, .name = "i", .columns = {0}, .fpr = 0.01, .expected_values = 50, .seed = 9};
  }
  std::unique_ptr<IndexFilter> Make(const IndexSpec& index) {
    return std::make_unique<IndexFilter>(feed_.get(), index, 1, 1, Faults{});
  }
  static EntryKey Entry(int i) {
    const std::vector<std::string> prefixes = {"value " + std::to_string(i)};
    return MakeEntryKey(Index(), prefixes);
  }
  std::unique_ptr<IndexFilter> Filled(int entries) {
    auto filter = Make(Index());
    filter->BeginGeneration(false);
    for (int i = 0; i < entries; ++i) {
      const EntryKey entry = Entry(i);
      filter->CountExisting(std::span(&entry, 1));
    }
    filter->Publish();
    return filter;
  }

  SimExecutor executor_{1, Duration(0)};
  std::shared_ptr<FilterFeed> feed_ =
      std::make_shared<FilterFeed>(&executor_, "rs1", 1, FilterFeed::Options{});
};

TEST_F(IndexFilterTest, ASnapshotRestoresWhatWasCounted) {
  for (const int entries : {0, 1, 300}) {
    const std::string bytes = *Filled(entries)->Snapshot();
    auto restored = Make(Index());
    ASSERT_TRUE(restored->RestoreGeneration(bytes));
    EXPECT_FALSE(restored->published());
    restored->Publish();
    EXPECT_TRUE(restored->as_restored());
    EXPECT_EQ(*restored->Snapshot(), bytes);
    EXPECT_EQ(restored->entries(), static_cast<uint64_t>(entries));
    for (int i = 0; i < entries; ++i) EXPECT_TRUE(restored->MayContain(Entry(i)));
    const EntryKey other = Entry(1000);
    EXPECT_FALSE(restored->MayContain(other));
    restored->Add(std::span(&other, 1));
    EXPECT_TRUE(restored->MayContain(other));
    EXPECT_FALSE(restored->as_restored());
  }
}

TEST_F(IndexFilterTest, EntryRemovedAfterARestoreIsNotFound) {
  auto restored = Make(Index());
  ASSERT_TRUE(restored->RestoreGeneration(*Filled(3)->Snapshot()));
  restored->Publish();
  const EntryKey entry = Entry(1);
  restored->Remove(std::span(&entry, 1));
  EXPECT_FALSE(restored->MayContain(entry));
  EXPECT_FALSE(restored->as_restored());
}

TEST_F(IndexFilterTest, DamagedBytesRestoreNothing) {
  const std::string bytes = *Filled(20)->Snapshot();
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    auto filter = Make(Index());
    EXPECT_FALSE(filter->RestoreGeneration(damaged)) << "byte " << i;
    EXPECT_FALSE(filter->building());
    EXPECT_FALSE(filter->RestoreGeneration(std::string_view(bytes).substr(0, i))) << i;
  }
}

TEST_F(IndexFilterTest, ASnapshotOfAnotherSeedOrRateIsRefused) {
  const std::string bytes = *Filled(20)->Snapshot();
  IndexSpec other = Index();
  other.seed = 10;
  EXPECT_FALSE(Make(other)->RestoreGeneration(bytes));
  other = Index();
  other.fpr = 0.001;
  EXPECT_FALSE(Make(other)->RestoreGeneration(bytes));
  other = Index();
  other.expected_values = 5000;  // filters have the size that fits
  EXPECT_TRUE(Make(other)->RestoreGeneration(bytes));
}

TEST_F(IndexFilterTest, NothingIsSavedBeforeSomethingIsPublished) {
  auto filter = Make(Index());
  EXPECT_FALSE(filter->Snapshot().has_value());
  filter->BeginGeneration(false);
  EXPECT_FALSE(filter->Snapshot().has_value());
}

TEST_F(IndexFilterTest, ARetiredFilterPublishesNothing) {
  auto filter = Make(Index());
  filter->BeginGeneration(false);
  filter->Retire();
  filter->Publish();
  EXPECT_FALSE(filter->published());
  EXPECT_FALSE(filter->WantsRecount({.least = 0}));
}

TEST_F(IndexFilterTest, ASnapshotIsRestoredWhereItsCountersFitTheBudget) {
  const auto saved = Filled(20);
  const std::string bytes = *saved->Snapshot();
  const size_t size = (saved->SizeBytes() + 3) / 4 * 4;  // budgets go by quarters
  for (const bool fits : {true, false}) {
    auto budget = std::make_shared<FilterBudget>(fits ? size : size - 4);
    IndexFilter filter(feed_.get(), Index(), 1, 1, Faults{}, budget);
    EXPECT_EQ(filter.RestoreGeneration(bytes), fits);
    EXPECT_EQ(filter.building(), fits);
  }
}

TEST_F(IndexFilterTest, RemovalOfNothingChangesNothing) {
  auto restored = Make(Index());
  ASSERT_TRUE(restored->RestoreGeneration(*Filled(3)->Snapshot()));
  restored->Publish();
  restored->Remove({});
  EXPECT_TRUE(restored->as_restored());
}

TEST_F(IndexFilterTest, NoRecountIsWantedWhileOneIsUnderWay) {
  auto filter = Filled(300);
  ASSERT_TRUE(filter->WantsRecount(kForSizeAlone));
  filter->BeginGeneration(true);
  EXPECT_FALSE(filter->WantsRecount(kForSizeAlone));
  filter->AbandonGeneration();
  EXPECT_TRUE(filter->WantsRecount(kForSizeAlone));
}

TEST_F(IndexFilterTest, PublicationTellsTheRangeOfValues) {
  pb::PollRequest request;
  request.set_coordinator(1);
  std::optional<pb::PollReply> reply;
  const auto poll = [&] {
    feed_->Poll(
        request, [this] { return executor_.Now() + std::chrono::seconds(1); },
        [&](Result<pb::PollReply> answer) { reply.emplace(std::move(*answer)); });
    executor_.RunFor(std::chrono::milliseconds(2));
    request.set_start_code(reply->start_code());
    request.set_applied(reply->to());
  };
  poll();
  const auto filter = Filled(30);
  poll();
  const auto published = std::ranges::find_if(reply->events(), [](const pb::Event& event) {
    return event.kind() == pb::Event::INDEX_COMPLETE;
  });
  ASSERT_NE(published, reply->events().end());
  EXPECT_TRUE(published->has_range());
  EXPECT_EQ(published->min(), Entry(0).first);
  EXPECT_EQ(published->max(), Entry(9).first);  // "value 9" is after "value 29"
}

TEST_F(IndexFilterTest, ProjectionIsCutAtItsBoundAcrossLayers) {
  const auto filter = Filled(300);
  ASSERT_GE(filter->layers(), 3u);
  const auto bytes_of = [](const pb::Projection& projection) {
    size_t bytes = 0;
    for (const std::string& layer : projection.layers()) bytes += layer.size();
    return bytes;
  };
  const pb::Projection whole = *filter->Project();
  const size_t layer = whole.layers(0).size();
  for (const size_t bound : {layer / 2 / 8 * 8, layer, layer + 8, 2 * layer - 8}) {
    EXPECT_EQ(bytes_of(*filter->Project({}, bound)), bound);
  }
  EXPECT_EQ(bytes_of(*filter->Project({}, 100 * layer)), bytes_of(whole));
}

TEST_F(IndexFilterTest, ProjectionHoldsAtLeastOneWordAndGoesOnWhereItIsAskedTo) {
  const auto filter = Filled(300);
  const pb::Projection whole = *filter->Project();
  pb::ColumnId from;
  from.set_generation(whole.generation());
  for (uint32_t layer = 0; layer < whole.layer_count(); ++layer) {
    const std::string& bytes = whole.layers(static_cast<int>(layer));
    from.set_first_layer(layer);
    for (uint64_t word = 0; word < bytes.size() / 8; ++word) {
      from.set_first_word(word);
      const pb::Projection part = *filter->Project(from, word % 9);
      ASSERT_EQ(part.first_layer(), layer);
      ASSERT_EQ(part.first_word(), word);
      ASSERT_EQ(part.layers_size(), 1);
      ASSERT_EQ(part.layers(0), bytes.substr(word * 8, 8));
    }
  }
}

TEST_F(IndexFilterTest, ProjectionBeginsAnewWhenAskedToGoOnWithAnotherGenerationOrBeyondItsEnd) {
  const auto filter = Filled(300);
  const pb::Projection whole = *filter->Project();
  const auto asked = [&](uint64_t generation, uint32_t layer, uint64_t word) {
    pb::ColumnId from;
    from.set_generation(generation);
    from.set_first_layer(layer);
    from.set_first_word(word);
    return filter->Project(from)->SerializeAsString();
  };
  const uint64_t generation = whole.generation();
  EXPECT_EQ(asked(generation - 1, 1, 2), whole.SerializeAsString());
  EXPECT_EQ(asked(generation + 1, 1, 2), whole.SerializeAsString());
  EXPECT_EQ(asked(generation, whole.layer_count(), 0), whole.SerializeAsString());
  EXPECT_EQ(asked(generation, 0, whole.layers(0).size() / 8), whole.SerializeAsString());
  EXPECT_NE(asked(generation, 1, 2), whole.SerializeAsString());
}

// ---- Sizes

// Counts the entries into a new generation, as a recount does.
void Recount(IndexFilter* filter, const std::vector<EntryKey>& entries) {
  filter->BeginGeneration(true);
  filter->CountExisting(entries);
  filter->Publish();
}

TEST_F(IndexFilterTest, AThirdLayerAsksForASizeThatFits) {
  for (const int values : {101, 300, 1000, 5000}) {
    std::vector<EntryKey> entries;
    for (int i = 0; i < values; ++i) entries.push_back(Entry(i));
    auto filter = Filled(values);
    EXPECT_EQ(filter->WantsRecount(kForSizeAlone), filter->layers() >= 3);
    EXPECT_NEAR(static_cast<double>(filter->distinct()), values, 10 + 0.06 * values);
    while (filter->WantsRecount(kForSizeAlone)) Recount(filter.get(), entries);
    EXPECT_LE(filter->layers(), 2u);
    if (values < 300) continue;
    EXPECT_GE(static_cast<double>(filter->geometry().Capacity()), 0.9 * values);
    EXPECT_LE(static_cast<double>(filter->geometry().Capacity()), 1.5 * values);
    for (const EntryKey& entry : entries) EXPECT_TRUE(filter->MayContain(entry));
  }
}

// Two sizes for each doubling, so that the filters of many regions share a matrix.
TEST_F(IndexFilterTest, FiltersOfManyNumbersOfValuesHaveFewSizes) {
  std::set<uint32_t> sizes;
  for (int values = 64; values <= 1024; values += 16) {
    std::vector<EntryKey> entries;
    for (int i = 0; i < values; ++i) entries.push_back(Entry(i));
    auto filter = Filled(values);
    Recount(filter.get(), entries);
    sizes.insert(filter->geometry().slice_positions);
  }
  EXPECT_GE(sizes.size(), 8u);
  EXPECT_LE(sizes.size(), 10u);
}

TEST_F(IndexFilterTest, FewExpectedValuesMakeASmallFilter) {
  IndexSpec index = Index();
  uint64_t before = 0;
  for (const uint64_t expected : {4, 20, 60}) {
    index.expected_values = expected;
    auto filter = Make(index);
    filter->BeginGeneration(false);
    filter->Publish();
    const uint64_t capacity = filter->geometry().Capacity();
    EXPECT_GE(capacity, expected);
    EXPECT_GT(capacity, before);
    before = capacity;
  }
}

TEST_F(IndexFilterTest, ManyEntriesOfFewValuesGetASmallFilter) {
  IndexSpec index = Index();
  index.expected_values = 10'000;
  auto filter = Make(index);
  filter->BeginGeneration(false);
  filter->Publish();
  std::vector<EntryKey> entries;
  for (int i = 0; i < 9'000; ++i) entries.push_back(Entry(i % 5));
  filter->Add(entries);
  EXPECT_FALSE(filter->WantsRecount(kForSizeAlone)) << "others may be on their way";
  for (int i = 0; i < 1'000; ++i) entries.push_back(Entry(i % 5));
  filter->Add(std::span(entries).last(1'000));
  EXPECT_TRUE(filter->WantsRecount(kForSizeAlone));
  Recount(filter.get(), entries);
  EXPECT_LE(filter->geometry().Capacity(), 64u);
  EXPECT_FALSE(filter->WantsRecount(kForSizeAlone));
  EXPECT_TRUE(filter->MayContain(Entry(3)));
}

// Around any number of values, coming and going, the size stays what it is.
TEST_F(IndexFilterTest, SizesDoNotSwingToAndFro) {
  for (const int values : {64, 90, 91, 128, 181, 500}) {
    std::vector<EntryKey> entries;
    for (int i = 0; i < values; ++i) entries.push_back(Entry(i));
    auto filter = Filled(values);
    int recounts = 0;
    for (int round = 0; round < 50; ++round) {
      const int changed = values / 4;
      std::vector<EntryKey> others;
      for (int i = 0; i < changed; ++i) others.push_back(Entry(10'000 + i));
      filter->Add(others);
      if (filter->WantsRecount(kForSizeAlone)) {
        ++recounts;
        std::vector<EntryKey> all = entries;
        all.insert(all.end(), others.begin(), others.end());
        Recount(filter.get(), all);
      }
      filter->Remove(others);
      if (filter->WantsRecount(kForSizeAlone)) {
        ++recounts;
        Recount(filter.get(), entries);
      }
    }
    EXPECT_LE(recounts, 2) << values;
  }
}

TEST_F(IndexFilterTest, ASnapshotOfAFittedFilterIsRestored) {
  std::vector<EntryKey> entries;
  for (int i = 0; i < 1000; ++i) entries.push_back(Entry(i));
  auto filter = Filled(1000);
  Recount(filter.get(), entries);
  auto restored = Make(Index());
  ASSERT_TRUE(restored->RestoreGeneration(*filter->Snapshot()));
  restored->Publish();
  EXPECT_EQ(restored->geometry(), filter->geometry());
  EXPECT_FALSE(restored->WantsRecount(kForSizeAlone));
}

// ---- Removals that are ignored

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

// ---- What a put waits for

class WaitForTest : public IndexFilterTest {
 protected:
  // The coordinator has applied everything so far, and has a lease.
  void Applied() {
    pb::PollRequest poll;
    poll.set_coordinator(7);
    poll.set_start_code(1);
    poll.set_applied(feed_->Last());
    feed_->Poll(
        poll, [this] { return executor_.Now() + std::chrono::hours(1); },
        [](const Result<pb::PollReply>&) {});
  }
  uint64_t Add(const EntryKey& entry) { return filter_->Add(std::span(&entry, 1)); }
  void Remove(const EntryKey& entry) { filter_->Remove(std::span(&entry, 1)); }
  uint64_t WaitFor(const EntryKey& entry) { return filter_->WaitFor(std::span(&entry, 1)); }

  std::unique_ptr<IndexFilter> filter_ = Filled(3);
};

TEST_F(WaitForTest, WaitsForNothingOnceAllIsApplied) {
  Applied();
  EXPECT_EQ(WaitFor(Entry(1)), 0u);
}

TEST_F(WaitForTest, ValueInThePublishedRangeWaitsForNoLaterWidening) {
  Applied();
  const std::vector<std::string> behind = {"w"};
  const EntryKey wide = MakeEntryKey(Index(), behind);
  const uint64_t widened = Add(wide);
  EXPECT_EQ(WaitFor(wide), widened);
  EXPECT_EQ(WaitFor(Entry(1)), 0u);
}

TEST_F(WaitForTest, WaitsForFlipsOfOtherWrites) {
  Applied();
  const uint64_t flipped = Add(Entry(9));
  Add(Entry(9));  // flips nothing
  EXPECT_GE(WaitFor(Entry(9)), flipped);
  Applied();
  EXPECT_EQ(WaitFor(Entry(9)), 0u);
}

// The bit was set, which is applied, and cleared, and is set again, which is not.
TEST_F(WaitForTest, WaitsForTheLastFlipOfABit) {
  Applied();
  Add(Entry(9));
  Applied();
  Remove(Entry(9));
  const uint64_t again = Add(Entry(9));
  EXPECT_GE(WaitFor(Entry(9)), again);
}

TEST_F(WaitForTest, WaitsForThePublicationThatReplacedAGeneration) {
  Applied();
  filter_->BeginGeneration(false);
  const EntryKey entry = Entry(1);
  filter_->CountExisting(std::span(&entry, 1));
  filter_->Publish();
  EXPECT_EQ(WaitFor(entry), feed_->Last());
  Applied();
  EXPECT_EQ(WaitFor(entry), 0u);
}

// All bits of the value are set by others, by chance, and only its range is news.
TEST_F(WaitForTest, WaitsForTheWideningOfTheRange) {
  Applied();
  EntryKey entry = Entry(1);
  entry.first = "zzz";
  const uint64_t widened = Add(entry);
  EXPECT_GT(widened, 0u);
  EXPECT_EQ(WaitFor(entry), widened);
  Applied();
  EXPECT_EQ(WaitFor(entry), 0u);
}

// A range that the old generation had says nothing of the new one.
TEST_F(WaitForTest, WaitsForAWideningWithinTheRangeOfTheOldGeneration) {
  EntryKey far = Entry(1);
  far.first = "zzz";
  Add(far);
  Applied();
  EXPECT_EQ(WaitFor(far), 0u);
  Remove(far);
  filter_->BeginGeneration(false);
  const EntryKey near = Entry(1);
  filter_->CountExisting(std::span(&near, 1));
  filter_->Publish();
  Applied();
  EXPECT_EQ(WaitFor(near), 0u);
  const uint64_t widened = Add(far);
  EXPECT_GT(widened, 0u);
  EXPECT_EQ(WaitFor(far), widened);
}

// A later write has removed the value, and the new generation lacks it.
TEST_F(WaitForTest, ValueThatIsGoneAgainWaitsForNothing) {
  EntryKey far = Entry(50);
  far.first = "zzz";
  Add(far);
  Applied();
  Remove(far);
  filter_->BeginGeneration(false);
  const EntryKey near = Entry(1);
  filter_->CountExisting(std::span(&near, 1));
  filter_->Publish();
  Applied();
  EXPECT_EQ(WaitFor(far), 0u);
}

// ---- Removals while a generation is counted

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

// Values come and go, memory gets short and is there again: whatever is in stays findable, here and
// by the bits that coordinators have.
TEST_F(IndexFilterTest, WithLittleMemoryFiltersAreBitsAloneAndLoseNothing) {
  for (const bool erase_bits : {false, true}) {
    Random random(7);
    auto budget = std::make_shared<FilterBudget>(2000);
    std::optional<FilterBudget::Share> others(budget);
    IndexFilter filter(feed_.get(), Index(), 1, 1, Faults{.erase_bits = erase_bits}, budget);
    filter.BeginGeneration(false);
    filter.Publish();
    std::multiset<int> in;
    uint64_t turned = 0;
    uint64_t lost = 0;
    bool bits_only = false;
    for (int step = 0; step < 20'000; ++step) {
      if (step % 2000 == 0) others->Set(step % 4000 == 0 ? 0 : 1900);
      const bool removes = !in.empty() && random.OneIn(2);
      const int value = removes
                            ? *std::next(in.begin(), static_cast<int>(random.Uniform(in.size())))
                            : static_cast<int>(random.Uniform(120));
      const EntryKey entry = Entry(value);
      if (removes) {
        in.erase(in.find(value));
        filter.Remove(std::span(&entry, 1));
      } else {
        in.insert(value);
        filter.Add(std::span(&entry, 1));
      }
      if (filter.WantsRecount({.least = 100, .an_entry_of_bits = 0})) {
        filter.BeginGeneration(false);
        for (const int old : in) {
          const EntryKey counted = Entry(old);
          filter.CountExisting(std::span(&counted, 1));
        }
        filter.Publish();
        EXPECT_LT(filter.ignored_removals(), 100u);
        turned += filter.bits_only() != bits_only;
        bits_only = filter.bits_only();
        EXPECT_EQ(filter.Snapshot().has_value(), !bits_only);
      }
      if (step % 16 != 0) continue;
      const pb::Projection told = *filter.Project();
      const SplitGeometry geometry = filter.geometry();
      for (const int there : in) {
        const EntryKey wanted = Entry(there);
        const bool any = std::ranges::any_of(told.layers(), [&](const std::string& layer) {
          for (uint32_t s = 0; s < geometry.slices; ++s) {
            const uint64_t position = geometry.Position(wanted.hashes[0], s);
            if ((layer[position / 8] >> (position % 8) & 1) == 0) return false;
          }
          return true;
        });
        lost += !any || !filter.MayContain(wanted);
      }
    }
    EXPECT_GE(turned, 5u);
    EXPECT_EQ(lost > 0, erase_bits);
    filter.Retire();
  }
}

// Run under the thread sanitizer, too.
TEST_F(IndexFilterTest, AllCallsMayRunAtOnce) {
  auto budget = std::make_shared<FilterBudget>(1 << 20);
  IndexFilter filter(feed_.get(), Index(), 1, 1, Faults{}, budget);
  const EntryKey kept = Entry(1);
  std::atomic<bool> done = false;
  uint64_t lost = 0;
  std::thread writer([&] {
    for (int i = 2; !done; i = i % 60 + 2) {
      const EntryKey entry = Entry(i);
      filter.Add(std::span(&entry, 1));
      filter.WaitFor(std::span(&entry, 1));
      filter.Remove(std::span(&entry, 1));
    }
  });
  std::thread reader([&] {
    while (!done) {
      if (filter.published() && !filter.MayContain(kept)) ++lost;
      filter.WantsRecount({.least = 0});
      filter.Project();
      filter.Snapshot();
      filter.CountBound(kept.first);
      filter.bits_only();
      filter.as_restored();
      filter.building();
      filter.geometry();
      filter.distinct();
      filter.layers();
      filter.entries();
      filter.ignored_removals();
      filter.SizeBytes();
    }
  });
  for (int i = 0; i < 2000; ++i) {
    filter.BeginGeneration(/*hold_removals=*/true);
    filter.CountExisting(std::span(&kept, 1));
    if (i % 8 == 7) filter.AbandonGeneration();
    filter.Publish();
  }
  done = true;
  writer.join();
  reader.join();
  EXPECT_EQ(lost, 0u);
  filter.Retire();
}

TEST_F(IndexFilterTest, ABudgetKnowsWhatFiltersTake) {
  auto budget = std::make_shared<FilterBudget>(1 << 20);
  {
    IndexFilter filter(feed_.get(), Index(), 1, 1, Faults{}, budget);
    EXPECT_EQ(budget->used_bytes(), 0u);
    filter.BeginGeneration(false);
    EXPECT_EQ(budget->used_bytes(), filter.SizeBytes());
    filter.Publish();
    for (int i = 0; i < 500; ++i) {
      const EntryKey entry = Entry(i);
      filter.Add(std::span(&entry, 1));
      ASSERT_EQ(budget->used_bytes(), filter.SizeBytes());
    }
    EXPECT_GE(filter.layers(), 3u);
    filter.BeginGeneration(true);
    EXPECT_EQ(budget->used_bytes(), filter.SizeBytes());
    filter.AbandonGeneration();
    EXPECT_EQ(budget->used_bytes(), filter.SizeBytes());
    const std::string bytes = *filter.Snapshot();
    auto small = std::make_shared<FilterBudget>(bytes.size() / 2);
    IndexFilter other(feed_.get(), Index(), 1, 1, Faults{}, small);
    EXPECT_FALSE(other.RestoreGeneration(bytes));
    EXPECT_EQ(small->used_bytes(), 0u);
  }
  EXPECT_EQ(budget->used_bytes(), 0u);
}

}  // namespace
}  // namespace tamis
