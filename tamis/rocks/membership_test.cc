#include "tamis/rocks/membership.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

using namespace std::chrono_literals;

TEST(MembershipTest, ServerSilentForASessionIsExpelled) {
  Membership members(1s);
  members.Join("a", 1, 10s);
  members.Join("b", 2, 10s);
  EXPECT_TRUE(members.Heartbeat("a", 1, 10500ms));
  members.Expire(11s);
  EXPECT_TRUE(members.IsAlive("a"));
  EXPECT_FALSE(members.IsAlive("b"));
  EXPECT_TRUE(members.Heartbeat("a", 1, 11s));
  EXPECT_FALSE(members.Heartbeat("b", 2, 11s));
  EXPECT_FALSE(members.IsAlive("b")) << "too late";
}

TEST(MembershipTest, AHeartbeatOfAFormerLifeProvesNothing) {
  Membership members(1s);
  members.Join("a", 1, 10s);
  members.Join("a", 2, 10s);
  EXPECT_FALSE(members.Heartbeat("a", 1, 10900ms));
  members.Expire(11s);
  EXPECT_FALSE(members.IsAlive("a")) << "the present life was not heard";
}

TEST(MembershipTest, ExpelledLifeStaysExpelledUntilANewOneJoins) {
  Membership members(1s);
  members.Join("a", 1, 10s);
  members.Expel("a");
  EXPECT_FALSE(members.Heartbeat("a", 1, 10s));
  EXPECT_FALSE(members.IsAlive("a"));
  members.Join("a", 2, 10s);
  EXPECT_TRUE(members.Heartbeat("a", 2, 10s));
  EXPECT_FALSE(members.Heartbeat("never joined", 1, 10s));
}

TEST(MembershipTest, ForgivenSessionsStartAgain) {
  Membership members(1s);
  members.Join("a", 1, 10s);
  members.Forgive(20s);
  members.Expire(20500ms);
  EXPECT_TRUE(members.IsAlive("a"));
  members.Expire(21s);
  EXPECT_FALSE(members.IsAlive("a"));
}

// Heartbeats may overtake each other.
TEST(MembershipTest, LateHeartbeatShortensNoSession) {
  Membership members(1s);
  members.Join("a", 1, 10s);
  EXPECT_TRUE(members.Heartbeat("a", 1, 12s));
  EXPECT_TRUE(members.Heartbeat("a", 1, 11s));
  members.Expire(12500ms);
  EXPECT_TRUE(members.IsAlive("a"));
}

}  // namespace
}  // namespace tamis
