#include "tamis/base/join.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace tamis {
namespace {

TEST(JoinTest, CallsBackOnceWhenTheLastPartEnds) {
  int calls = 0, sum = 0;
  Join<int> join(0, [&](int result) {
    ++calls;
    sum = result;
  });
  for (int i = 0; i < 3; ++i) join.Begin();
  for (int i = 1; i <= 3; ++i) join.End([i](int* all) { *all += i; });
  EXPECT_EQ(calls, 0);
  join.End();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(sum, 6);
}

TEST(JoinTest, WithoutPartsTheOwnEndIsTheEnd) {
  int calls = 0;
  Join<int> join(7, [&](int result) { calls += result; });
  join.End();
  EXPECT_EQ(calls, 7);
}

TEST(JoinTest, PartsMayEndOnAnyThread) {
  constexpr int kThreads = 8;
  std::atomic<int> sum = 0;
  Join<int> join(0, [&](int result) { sum += result; });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) join.Begin();
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&join] { join.End([](int* all) { ++*all; }); });
  join.End();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(sum, kThreads);
}

}  // namespace
}  // namespace tamis
