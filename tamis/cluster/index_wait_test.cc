#include "tamis/cluster/index_wait.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

using namespace std::chrono_literals;

class IndexWaitTest : public testing::Test {
 protected:
  static IndexFailure Failure(uint64_t attempts,
                              const Status& reason = ResourceExhausted("the disk is full")) {
    return {.region = RegionId(7), .server = "rs2", .attempts = attempts, .reason = reason};
  }
  Status Look(const std::optional<IndexFailure>& failure) {
    IndexProgress progress{.regions = 3, .complete = 1};
    if (failure.has_value()) progress.Add(*failure);
    wait_.Look(progress, now_);
    return wait_.GivesUp();
  }
  // Looks once a second, while the server's attempts fail once a second.
  Status FailFor(std::chrono::seconds time, uint64_t attempts = 0) {
    for (auto passed = 0s; passed < time; passed += 1s, now_ += 1s) {
      if (Status status = Look(Failure(++attempts)); !status.ok()) return status;
    }
    return Status::Ok();
  }

  IndexWait wait_;
  Time now_ = 100h;
};

TEST_F(IndexWaitTest, RegionThatFailsForAMinuteEndsTheWaitWithItsReason) {
  EXPECT_EQ(FailFor(60s), Status::Ok());
  EXPECT_EQ(FailFor(1s, 60), ResourceExhausted("the disk is full"));
}

TEST_F(IndexWaitTest, SuccessBeginsTheCountAnew) {
  EXPECT_EQ(FailFor(59s), Status::Ok());
  EXPECT_EQ(Look(std::nullopt), Status::Ok());
  EXPECT_EQ(FailFor(60s), Status::Ok());
  EXPECT_EQ(FailFor(1s, 60), ResourceExhausted("the disk is full"));
}

TEST_F(IndexWaitTest, OpeningBeginsTheCountAnew) {
  EXPECT_EQ(FailFor(59s), Status::Ok());
  EXPECT_EQ(FailFor(60s), Status::Ok()) << "the same server opened the region again";
  IndexFailure elsewhere = Failure(100);
  elsewhere.server = "rs1";
  EXPECT_EQ(Look(elsewhere), Status::Ok());
  now_ += 59s;
  elsewhere.attempts = 200;
  EXPECT_EQ(Look(elsewhere), Status::Ok());
  now_ += 1s;
  EXPECT_FALSE(Look(elsewhere).ok());
}

TEST_F(IndexWaitTest, AnotherRegionThatFailsBeginsTheCountAnew) {
  EXPECT_EQ(FailFor(59s), Status::Ok());
  IndexFailure other = Failure(100);
  other.region = RegionId(8);
  now_ += 10s;
  EXPECT_EQ(Look(other), Status::Ok());
}

// The cause may have been removed since, and the server does not know it yet.
TEST_F(IndexWaitTest, ServerThatTriesSeldomGetsOneMoreAttempt) {
  EXPECT_EQ(Look(Failure(20)), Status::Ok());
  now_ += 5min;
  EXPECT_EQ(Look(Failure(20)), Status::Ok());
  EXPECT_EQ(Look(Failure(21)).code(), StatusCode::kResourceExhausted);
}

TEST_F(IndexWaitTest, FewAttemptsThatTakeLongDoNotEndTheWait) {
  for (uint64_t attempts = 1; attempts < IndexWait::kAttempts; ++attempts, now_ += 1h) {
    EXPECT_EQ(Look(Failure(attempts)), Status::Ok());
  }
  EXPECT_FALSE(Look(Failure(IndexWait::kAttempts)).ok());
}

TEST_F(IndexWaitTest, OutageHasLongerUnlessItsReasonLasts) {
  const Status down = Unavailable("it is not open there");
  const Status denied = FailedPrecondition("permission denied");
  EXPECT_EQ(Look(Failure(0, down)), Status::Ok());
  now_ += IndexWait::kOutage - 1ns;
  EXPECT_EQ(Look(Failure(0, down)), Status::Ok());
  now_ += 1ns;
  EXPECT_EQ(Look(Failure(0, down)), down);
  wait_ = {};
  EXPECT_EQ(Look(Failure(0, denied)), Status::Ok());
  now_ += IndexWait::kPatience;
  EXPECT_EQ(Look(Failure(0, denied)), denied);
}

TEST_F(IndexWaitTest, RegionThatIsOpenAfterAnOutageHasAMinute) {
  EXPECT_EQ(Look(Failure(0, Unavailable("it is not open there"))), Status::Ok());
  now_ += IndexWait::kOutage - 1s;
  EXPECT_EQ(FailFor(60s), Status::Ok());
}

TEST_F(IndexWaitTest, FailureThatTheServerDoesNotTryAgainEndsTheWaitAtOnce) {
  IndexFailure failure = Failure(1, DataLoss("an index entry cannot be read"));
  failure.given_up = true;
  EXPECT_EQ(Look(failure), failure.reason);
}

TEST_F(IndexWaitTest, FailureIsNewsWhenItAppearsAndWhenItHasChanged) {
  const auto is_news = [&](const std::optional<IndexFailure>& failure) {
    (void)Look(failure);
    return wait_.HasNews();
  };
  EXPECT_FALSE(is_news(std::nullopt));
  EXPECT_TRUE(is_news(Failure(1)));
  EXPECT_FALSE(is_news(Failure(2)));
  EXPECT_TRUE(is_news(Failure(3, DataLoss("a block is damaged"))));
  EXPECT_FALSE(is_news(std::nullopt));
  EXPECT_FALSE(is_news(Failure(1, DataLoss("a block is damaged")))) << "it was shown";
  IndexFailure elsewhere = Failure(1);
  elsewhere.region = RegionId(8);
  EXPECT_TRUE(is_news(elsewhere));
}

TEST_F(IndexWaitTest, RegionThatMovesIsNoNews) {
  const Status moves = Unavailable("it is not open there");
  (void)Look(Failure(0, moves));
  EXPECT_FALSE(wait_.HasNews());
  now_ += IndexWait::kMove;
  (void)Look(Failure(0, moves));
  EXPECT_TRUE(wait_.HasNews());
  (void)Look(Failure(0, moves));
  EXPECT_FALSE(wait_.HasNews());
}

TEST(IndexProgressTest, TextNamesRegionServerAttemptsAndReason) {
  IndexProgress progress{.regions = 3, .complete = 1};
  EXPECT_EQ(progress.ToString(), "1 of 3 regions ready");
  progress.Add({.region = RegionId(7),
                .server = "rs2",
                .attempts = 1,
                .reason = ResourceExhausted("the disk is full")});
  EXPECT_EQ(progress.ToString(),
            "1 of 3 regions ready; region 7 on server rs2 failed to complete it (1 attempt): the "
            "disk is full");
  progress.Add({.region = RegionId(8), .reason = Unavailable("no server has it")});
  EXPECT_EQ(progress.ToString(),
            "1 of 3 regions ready; region 7 on server rs2 failed to complete it (1 attempt): the "
            "disk is full (2 regions fail)");
  EXPECT_EQ(
      (IndexFailure{.region = RegionId(8), .reason = Unavailable("no server has it")}).ToString(),
      "region 8 is not ready: no server has it");
  // A wait for it ends at once, whatever is said of the regions before it.
  progress.Add({.region = RegionId(9), .given_up = true, .reason = DataLoss("damaged")});
  EXPECT_EQ(progress.failure->region, RegionId(9));
  progress.Add({.region = RegionId(10), .given_up = true, .reason = DataLoss("damaged")});
  EXPECT_EQ(progress.failure->region, RegionId(9));
  progress.failure = {.region = RegionId(7),
                      .server = "rs2",
                      .attempts = 1,
                      .reason = ResourceExhausted("the disk is full")};
  progress.failure->given_up = true;
  EXPECT_EQ(progress.failure->ToString(),
            "region 7 on server rs2 cannot complete it: the disk is full");
}

}  // namespace
}  // namespace tamis
