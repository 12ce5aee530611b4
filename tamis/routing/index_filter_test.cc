#include "tamis/routing/index_filter.h"

#include <gtest/gtest.h>

#include "tamis/base/sim_executor.h"

namespace tamis {
namespace {

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
    return MakeEntryKey(Index(), prefixes, prefixes[0]);
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
    for (int i = 0; i < entries; ++i) EXPECT_TRUE(restored->MayContain(Entry(i)));
    const EntryKey other = Entry(1000);
    EXPECT_FALSE(restored->MayContain(other));
    restored->Add(std::span(&other, 1));
    EXPECT_TRUE(restored->MayContain(other));
    EXPECT_FALSE(restored->as_restored());
  }
}

TEST_F(IndexFilterTest, WhatIsRemovedAfterRestoringIsGone) {
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

TEST_F(IndexFilterTest, ASnapshotOfAnotherSeedOrGeometryIsRefused) {
  const std::string bytes = *Filled(20)->Snapshot();
  IndexSpec other = Index();
  other.seed = 10;
  EXPECT_FALSE(Make(other)->RestoreGeneration(bytes));
  other = Index();
  other.fpr = 0.001;
  EXPECT_FALSE(Make(other)->RestoreGeneration(bytes));
  other = Index();
  other.expected_values = 5000;
  EXPECT_FALSE(Make(other)->RestoreGeneration(bytes));
}

TEST_F(IndexFilterTest, NothingIsSavedBeforeSomethingIsPublished) {
  auto filter = Make(Index());
  EXPECT_FALSE(filter->Snapshot().has_value());
  filter->BeginGeneration(false);
  EXPECT_FALSE(filter->Snapshot().has_value());
}

}  // namespace
}  // namespace tamis
