#include "tamis/lsm/column_families.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tamis/base/hash.h"

namespace tamis::lsm {
namespace {

constexpr uint32_t kFirstBeyond = 4096;  // the first id that no family may have
constexpr BypassReasons kEach[] = {kCounting,    kNotShown,   kMemtables, kComparator, kTimestamps,
                                   kIngestion,   kUnreadable, kSecondary, kDropped,    kNoMemory,
                                   kNoCollector, kNoListener, kStopped,   kBypass};

class ColumnFamiliesTest : public testing::Test {
 protected:
  ColumnFamilies& families() { return *families_; }
  bool Answers(uint32_t family) {
    const GracePeriod::Guard guard = grace_.Enter();
    return families_->Answering(family) != nullptr;
  }
  bool MayContain(uint32_t family, uint64_t hash) {
    const GracePeriod::Guard guard = grace_.Enter();
    const MemtableFilters* const memtables = families_->Answering(family);
    return memtables == nullptr || memtables->MayContain(hash);
  }
  // A family that answers once the first counting has ended.
  std::shared_ptr<MemtableFilter> Show(uint32_t family) {
    families_->ClearBypassReasons(family, kNotShown);
    return families_->MemtableMade(family);
  }

  GracePeriod grace_;
  std::unique_ptr<ColumnFamilies> families_ = std::make_unique<ColumnFamilies>(&grace_);
};

TEST_F(ColumnFamiliesTest, EachBypassReasonHasANameOfItsOwn) {
  EXPECT_EQ(BypassReasonNames(0), "");
  std::set<std::string> names;
  for (const BypassReasons reason : kEach) {
    const std::string name = BypassReasonNames(reason);
    EXPECT_FALSE(name.empty()) << reason;
    names.insert(name);
  }
  EXPECT_EQ(names.size(), std::size(kEach));
  EXPECT_EQ(BypassReasonNames(kNotShown | kComparator),
            BypassReasonNames(kNotShown) + ", " + BypassReasonNames(kComparator));
}

TEST_F(ColumnFamiliesTest, NewFamilyPassesThroughUntilItIsShownAndItsMemtableIsMade) {
  families().EndCounting();
  EXPECT_EQ(families().BypassReasonsOf(3), kNotShown | kMemtables);
  EXPECT_FALSE(Answers(3));
  families().ClearBypassReasons(3, kNotShown);
  EXPECT_FALSE(Answers(3));
  EXPECT_NE(families().MemtableMade(3), nullptr);
  EXPECT_TRUE(Answers(3));
  EXPECT_EQ(families().BypassReasonsOf(3), 0u);
  EXPECT_EQ(families().BypassReasonsOf(2), kNotShown | kMemtables) << "another one's";
}

TEST_F(ColumnFamiliesTest, NoFamilyAnswersBeforeTheFirstCountingEnds) {
  Show(0);
  EXPECT_TRUE(families().IsCounting());
  EXPECT_EQ(families().BypassReasonsOf(0), kCounting);
  EXPECT_FALSE(Answers(0));
  families().EndCounting();
  EXPECT_FALSE(families().IsCounting());
  EXPECT_EQ(families().BypassReasonsOf(0), 0u);
  EXPECT_TRUE(Answers(0));
}

TEST_F(ColumnFamiliesTest, FamilyPassesThroughWhileAnyReasonIsLeft) {
  families().EndCounting();
  Show(1);
  Show(2);
  for (const BypassReasons reason : kEach) {
    families().AddBypassReasons(1, reason | kDropped);
    EXPECT_EQ(families().BypassReasonsOf(1), reason | kDropped);
    families().ClearBypassReasons(1, kDropped);
    EXPECT_EQ(families().BypassReasonsOf(1), reason == kDropped ? 0 : reason);
    EXPECT_EQ(Answers(1), reason == kDropped) << reason;
    EXPECT_TRUE(Answers(2)) << "the reason is another one's";
    families().ClearBypassReasons(1, reason);
    EXPECT_TRUE(Answers(1)) << reason;
  }
}

TEST_F(ColumnFamiliesTest, LastIdIsAFamilyAndIdsBeyondPassThrough) {
  families().EndCounting();
  const auto last = Show(kFirstBeyond - 1);
  ASSERT_NE(last, nullptr);
  EXPECT_TRUE(Answers(kFirstBeyond - 1));
  EXPECT_EQ(families().MemtableCount(kFirstBeyond - 1), 1u);
  families().MemtableGone(kFirstBeyond - 1, last.get());
  EXPECT_EQ(families().MemtableCount(kFirstBeyond - 1), 0u);
  for (const uint32_t beyond : {kFirstBeyond, kFirstBeyond + 1, UINT32_MAX}) {
    EXPECT_EQ(Show(beyond), nullptr);
    EXPECT_FALSE(Answers(beyond));
    EXPECT_NE(families().BypassReasonsOf(beyond), 0u);
    families().AddBypassReasons(beyond, kIngestion);
    families().ClearBypassReasons(beyond, kIngestion | kNotShown | kMemtables);
    EXPECT_NE(families().BypassReasonsOf(beyond), 0u);
    families().MemtableGone(beyond, last.get());
    EXPECT_EQ(families().MemtableCount(beyond), 0u);
  }
}

TEST_F(ColumnFamiliesTest, KeysOfAMemtableAreThoseOfItsFamilyUntilItIsGone) {
  families().EndCounting();
  const auto first = Show(1);
  const auto second = families().MemtableMade(1);
  Show(2);
  const uint64_t hash = Mix(7);
  first->Add(hash);
  EXPECT_TRUE(MayContain(1, hash));
  EXPECT_FALSE(MayContain(2, hash));
  EXPECT_EQ(families().MemtableCount(1), 2u);
  families().MemtableGone(2, first.get());  // not its own
  EXPECT_TRUE(MayContain(1, hash));
  families().MemtableGone(1, first.get());
  EXPECT_FALSE(MayContain(1, hash));
  EXPECT_EQ(families().MemtableCount(1), 1u);
  EXPECT_EQ(families().MemtableCount(2), 1u);
  EXPECT_EQ(families().MemtableCount(5), 0u);
  families().MemtableGone(5, first.get());  // the memtable of a family that has none
}

TEST_F(ColumnFamiliesTest, BytesAreThoseOfAllFamilies) {
  EXPECT_EQ(families().MemtableBytes(), 0u);
  uint64_t bytes = 0;
  for (const uint32_t family : {0u, 1u, kFirstBeyond - 1}) {
    bytes += Show(family)->size_bytes();
    EXPECT_EQ(families().MemtableBytes(), bytes);
  }
  EXPECT_GT(families().MemtableMade(9, 1'000'000)->size_bytes(), bytes) << "as guessed";
}

}  // namespace
}  // namespace tamis::lsm
