#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/base/thread_executor.h"

namespace tamis {
namespace {

std::vector<int> OrderOfTen(uint64_t seed) {
  SimExecutor executor(seed, std::chrono::milliseconds(1));
  std::vector<int> order;
  for (int i = 0; i < 10; ++i) executor.Post([&order, i] { order.push_back(i); });
  executor.RunFor(std::chrono::seconds(1));
  return order;
}

TEST(SimExecutorTest, SameSeedGivesTheSameOrderAndAnotherSeedAnother) {
  EXPECT_EQ(OrderOfTen(1), OrderOfTen(1));
  EXPECT_NE(OrderOfTen(1), OrderOfTen(2));
  EXPECT_EQ(OrderOfTen(1).size(), 10u);
}

TEST(SimExecutorTest, TimeAdvancesOnlyByTasksAndTheTest) {
  SimExecutor executor(1, Duration(0));
  const Time start = executor.Now();
  Time seen{};
  executor.PostAfter(std::chrono::seconds(5), [&] { seen = executor.Now(); });
  executor.RunFor(std::chrono::seconds(4));
  EXPECT_EQ(seen, Time{});
  EXPECT_EQ(executor.Now(), start + std::chrono::seconds(4));
  executor.RunFor(std::chrono::seconds(2));
  EXPECT_EQ(seen, start + std::chrono::seconds(5));
}

TEST(SimExecutorTest, AwaitRunsTheTasksThatLeadToTheAnswer) {
  SimExecutor executor(1, std::chrono::milliseconds(1));
  const int value = Await<int>(&executor, [&](auto done) {
    executor.Post(
        [&executor, done] { executor.PostAfter(std::chrono::hours(1), [done] { done(7); }); });
  });
  EXPECT_EQ(value, 7);
}

TEST(SimExecutorTest, WaitEndsAtItsDeadlineBesideOtherTasks) {
  SimExecutor executor(1, std::chrono::milliseconds(1));
  const Time deadline = executor.Now() + std::chrono::seconds(1);
  bool early = false, late = false;
  Executor::Waiter waiter;
  executor.PostAfter(std::chrono::milliseconds(999), [&] { early = true; });
  executor.PostAfter(std::chrono::milliseconds(1001), [&] {
    late = true;
    waiter.WakeUp();
  });
  EXPECT_FALSE(executor.WaitFor(&waiter, deadline));
  EXPECT_EQ(executor.Now(), deadline);
  EXPECT_TRUE(early);
  EXPECT_FALSE(late);
  EXPECT_TRUE(executor.WaitFor(&waiter, Time::max()));
  EXPECT_TRUE(late);
  Sleep(&executor, std::chrono::hours(1));
  EXPECT_GE(executor.Now(), deadline + std::chrono::hours(1));
}

TEST(ThreadExecutorTest, AWaitEndsWhenWokenOrAtItsDeadline) {
  ThreadExecutor executor(1);
  Executor::Waiter nobody, woken;
  EXPECT_FALSE(executor.WaitFor(&nobody, executor.Now() + std::chrono::milliseconds(1)));
  EXPECT_FALSE(executor.WaitFor(&nobody, executor.Now() - std::chrono::hours(1)));
  executor.Post([&] { woken.WakeUp(); });
  EXPECT_TRUE(executor.WaitFor(&woken, Time::max()));
}

TEST(ThreadExecutorTest, AwaitReturnsWhatATimerGives) {
  ThreadExecutor executor(2);
  const int value = Await<int>(&executor, [&](auto done) {
    executor.PostAfter(std::chrono::milliseconds(1), [done] { done(7); });
  });
  EXPECT_EQ(value, 7);
}

TEST(ThreadExecutorTest, StopWaitsForRunningTasksAndDropsOthers) {
  std::atomic<int> ran = 0;
  ThreadExecutor executor(2);
  executor.PostAfter(std::chrono::hours(1), [&] { ++ran; });
  Await<int>(&executor, [&](auto done) {
    executor.Post([&ran, done] {
      ++ran;
      done(1);
    });
  });
  executor.Stop();
  executor.Post([&] { ++ran; });
  EXPECT_EQ(ran, 1);
}

// Models a client's thread that delivers answers until the end.
TEST(ThreadExecutorTest, PostIsSafeDuringAndAfterStop) {
  for (int i = 0; i < 20; ++i) {
    ThreadExecutor executor(2);
    std::atomic<int> posted = 0;
    std::atomic<bool> over = false;
    std::thread other([&] {
      while (!over) {
        executor.Post([] {});
        executor.PostAfter(std::chrono::hours(1), [] {});
        ++posted;
      }
    });
    while (posted == 0) std::this_thread::yield();
    executor.Stop();
    const int at_stop = posted;
    while (posted == at_stop) std::this_thread::yield();
    over = true;
    other.join();
  }
}

}  // namespace
}  // namespace tamis
