// The size of an IndexFilter: it fits the number of values, and does not swing.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tamis/feed/index_filter.h"
#include "tamis/feed/testing/index_filter_test_case.h"

namespace tamis {
namespace {

class IndexFilterSizesTest : public IndexFilterTest {};

TEST_F(IndexFilterSizesTest, AThirdLayerAsksForASizeThatFits) {
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
TEST_F(IndexFilterSizesTest, FiltersOfManyNumbersOfValuesHaveFewSizes) {
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

TEST_F(IndexFilterSizesTest, FewExpectedValuesMakeASmallFilter) {
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

TEST_F(IndexFilterSizesTest, ManyEntriesOfFewValuesGetASmallFilter) {
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
TEST_F(IndexFilterSizesTest, SizesDoNotSwingToAndFro) {
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

TEST_F(IndexFilterSizesTest, ASnapshotOfAFittedFilterIsRestored) {
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

}  // namespace
}  // namespace tamis
