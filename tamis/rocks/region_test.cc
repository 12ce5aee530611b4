// Row locks and the gate of a region.

#include "tamis/rocks/region.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <latch>
#include <new>
#include <thread>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/base/thread_executor.h"

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

TEST_F(RowLocksTest, RowIsGrantedToOneRequestAtATimeInOrder) {
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

// Keys are sorted: no two requests wait for each other.
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

TEST_F(RowLocksTest, NoRowIsGrantedAfterAbandon) {
  Acquire("a", {"1"});
  Acquire("b", {"1"});
  locks_.Abandon();
  Release({"1"});
  Acquire("c", {"2"});
  EXPECT_EQ(granted_, (std::vector<std::string>{"a"}));
  const Keys keys = KeysOf({"3"});
  locks_.Acquire(keys, [] { FAIL(); });
  EXPECT_EQ(keys.use_count(), 1) << "the request is gone";
}

TEST_F(RowLocksTest, ThreadsHoldARowOneAtATime) {
  constexpr int kThreads = 3, kRequests = 6000;
  std::array<std::atomic<int>, 200> holders{};
  std::atomic<int> granted = 0, overlaps = 0;
  std::function<void(Keys)> use = [&](const Keys& keys) {
    for (const std::string& key : *keys) overlaps += ++holders[std::stoul(key)] != 1;
    ++granted;
    for (const std::string& key : *keys) --holders[std::stoul(key)];
    for (const auto& task : locks_.Release(*keys)) (*task)();
  };
  std::latch begin(kThreads);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      begin.arrive_and_wait();
      for (int i = 0; i < kRequests; ++i) {
        std::set<std::string> wanted;
        for (uint64_t n = 1 + random.Uniform(60); n > 0; --n) {
          wanted.insert(std::to_string(random.Uniform(holders.size())));
        }
        const Keys keys = KeysOf({wanted.begin(), wanted.end()});
        locks_.Acquire(keys, [&, keys] { use(keys); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(granted, kThreads * kRequests);
  EXPECT_EQ(overlaps, 0);
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

TEST_F(GateTest, TaskRunsAtOnceWhenNoWriteIsInside) {
  bool ran = false;
  EXPECT_TRUE(region_->Quiesce([&] {
    ran = true;
    EXPECT_FALSE(region_->IsQuiet());
  }));
  EXPECT_TRUE(ran);
  EXPECT_TRUE(region_->IsQuiet());
}

TEST_F(GateTest, TaskRunsWhenTheLastWriteHasLeft) {
  EXPECT_EQ(Enter(), Region::Entry::kInside);
  EXPECT_EQ(Enter(), Region::Entry::kInside);
  bool ran = false;
  EXPECT_TRUE(region_->Quiesce([&] { ran = true; }));
  region_->Leave();
  EXPECT_FALSE(ran);
  region_->Leave();
  EXPECT_TRUE(ran);
}

TEST_F(GateTest, WriteThatComesWhileATaskWaitsEntersLater) {
  EXPECT_EQ(Enter(), Region::Entry::kInside);
  EXPECT_EQ(Enter(), Region::Entry::kInside);
  EXPECT_TRUE(region_->Quiesce([] {}));
  EXPECT_EQ(Enter(), Region::Entry::kWaiting);
  executor_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(retries_, 0);
  region_->Leave();
  executor_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(retries_, 0) << "another one is still inside";
  region_->Leave();
  executor_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(retries_, 1);
  EXPECT_EQ(Enter(), Region::Entry::kInside);
}

TEST_F(GateTest, NoWriteEntersWhileATaskRuns) {
  EXPECT_TRUE(region_->Quiesce([&] { EXPECT_EQ(Enter(), Region::Entry::kWaiting); }));
  executor_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(retries_, 1);
}

// One after the other, and what one orders while it runs comes after it.
TEST_F(GateTest, TasksDoNotOverlap) {
  std::vector<int> order;
  EXPECT_TRUE(region_->Quiesce([&] {
    EXPECT_TRUE(region_->Quiesce([&] { order.push_back(2); }));
    order.push_back(1);
  }));
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(GateTest, NoWriteEntersAClosedRegion) {
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

TEST_F(GateTest, WaitingWritesEnterAfterTheLastTask) {
  std::vector<std::string> order;
  EXPECT_EQ(Enter(), Region::Entry::kInside);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(region_->Quiesce([&] {
      EXPECT_EQ(retries_, 0);
      order.push_back("alone");
    }));
    EXPECT_EQ(Enter(), Region::Entry::kWaiting);
  }
  EXPECT_FALSE(region_->IsQuiet());
  region_->Leave();
  EXPECT_EQ(order.size(), 3u);
  executor_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(retries_, 3);
  EXPECT_TRUE(region_->IsQuiet());
}

// Has no memory for a task.
class FullExecutor : public SimExecutor {
 public:
  FullExecutor() : SimExecutor(1, Duration(0)) {}
  void Post(Task) override { throw std::bad_alloc(); }
};

TEST_F(GateTest, WaitingWriteRunsInlineWhenOutOfMemory) {
  FullExecutor executor;
  const auto server = std::make_shared<ServerExecutor>(&executor, false);
  Region region(RegionInfo{.id = RegionId(1), .epoch = 1}, nullptr, std::make_shared<Fence>(),
                server.get());
  ASSERT_EQ(region.Enter([] {}), Region::Entry::kInside);
  EXPECT_TRUE(region.Quiesce([] {}));
  bool entered = false;
  EXPECT_EQ(region.Enter([&] { entered = region.Enter([] {}) == Region::Entry::kInside; }),
            Region::Entry::kWaiting);
  region.Leave();
  EXPECT_TRUE(entered);
}

TEST_F(GateTest, TaskWithoutMemoryBlocksNoOther) {
  EXPECT_TRUE(region_->Quiesce([] { throw std::bad_alloc(); }));
  bool ran = false;
  EXPECT_TRUE(region_->Quiesce([&] { ran = true; }));
  EXPECT_TRUE(ran);
  EXPECT_EQ(Enter(), Region::Entry::kInside);
}

TEST_F(GateTest, AbandonedRegionIsClosedAndGrantsNoRow) {
  const Keys keys = KeysOf({"1"});
  region_->Abandon();
  EXPECT_TRUE(region_->closed());
  EXPECT_EQ(Enter(), Region::Entry::kClosed);
  region_->locks().Acquire(keys, [] { FAIL(); });
}

TEST_F(GateTest, WritesAndTasksOfManyThreadsExcludeEachOther) {
  constexpr int kThreads = 3, kWrites = 10'000;
  ThreadExecutor executor(1);
  const auto server = std::make_shared<ServerExecutor>(&executor, false);
  const auto region = std::make_shared<Region>(RegionInfo{.id = RegionId(1), .epoch = 1}, nullptr,
                                               std::make_shared<Fence>(), server.get());
  std::atomic<int> inside = 0, alone = 0, entered = 0, faults = 0;
  Executor::Waiter all_entered;
  std::function<void()> write = [&] {
    if (region->Enter([&] { write(); }) != Region::Entry::kInside) return;
    ++inside;
    faults += alone != 0;
    --inside;
    region->Leave();
    if (++entered == kThreads * kWrites) all_entered.WakeUp();
  };
  std::latch begin(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      begin.arrive_and_wait();
      for (int i = 0; i < kWrites; ++i) {
        write();
        if (i % 16 != 0) continue;
        faults += !region->Quiesce([&] {
          faults += ++alone != 1 || inside != 0 || region->IsQuiet();
          --alone;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  executor.WaitFor(&all_entered);
  EXPECT_EQ(faults, 0);
  EXPECT_TRUE(region->IsQuiet());
  executor.Stop();
}

// ---- Indexes

TEST_F(GateTest, IndexIsMarkedCompleteOrClearedWithoutWritesInside) {
  SimExecutor executor(1, Duration(0));
  const auto feed = std::make_shared<FilterFeed>(&executor, "rs", 1, FilterFeed::Options{});
  Region::Indexes indexes;
  for (const uint32_t id : {3u, 5u}) {
    const IndexSpec spec{.id = id, .name = "i", .columns = {1}};
    indexes[id].filter = std::make_shared<IndexFilter>(feed.get(), spec, 1, 1, Faults{});
  }
  EXPECT_TRUE(region_->indexes()->empty());
  const auto schema = std::make_shared<const TableSchema>();
  region_->SetSchema(schema, indexes);
  EXPECT_EQ(region_->schema(), schema);
  const auto before = region_->indexes();
  EXPECT_EQ(region_->filter(3), indexes[3].filter);
  EXPECT_EQ(region_->filter(5), indexes[5].filter);
  EXPECT_EQ(region_->filter(4), nullptr);
  region_->SetEntriesComplete(5);
  region_->SetEntriesCleared(3);
  region_->SetEntriesComplete(4);  // dropped meanwhile
  region_->SetEntriesCleared(4);
  EXPECT_TRUE(region_->IsEntriesComplete(5));
  EXPECT_FALSE(region_->IsEntriesComplete(3));
  EXPECT_FALSE(region_->IsEntriesComplete(4));
  const auto now = region_->indexes();
  ASSERT_EQ(now->size(), 2u);
  EXPECT_TRUE(now->at(3).entries_cleared && !now->at(3).entries_complete);
  EXPECT_TRUE(!now->at(5).entries_cleared && now->at(5).entries_complete);
  EXPECT_EQ(now->at(3).filter, indexes[3].filter);
  EXPECT_FALSE(before->at(5).entries_complete) << "a write keeps the indexes that it began with";
}

TEST_F(GateTest, WaitingWritesAreDroppedWhenTheServerDies) {
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
