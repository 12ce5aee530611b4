#include "tamis/feed/feed_coordinators.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace tamis {
namespace {

using std::chrono::seconds;

class FeedCoordinatorsTest : public testing::Test {
 protected:
  // A lease with a reply that has all events up to `last`.
  Duration Grant(uint64_t number, uint64_t last) {
    return coordinators_.GrantLease(number, last, now_, now_ + seconds(60));
  }
  uint64_t Applied(uint64_t last) const {
    return coordinators_.AppliedByAll(last, now_, [](uint64_t) { return false; });
  }

  Time now_ = Time(seconds(100));
  FeedCoordinators coordinators_{{.lease = seconds(2),
                                  .lease_margin = seconds(1),
                                  .silence = seconds(10),
                                  .max_coordinators = 1,
                                  .max_listeners = 2}};
};

TEST_F(FeedCoordinatorsTest, FloorIsThatOfLiveLeases) {
  coordinators_.Hear(1, 5, now_);
  EXPECT_EQ(coordinators_.Floor(9, now_), 9U) << "without a lease";
  EXPECT_EQ(Grant(1, 9), seconds(2));
  EXPECT_EQ(coordinators_.Floor(9, now_), 5U);
  EXPECT_EQ(coordinators_.NextLeaseEnd(now_), now_ + seconds(3)) << "the margin counts";
  EXPECT_EQ(coordinators_.Floor(9, now_ + seconds(3)), 9U);
  EXPECT_EQ(coordinators_.NextLeaseEnd(now_ + seconds(3)), Time::max());
}

TEST_F(FeedCoordinatorsTest, LeaseEndsWithTheProof) {
  coordinators_.Hear(1, 5, now_);
  EXPECT_EQ(coordinators_.GrantLease(1, 5, now_, now_ + seconds(1)), seconds(1));
  EXPECT_EQ(coordinators_.GrantLease(1, 5, now_, now_), Duration(0));
}

TEST_F(FeedCoordinatorsTest, CoordinatorThatAppliesNothingLosesItsLease) {
  coordinators_.Hear(1, 5, now_);
  EXPECT_GT(Grant(1, 9), Duration(0));
  now_ += seconds(2);
  coordinators_.Hear(1, 5, now_);
  EXPECT_GT(Grant(1, 12), Duration(0));
  now_ += seconds(1);
  coordinators_.Hear(1, 8, now_);
  EXPECT_EQ(Grant(1, 12), Duration(0)) << "event 9 is overdue";
  coordinators_.Hear(1, 9, now_);
  EXPECT_GT(Grant(1, 12), Duration(0));
}

TEST_F(FeedCoordinatorsTest, LeasesAreForAFew) {
  coordinators_.Hear(1, 5, now_);
  coordinators_.Hear(2, 5, now_);
  EXPECT_GT(Grant(1, 5), Duration(0));
  EXPECT_EQ(Grant(2, 5), Duration(0));
  EXPECT_EQ(Grant(3, 5), Duration(0)) << "it never polled";
  now_ += seconds(3);
  EXPECT_GT(Grant(2, 5), Duration(0));
}

TEST_F(FeedCoordinatorsTest, SilentCoordinatorMakesRoomForANewOne) {
  coordinators_.Hear(1, 5, now_);
  coordinators_.Hear(2, 5, now_ + seconds(1));
  coordinators_.Hear(3, 5, now_ + seconds(1));
  EXPECT_EQ(coordinators_.Followers(9, now_).size(), 2U) << "there is no room for 3";
  coordinators_.Hear(3, 5, now_ + seconds(2));
  std::string numbers;
  for (const auto& follower : coordinators_.Followers(9, now_)) {
    numbers += std::to_string(follower.coordinator) + " ";
    EXPECT_EQ(follower.behind, 4U);
  }
  EXPECT_EQ(numbers, "2 3 ");
}

TEST_F(FeedCoordinatorsTest, EventsAreKeptForThoseThatPolledLately) {
  coordinators_.Hear(1, 5, now_);
  EXPECT_EQ(Applied(9), 5U);
  now_ += seconds(10);
  EXPECT_EQ(Applied(9), 9U);
  EXPECT_EQ(coordinators_.AppliedByAll(9, now_, [](uint64_t number) { return number == 1; }), 5U)
      << "its poll is parked";
}

TEST_F(FeedCoordinatorsTest, PollThatKnowsAnotherLifeAcknowledgesNothing) {
  coordinators_.Hear(1, 5, now_);
  coordinators_.Hear(1, std::nullopt, now_);
  EXPECT_EQ(Applied(9), 5U);
  coordinators_.Hear(1, 3, now_);
  EXPECT_EQ(Applied(9), 5U) << "a poll that was overtaken";
}

}  // namespace
}  // namespace tamis
