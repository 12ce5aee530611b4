#include "tamis/routing/routed_servers.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

using std::chrono::seconds;

TEST(RoutedServersTest, NumberOfAForgottenServerIsGivenToTheNextOneWithoutItsLease) {
  RoutedServers servers;
  const auto first = servers.Named("first");
  const auto second = servers.Named("second");
  EXPECT_EQ(servers.Named("first"), first);
  EXPECT_EQ(first->number, 0u);
  EXPECT_EQ(second->number, 1u);
  EXPECT_TRUE(servers.ExtendLease(*first, Time(seconds(10))));
  servers.EndLease(*first);
  servers.Forget("first");
  EXPECT_FALSE(servers.Knows(*first));
  EXPECT_EQ(servers.Find("first"), nullptr);

  const auto third = servers.Named("third");
  EXPECT_EQ(third->number, 0u);
  EXPECT_FALSE(servers.HasLease(*third, Time(seconds(1))));
  EXPECT_FALSE(servers.Knows(*first));
  EXPECT_TRUE(servers.Knows(*second));
}

TEST(RoutedServersTest, LeaseIsRevivedOnlyIfItWasOverAtTheLatestNotedTime) {
  RoutedServers servers;
  const auto server = servers.Named("server");
  servers.NoteTime(Time(seconds(5)));
  servers.NoteTime(Time(seconds(3)));                            // an older reading changes nothing
  EXPECT_FALSE(servers.ExtendLease(*server, Time(seconds(4))));  // over already
  EXPECT_TRUE(servers.ExtendLease(*server, Time(seconds(6))));
  EXPECT_FALSE(servers.ExtendLease(*server, Time(seconds(8))));  // it lived
  EXPECT_FALSE(servers.ExtendLease(*server, Time(seconds(7))));  // never shorter
  EXPECT_TRUE(servers.HasLease(*server, Time(seconds(7))));
  EXPECT_FALSE(servers.HasLease(*server, Time(seconds(8))));
}

TEST(RoutedServersTest, RegionsOfServersWithoutALeaseAreAddedForTheirTableAlone) {
  RoutedServers servers;
  const auto with = servers.Named("with"), without = servers.Named("without");
  EXPECT_TRUE(servers.ExtendLease(*with, Time(seconds(9))));
  with->regions[1] = {.table_id = 7, .slot = 0};
  without->regions[2] = {.table_id = 7, .slot = 1};
  without->regions[3] = {.table_id = 8, .slot = 2};
  RegionBits may(3);
  servers.AddWithoutLease(7, Time(seconds(8)), &may);
  EXPECT_FALSE(may.Get(0));
  EXPECT_TRUE(may.Get(1));
  EXPECT_FALSE(may.Get(2));
}

}  // namespace
}  // namespace tamis
