#include "tamis/query/coverage.h"

#include <gtest/gtest.h>

#include "tamis/base/testing/sim_executor.h"

namespace tamis {
namespace {

class CoverageTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const start : {"", "d", "g"}) {
      regions_.push_back({.start = start, .server = std::string("of ") + start});
      if (regions_.size() > 1) regions_[regions_.size() - 2].end = start;
    }
  }

  void Place() {
    coverage_.EnqueueAll();
    coverage_.PlaceIdle(regions_, executor_.Now());
  }
  // Takes what is due of the first server, as a request does.
  std::vector<SubRangeAt> Ask() {
    DueSubRanges::Server* const server = coverage_.due().First();
    if (server == nullptr) return {};
    auto asked = coverage_.due().Begin(server, 8, /*key_order=*/false);
    for (const SubRangeAt sub_range : asked) sub_range->asked = true;
    return asked;
  }
  static std::string TextOf(const std::vector<SubRangeAt>& sub_ranges) {
    std::string text;
    for (const SubRangeAt at : sub_ranges) {
      text += "[" + at->range.start + "," + at->range.end + ")";
    }
    return text;
  }
  static KeyRanges Keys(const std::string& start, const std::string& end) {
    return KeyRanges::Of({start, end});
  }
  void SearchToEnd(SubRangeAt sub_range) {
    sub_range->asked = false;
    sub_range->done = true;
    coverage_.Emptied(sub_range);
  }

  SimExecutor executor_{1, Duration(0)};
  std::vector<RegionInfo> regions_;
  Coverage coverage_{&executor_, {.requests_in_flight = 8}};
};

TEST_F(CoverageTest, KeysAreCutWhereRegionsEnd) {
  coverage_.Begin(Keys("b", "h"), nullptr);
  EXPECT_TRUE(coverage_.IsInSeveral(regions_));
  Place();
  for (const char* const part : {"[b,d)", "[d,g)", "[g,h)"}) {
    const auto asked = Ask();
    ASSERT_EQ(TextOf(asked), part);
    SearchToEnd(asked[0]);
  }
  EXPECT_TRUE(coverage_.empty());
  EXPECT_TRUE(Ask().empty());
}

TEST_F(CoverageTest, OneRegionIsNotSeveral) {
  coverage_.Begin(Keys("d", "g"), nullptr);
  EXPECT_FALSE(coverage_.IsInSeveral(regions_));
  coverage_.Begin(Keys("d", "h"), nullptr);
  EXPECT_TRUE(coverage_.IsInSeveral(regions_));
}

TEST_F(CoverageTest, ExcludedKeysAreTakenOffUnlessTheyAreAsked) {
  coverage_.Begin(Keys("b", "f"), nullptr);
  Place();
  const auto asked = Ask();
  ASSERT_EQ(TextOf(asked), "[b,d)");
  EXPECT_EQ(coverage_.Exclude(Keys("c", "e")).ranges(), Keys("d", "e").ranges());
  Place();
  EXPECT_EQ(TextOf(Ask()), "[e,f)");
  coverage_.Return(asked[0]);
  EXPECT_EQ(coverage_.Exclude(Keys("c", "e")).ranges(), Keys("c", "d").ranges());
}

TEST_F(CoverageTest, ExclusionOfARegionThatHasAnsweredIsNotCounted) {
  coverage_.Begin(Keys("d", "g"), nullptr);
  Place();
  const auto asked = Ask();
  asked[0]->resume = "e";
  coverage_.Return(asked[0]);
  EXPECT_TRUE(coverage_.Exclude(Keys("d", "g")).ranges().empty());
  EXPECT_TRUE(coverage_.empty());
}

TEST_F(CoverageTest, FailedSubRangeWaitsForTheMapAndThenForItsPause) {
  coverage_.Begin(Keys("d", "g"), nullptr);
  Place();
  coverage_.Fail(Ask()[0], Unavailable("moved"));
  EXPECT_EQ(coverage_.last_failure().message(), "moved");
  EXPECT_EQ(coverage_.TakeStale(), (std::vector<KeyRange>{{"d", "g"}}));
  EXPECT_TRUE(coverage_.TakeStale().empty());
  Place();
  EXPECT_EQ(coverage_.NextPauseEnd(), Time::max()) << "the map has not come";

  coverage_.MapCame(Unavailable("no map"));
  Place();
  EXPECT_EQ(coverage_.TakeStale().size(), 1U) << "the map is asked again";
  EXPECT_EQ(coverage_.last_failure().message(), "no map");

  coverage_.MapCame(Status::Ok());
  Place();
  coverage_.Fail(Ask()[0], Unavailable("moved again"));  // the first retry comes at once
  coverage_.TakeStale();
  coverage_.MapCame(Status::Ok());
  Place();
  const Time pause_end = coverage_.NextPauseEnd();
  ASSERT_GT(pause_end, executor_.Now());
  ASSERT_LT(pause_end, Time::max());
  coverage_.PlaceIdle(regions_, pause_end - Duration(1));
  EXPECT_EQ(coverage_.due().First(), nullptr);
  coverage_.PlaceIdle(regions_, pause_end);
  EXPECT_NE(coverage_.due().First(), nullptr);
}

TEST_F(CoverageTest, KeysWithoutAServerAreStale) {
  regions_[1].server.clear();
  coverage_.Begin(Keys("b", "f"), nullptr);
  Place();
  EXPECT_EQ(coverage_.TakeStale(), (std::vector<KeyRange>{{"d", "f"}}));
  EXPECT_EQ(TextOf(Ask()), "[b,d)");
}

TEST_F(CoverageTest, RestOfAShorterRegionIsAskedAgainFromItsPosition) {
  coverage_.Begin(Keys("d", "g"), nullptr);
  Place();
  const SubRangeAt sub_range = Ask()[0];
  sub_range->resume = "position";
  coverage_.CutAt(sub_range, "e");
  SearchToEnd(sub_range);
  ASSERT_FALSE(coverage_.empty());
  EXPECT_EQ(coverage_.first()->range, (KeyRange{"e", "g"}));
  EXPECT_EQ(coverage_.first()->resume, "position");
  Place();
  EXPECT_EQ(coverage_.TakeStale(), (std::vector<KeyRange>{{"e", "g"}}));
}

TEST_F(CoverageTest, SubRangeWithMoreRowsIsAskedAgain) {
  coverage_.Begin(Keys("d", "g"), nullptr);
  Place();
  const SubRangeAt sub_range = Ask()[0];
  sub_range->asked = false;
  coverage_.Emptied(sub_range);
  coverage_.PlaceIdle(regions_, executor_.Now());
  EXPECT_EQ(TextOf(Ask()), "[d,g)");
}

TEST_F(CoverageTest, OnlyNeededSubRangesAreDue) {
  coverage_.Begin(Keys("b", "h"), nullptr);
  Place();
  const SubRangeAt first = coverage_.first();
  EXPECT_TRUE(coverage_.MakeDue({first, std::next(first, 2)}));
  EXPECT_EQ(TextOf(Ask()), "[b,d)");
  EXPECT_EQ(TextOf(Ask()), "[g,h)");
  EXPECT_FALSE(coverage_.MakeDue({first})) << "it is asked";
  EXPECT_EQ(coverage_.due().First(), nullptr);
}

}  // namespace
}  // namespace tamis
