#include "tamis/server/deadlines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tamis/base/testing/sim_executor.h"

namespace tamis::server {
namespace {

using std::chrono::seconds;

class CountedTimers final : public SimExecutor {
 public:
  CountedTimers() : SimExecutor(1, Duration(0)) {}
  void PostAfter(Duration delay, Task task) override {
    ++timers;
    SimExecutor::PostAfter(delay, std::move(task));
  }
  int timers = 0;
};

class DeadlinesTest : public testing::Test {
 protected:
  Deadlines::Id Add(int after) {
    return deadlines_.Add(seconds(after), [this, after] { passed_.push_back(after); });
  }

  CountedTimers executor_;
  Deadlines deadlines_{&executor_};
  std::vector<int> passed_;
};

TEST_F(DeadlinesTest, CallsThatAreNotCancelledAreMadeInTheOrderOfTheirTimes) {
  const auto cancelled = Add(3);
  for (const int after : {5, 1, 4, 9, 2}) Add(after);
  deadlines_.Cancel(cancelled);
  executor_.RunFor(seconds(6));
  EXPECT_THAT(passed_, testing::ElementsAre(1, 2, 4, 5));
  Add(1);
  executor_.RunFor(seconds(2));
  EXPECT_EQ(passed_.back(), 1);
  executor_.RunFor(seconds(2));
  EXPECT_EQ(passed_.back(), 9);
}

TEST_F(DeadlinesTest, CancelledCallsKeepNothing) {
  const auto kept = std::make_shared<int>();
  for (int i = 0; i < 1000; ++i) {
    deadlines_.Cancel(deadlines_.Add(seconds(60), [kept] {}));
  }
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_EQ(executor_.timers, 1);
  executor_.RunFor(seconds(120));
  EXPECT_EQ(executor_.timers, 1);
}

TEST_F(DeadlinesTest, TimerThatRunsAfterTheirEndCallsNothing) {
  {
    Deadlines ended(&executor_);
    ended.Add(seconds(1), [] { ADD_FAILURE(); });
  }
  executor_.RunFor(seconds(2));
}

}  // namespace
}  // namespace tamis::server
