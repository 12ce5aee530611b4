#include "tamis/feed/index_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <thread>

#include "tamis/base/random.h"
#include "tamis/feed/testing/index_filter_test_case.h"

namespace tamis {
namespace {

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

TEST_F(IndexFilterTest, WritesWaitForNoEventOfAFilterThatIsNotPublished) {
  auto filter = Make(Index());
  const EntryKey entry = Entry(1);
  EXPECT_EQ(filter->Add(std::span(&entry, 1)), 0u);
  filter->BeginGeneration(false);
  EXPECT_EQ(filter->Add(std::span(&entry, 1)), 0u);
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
    EXPECT_EQ(filter.SizeBytes(), fits ? saved->SizeBytes() : 0);
    EXPECT_EQ(budget->used_bytes(), filter.SizeBytes());
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

TEST_F(IndexFilterTest, CellsComeWithTheRecountThatACellMapAsksFor) {
  pb::ColumnId cells;
  cells.set_cells(true);
  const auto filter = Filled(3);
  EXPECT_FALSE(filter->WantsRecount(kForSizeAlone));
  EXPECT_FALSE(filter->Project(cells).has_value());
  const std::vector<std::string> sample = {"value 1", "value 2"};
  filter->SetCellMap(
      std::make_shared<const CellMap>(CellMap::Fit(sample, {.cells = 2, .knots = 2})));
  EXPECT_TRUE(filter->WantsRecount(kForSizeAlone));
  EXPECT_FALSE(filter->Project(cells).has_value());
  Recount(filter.get(), {Entry(1)});
  EXPECT_FALSE(filter->WantsRecount(kForSizeAlone));
  EXPECT_TRUE(filter->Project(cells).has_value());
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
  std::thread clearer([&] {
    while (!done) {
      filter.HoldClearing();
      filter.SetCellMap(nullptr);
      filter.ReleaseClearing();
      if (filter.WantsClearing()) filter.EndClearing(filter.BeginClearing(10), {});
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
  clearer.join();
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
