#include "tamis/hbase_cluster/workers.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tamis/base/testing/manual_executor.h"

namespace tamis {
namespace {

using std::chrono::seconds;

class WorkersTest : public testing::Test {
 protected:
  // A step that pauses until the work may end.
  Workers::Step Waiting() {
    return [this]() -> Result<std::optional<Duration>> {
      ++steps_;
      if (may_end_) return std::optional<Duration>();
      return std::optional<Duration>(seconds(5));
    };
  }
  auto Count() {
    return [this](const Status& status) {
      EXPECT_EQ(status, Status());
      ++ended_;
    };
  }

  ManualExecutor executor_;
  std::atomic<bool> may_end_ = false;
  std::atomic<int> steps_ = 0;
  int ended_ = 0;
};

TEST_F(WorkersTest, WorkThatPausesOccupiesNoThread) {
  Workers workers(&executor_, 1);
  for (int i = 0; i < 3; ++i) workers.RunSteps(Waiting(), Count());
  executor_.RunUntil([&] { return executor_.timers() == 3; });
  bool has_run = false;
  workers.Run([] { return Status(); }, [&](const Status&) { has_run = true; });
  executor_.RunUntil([&] { return has_run; });
  EXPECT_EQ(steps_, 3);
  EXPECT_EQ(ended_, 0);
}

TEST_F(WorkersTest, NextStepFollowsThePause) {
  Workers workers(&executor_, 1);
  workers.RunSteps(Waiting(), Count());
  executor_.RunUntil([&] { return executor_.timers() == 1; });
  executor_.Advance(seconds(5));
  executor_.RunUntil([&] { return executor_.timers() == 1; });
  EXPECT_EQ(steps_, 2);
  may_end_ = true;
  executor_.Advance(seconds(4));
  executor_.RunUntil([] { return true; });
  EXPECT_EQ(ended_, 0);
  executor_.Advance(seconds(1));
  executor_.RunUntil([&] { return ended_ == 1; });
  EXPECT_EQ(steps_, 3);
}

TEST_F(WorkersTest, ErrorEndsTheWork) {
  Workers workers(&executor_, 1);
  std::optional<Status> ended;
  workers.RunSteps([]() -> Result<std::optional<Duration>> { return NotFound("gone"); },
                   [&](const Status& status) { ended = status; });
  executor_.RunUntil([&] { return ended.has_value(); });
  EXPECT_EQ(*ended, NotFound("gone"));
}

TEST_F(WorkersTest, TimerOutlivesTheWorkers) {
  {
    Workers workers(&executor_, 1);
    workers.RunSteps(Waiting(), Count());
    executor_.RunUntil([&] { return executor_.timers() == 1; });
  }
  executor_.Advance(seconds(5));
  executor_.RunUntil([] { return true; });
  EXPECT_EQ(steps_, 1);
  EXPECT_EQ(ended_, 0);
}

}  // namespace
}  // namespace tamis
