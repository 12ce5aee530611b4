#include "tamis/query/due_sub_ranges.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

class DueSubRangesTest : public testing::Test {
 protected:
  // A sub-range from one letter to the next, in a region of the server.
  SubRangeAt Add(char start, const std::string& server, const std::string& resume = "") {
    regions_.push_back({.server = server});
    sub_ranges_.push_back({.range = {std::string(1, start), std::string(1, ++start)}});
    sub_ranges_.back().resume = resume;
    const SubRangeAt sub_range = std::prev(sub_ranges_.end());
    due_.Add(sub_range, regions_.back());
    return sub_range;
  }
  // The server that is named, and what is taken of it.
  std::string Take(DueSubRanges::Server* server, size_t most = 8, bool key_order = false) {
    if (server == nullptr) return "";
    std::string taken = server->name + ":";
    for (const SubRangeAt sub_range : due_.Begin(server, most, key_order)) {
      taken += sub_range->range.start;
    }
    under_way_.push_back(server);
    return taken;
  }

  DueSubRanges due_{2};
  std::list<SubRange> sub_ranges_;
  std::list<RegionInfo> regions_;
  std::vector<DueSubRanges::Server*> under_way_;
};

TEST_F(DueSubRangesTest, ServerWithTheFirstSubRangeIsChosen) {
  Add('c', "x");
  Add('d', "y");
  Add('e', "x");
  Add('a', "y");  // comes later, and goes first
  EXPECT_EQ(Take(due_.First(), 1), "y:a");
  EXPECT_EQ(Take(due_.First()), "x:ce");
  EXPECT_EQ(Take(due_.First()), "y:d");
  EXPECT_EQ(Take(due_.First()), "");
}

TEST_F(DueSubRangesTest, ServerAtItsRequestLimitIsNotChosen) {
  for (const char start : {'a', 'b', 'c', 'e'}) Add(start, "x");
  Add('d', "y");
  EXPECT_EQ(Take(due_.First(), 1), "x:a");
  EXPECT_EQ(Take(due_.First(), 1), "x:b");
  Add('A', "x");
  EXPECT_EQ(Take(due_.First(), 1), "y:d");
  EXPECT_EQ(Take(due_.First(), 1), "");
  due_.End(under_way_[0]);
  EXPECT_EQ(Take(due_.First(), 2), "x:Ac");
  EXPECT_EQ(Take(due_.First(), 1), "");
}

TEST_F(DueSubRangesTest, ServersWithTheSameLoadAreTakenInKeyOrder) {
  ServerLoads loads;
  Add('a', "x");
  Add('b', "y");
  Add('c', "z");
  const ServerLoads::Request one(&loads, "x"), two(&loads, "x"), three(&loads, "z");
  EXPECT_EQ(Take(due_.LeastLoaded(loads)), "y:b");
  EXPECT_EQ(Take(due_.LeastLoaded(loads)), "z:c");
  EXPECT_EQ(Take(due_.LeastLoaded(loads)), "x:a");
  EXPECT_EQ(due_.LeastLoaded(loads), nullptr);
}

TEST_F(DueSubRangesTest, KeyOrderAsksNothingBehindAnUnfinishedSubRange) {
  Add('a', "x");
  Add('b', "x", "resume");
  Add('c', "x");
  EXPECT_EQ(Take(due_.First(), 8, /*key_order=*/true), "x:ab");
  EXPECT_EQ(Take(due_.First(), 8, /*key_order=*/true), "x:c");
}

TEST_F(DueSubRangesTest, RequestUnderWayCountsAfterTheMapHasChanged) {
  for (const char start : {'a', 'b', 'c'}) Add(start, "x");
  EXPECT_EQ(Take(due_.First(), 1), "x:a");
  EXPECT_EQ(Take(due_.First(), 1), "x:b");
  due_.Clear();
  sub_ranges_.clear();
  Add('d', "x");
  EXPECT_EQ(due_.First(), nullptr);
  due_.End(under_way_[1]);
  EXPECT_EQ(Take(due_.First()), "x:d");
}

}  // namespace
}  // namespace tamis
