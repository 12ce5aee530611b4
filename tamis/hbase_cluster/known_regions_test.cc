#include "tamis/hbase_cluster/known_regions.h"

#include <gtest/gtest.h>

#include "tamis/hbase_cluster/indexed_table.h"

namespace tamis {
namespace {

hbase::RegionPtr NewRegion(const std::string& digit, const std::string& start,
                           const std::string& end, const std::string& host) {
  auto region = std::make_shared<hbase::Region>();
  region->table = "t";
  for (int i = 0; i < 32; ++i) region->encoded += digit;
  region->start = start;
  region->end = end;
  region->server = {.address = {host, 1}};
  return region;
}

TEST(KnownRegionsTest, FindsTheRegionsOfAServer) {
  KnownRegions known;
  const auto a = NewRegion("2", "", "g", "one");
  const auto b = NewRegion("4", "g", "p", "one");
  const auto c = NewRegion("6", "p", "", "two");
  known.Learn("t", {}, {a, b, c});
  EXPECT_EQ(known.CountAt("one:1"), 2u);
  // The preferred region comes first; the number of regions is limited.
  EXPECT_EQ(known.At("one:1", {*RegionIdOf(b->encoded)}, 9), (std::vector{b, a}));
  EXPECT_EQ(known.At("one:1", {*RegionIdOf(c->encoded)}, 1), (std::vector{a}));
  EXPECT_EQ(known.Find(*RegionIdOf(c->encoded)), c);
  EXPECT_TRUE(known.At("three:1", {}, 9).empty());
}

TEST(KnownRegionsTest, NewRegionsReplaceOverlappingOnes) {
  KnownRegions known;
  const auto parent = NewRegion("2", "", "", "one");
  known.Learn("t", {}, {parent});
  // Only a part of the daughter regions was read.
  const auto lower = NewRegion("4", "", "g", "two");
  known.Learn("t", {"a", "b"}, {lower});
  EXPECT_EQ(known.CountAt("one:1"), 0u);
  EXPECT_EQ(known.Find(*RegionIdOf(parent->encoded)), nullptr);
  // The region moved. A caller that saw it at the old server must not drop the new entry.
  const auto moved = NewRegion("4", "", "g", "one");
  known.Learn("t", {"", "g"}, {moved});
  EXPECT_FALSE(known.Forget(lower));
  EXPECT_EQ(known.At("one:1", {}, 9), (std::vector{moved}));
  EXPECT_TRUE(known.Forget(moved));
  EXPECT_EQ(known.CountAt("one:1"), 0u);
  // A region that is open nowhere.
  const auto closed = NewRegion("4", "", "g", "");
  known.Learn("t", {}, {closed});
  EXPECT_EQ(known.Find(*RegionIdOf(closed->encoded)), closed);
  known.ForgetTable("t");
  EXPECT_EQ(known.Find(*RegionIdOf(closed->encoded)), nullptr);
}

}  // namespace
}  // namespace tamis
