// Row locks and the gate of a region.

#include "tamis/rocks/region.h"

#include <gtest/gtest.h>

#include "tamis/base/testing/sim_executor.h"

namespace tamis {
namespace {

using Keys = std::shared_ptr<const std::vector<std::string>>;

Keys KeysOf(std::vector<std::string> keys) {
  return std::make_shared<const std::vector<std::string>>(std::move(keys));
}

class RowLocksTest : public ::testing::Test {
 protected:
  void Acquire(const std::string& name, std::vector<std::string> keys) {
    locks_.Acquire(KeysOf(std::move(keys)), [this, name] { granted_.push_back(name); });
  }
  void Release(const std::vector<std::string>& keys) {
    for (const auto& task : locks_.Release(keys)) (*task)();
  }

  RowLocks locks_;
  std::vector<std::string> granted_;
};

TEST_F(RowLocksTest, AFreeRowIsGrantedBeforeAcquireReturns) {
  Acquire("a", {"1"});
  Acquire("b", {"2", "3"});
  EXPECT_EQ(granted_, (std::vector<std::string>{"a", "b"}));
}

TEST_F(RowLocksTest, OneRowIsGrantedToOneAtATimeInTheOrderOfAsking) {
  for (const char* name : {"a", "b", "c"}) Acquire(name, {"1"});
  EXPECT_EQ(granted_, (std::vector<std::string>{"a"}));
  Release({"1"});
  EXPECT_EQ(granted_, (std::vector<std::string>{"a", "b"}));
  Acquire("d", {"1"});  // c was before it
  Release({"1"});
  Release({"1"});
  EXPECT_EQ(granted_, (std::vector<std::string>{"a", "b", "c", "d"}));
  Release({"1"});
  Acquire("e", {"1"});
  EXPECT_EQ(granted_.back(), "e");
}

TEST_F(RowLocksTest, RequestThatWaitsForOneRowHoldsTheRowsBeforeIt) {
  Acquire("a", {"2"});
  Acquire("b", {"1", "2", "3"});
  Acquire("c", {"1"});  // b holds it
  Acquire("d", {"3"});  // b has not come to it
  EXPECT_EQ(granted_, (std::vector<std::string>{"a", "d"}));
  Release({"2"});
  EXPECT_EQ(granted_.size(), 2u);  // b waits for 3 now
  Release({"3"});
  EXPECT_EQ(granted_, (std::vector<std::string>{"a", "d", "b"}));
  Release({"1", "2", "3"});
  EXPECT_EQ(granted_.back(), "c");
}

// Sorted keys: no two requests wait for each other, whatever is asked for.
TEST_F(RowLocksTest, RandomRequestsAreAllGrantedAndNeverTwoForOneRow) {
  Random random(7);
  std::map<int, Keys> held;
  std::set<std::string> locked;
  int asked = 0, granted = 0;
  const auto release_one = [&] {
    auto it = held.begin();
    std::advance(it, static_cast<ptrdiff_t>(random.Uniform(held.size())));
    const Keys keys = it->second;
    held.erase(it);
    for (const std::string& key : *keys) locked.erase(key);
    for (const auto& task : locks_.Release(*keys)) (*task)();
  };
  for (int i = 0; i < 5000; ++i) {
    if (!held.empty() && random.OneIn(2)) release_one();
    std::set<std::string> wanted;
    for (uint64_t n = 1 + random.Uniform(4); n > 0; --n) {
      wanted.insert(std::to_string(random.Uniform(8)));
    }
    const Keys keys = KeysOf({wanted.begin(), wanted.end()});
    ++asked;
    locks_.Acquire(keys, [&, keys, i] {
      for (const std::string& key : *keys) ASSERT_TRUE(locked.insert(key).second) << key;
      held.emplace(i, keys);
      ++granted;
    });
  }
  while (!held.empty()) release_one();
  EXPECT_EQ(granted, asked);
}

TEST_F(RowLocksTest, AfterAbandonNobodyIsGrantedAnything) {
  Acquire("a", {"1"});
  Acquire("b", {"1"});
  locks_.Abandon();
  Release({"1"});
  Acquire("c", {"2"});
  EXPECT_EQ(granted_, (std::vector<std::string>{"a"}));
}

class GateTest : public ::testing::Test {
 protected:
  Region::Entry Enter() {
    return region_->Enter([this] { ++retries_; });
  }

  SimExecutor executor_{1, Duration(0)};
  std::shared_ptr<ServerExecutor> server_ = std::make_shared<ServerExecutor>(&executor_, false);
  std::shared_ptr<Region> region_ = std::make_shared<Region>(
      RegionInfo{.id = RegionId(1), .epoch = 1}, nullptr, std::make_shared<Fence>(), server_.get());
  int retries_ = 0;
};

TEST_F(GateTest, SomethingRunsAloneAtOnceWhenNobodyIsInside) {
  bool ran = false;
  EXPECT_TRUE(region_->Quiesce([&] {
    ran = true;
    EXPECT_FALSE(region_->IsQuiet());
  }));
  EXPECT_TRUE(ran);
  EXPECT_TRUE(region_->IsQuiet());
}

TEST_F(GateTest, SomethingRunsAloneWhenTheLastHasLeft) {
  EXPECT_EQ(Enter(), Region::Entry::kInside);
  EXPECT_EQ(Enter(), Region::Entry::kInside);
  bool ran = false;
  EXPECT_TRUE(region_->Quiesce([&] { ran = true; }));
  region_->Leave();
  EXPECT_FALSE(ran);
  region_->Leave();
  EXPECT_TRUE(ran);
}

TEST_F(GateTest, WriteThatComesWhileATaskWaitsToRunAloneEntersLater) {
  EXPECT_EQ(Enter(), Region::Entry::kInside);
  EXPECT_TRUE(region_->Quiesce([] {}));
  EXPECT_EQ(Enter(), Region::Entry::kWaiting);
  executor_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(retries_, 0);
  region_->Leave();
  executor_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(retries_, 1);
  EXPECT_EQ(Enter(), Region::Entry::kInside);
}

TEST_F(GateTest, NoWriteEntersWhileATaskRunsAlone) {
  EXPECT_TRUE(region_->Quiesce([&] { EXPECT_EQ(Enter(), Region::Entry::kWaiting); }));
  executor_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(retries_, 1);
}

// One after the other, and what one orders while it runs comes after it.
TEST_F(GateTest, TasksThatRunAloneDoNotOverlap) {
  std::vector<int> order;
  EXPECT_TRUE(region_->Quiesce([&] {
    EXPECT_TRUE(region_->Quiesce([&] { order.push_back(2); }));
    order.push_back(1);
  }));
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(GateTest, AClosedRegionIsEnteredByNobody) {
  EXPECT_EQ(Enter(), Region::Entry::kInside);
  bool was_closed = false;
  EXPECT_TRUE(region_->Quiesce([&] { region_->Close(); }));
  EXPECT_TRUE(region_->Quiesce([&] { was_closed = region_->closed(); }));
  region_->Leave();
  EXPECT_TRUE(was_closed);  // it looks
  EXPECT_EQ(Enter(), Region::Entry::kClosed);
  EXPECT_FALSE(region_->Quiesce([] { FAIL(); }));
  EXPECT_FALSE(region_->IsQuiet());
}

TEST_F(GateTest, AServerThatDiesDropsWhoWaits) {
  EXPECT_EQ(Enter(), Region::Entry::kInside);
  EXPECT_TRUE(region_->Quiesce([] { FAIL(); }));
  EXPECT_EQ(Enter(), Region::Entry::kWaiting);
  region_->Abandon();
  region_->Leave();
  executor_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(retries_, 0);
}

TEST(FenceTest, OnlyTheCurrentEpochEntersAndEpochsNeverFall) {
  Fence fence;
  fence.Advance(5);
  EXPECT_TRUE(fence.Enter(5).owns_lock());
  EXPECT_FALSE(fence.Enter(4).owns_lock());
  EXPECT_FALSE(fence.Enter(6).owns_lock());
  fence.Advance(3);
  EXPECT_TRUE(fence.Enter(5).owns_lock());
}

}  // namespace
}  // namespace tamis
