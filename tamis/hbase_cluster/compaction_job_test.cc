#include "tamis/hbase_cluster/compaction_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace tamis {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Duration kPatience = seconds(60);

hbase::RegionPtr NewRegion(const std::string& name, const std::string& host) {
  auto region = std::make_shared<hbase::Region>();
  region->encoded = name;
  if (!host.empty()) region->server = {.address = {host, 1}, .start_code = 1};
  return region;
}

// Regions that the test moves while they are compacted. A pause advances the clock.
class CompactionJobTest : public testing::Test {
 protected:
  Status Run() {
    CompactionJob job({.list = [this] { return regions_; },
                       .begin = [this](const hbase::Region& region) -> Status {
                         begun_.push_back(region.encoded + "@" + region.server.address.host);
                         return begins_;
                       },
                       .is_compacting = [this](const hbase::Region&) { return compacting_; },
                       .now = [this] { return now_; }},
                      kPatience);
    while (true) {
      const auto pause = job.Step([this](uint64_t done, uint64_t total) {
        progress_ = std::to_string(done) + " of " + std::to_string(total);
      });
      if (!pause.ok() || !pause->has_value()) return pause.status();
      now_ += **pause;
      if (on_pause_) on_pause_(++pauses_);
    }
  }

  Result<std::vector<hbase::RegionPtr>> regions_ =
      std::vector{NewRegion("r", "one"), NewRegion("s", "two")};
  Status begins_;
  Result<bool> compacting_ = false;
  std::function<void(int)> on_pause_;
  Time now_ = seconds(1000);
  int pauses_ = 0;
  std::vector<std::string> begun_;
  std::string progress_;
};

TEST_F(CompactionJobTest, CompactsEachRegionOnce) {
  EXPECT_EQ(Run(), Status());
  EXPECT_THAT(begun_, ElementsAre("r@one", "s@two"));
  EXPECT_EQ(progress_, "2 of 2");
}

TEST_F(CompactionJobTest, CompactsAMovedRegionAtItsNewServer) {
  compacting_ = true;
  on_pause_ = [this](int pauses) {
    if (pauses == 3) regions_ = std::vector{NewRegion("r", "three"), NewRegion("s", "two")};
    if (pauses == 6) compacting_ = false;
  };
  EXPECT_EQ(Run(), Status());
  EXPECT_THAT(begun_, ElementsAre("r@one", "s@two", "r@three"));
}

TEST_F(CompactionJobTest, WaitsForARegionThatIsOpenNowhere) {
  regions_ = std::vector{NewRegion("r", "one"), NewRegion("s", "")};
  on_pause_ = [this](int pauses) {
    if (pauses == 4) regions_ = std::vector{NewRegion("r", "one"), NewRegion("s", "two")};
  };
  EXPECT_EQ(Run(), Status());
  EXPECT_THAT(begun_, ElementsAre("r@one", "s@two"));
}

TEST_F(CompactionJobTest, RetriesARefusedCompaction) {
  begins_ = Unavailable("NotServingRegionException");
  on_pause_ = [this](int pauses) {
    if (pauses == 2) begins_ = Status();
  };
  EXPECT_EQ(Run(), Status());
  EXPECT_THAT(begun_, ElementsAre("r@one", "s@two", "r@one", "s@two", "r@one", "s@two"));
}

TEST_F(CompactionJobTest, StartsAgainIfTheRegionCloses) {
  compacting_ = Unavailable("NotServingRegionException");
  on_pause_ = [this](int pauses) {
    if (pauses == 2) compacting_ = false;
  };
  EXPECT_EQ(Run(), Status());
  EXPECT_THAT(begun_, ElementsAre("r@one", "s@two", "r@one", "s@two"));
}

TEST_F(CompactionJobTest, CompactsTheDaughtersOfASplitRegion) {
  compacting_ = true;
  on_pause_ = [this](int pauses) {
    if (pauses != 2) return;
    compacting_ = false;
    regions_ = std::vector{NewRegion("r1", "one"), NewRegion("r2", "two"), NewRegion("s", "two")};
  };
  EXPECT_EQ(Run(), Status());
  EXPECT_THAT(begun_, ElementsAre("r@one", "s@two", "r1@one", "r2@two"));
  EXPECT_EQ(progress_, "3 of 3");
}

TEST_F(CompactionJobTest, RetriesIfTheRegionListFails) {
  const auto regions = regions_;
  regions_ = Unavailable("hbase:meta is open nowhere");
  on_pause_ = [&](int pauses) {
    if (pauses == 5) regions_ = regions;
  };
  EXPECT_EQ(Run(), Status());
}

TEST_F(CompactionJobTest, PatienceLimitsOnlyTimeWithoutProgress) {
  compacting_ = true;  // for ten times the patience
  on_pause_ = [this](int) {
    if (now_ > seconds(1000) + 10 * kPatience) compacting_ = false;
  };
  EXPECT_EQ(Run(), Status());
  begins_ = Unavailable("server one is away");
  const Status status = Run();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("server one is away"));
}

TEST_F(CompactionJobTest, PermanentErrorEndsTheJob) {
  begins_ = FailedPrecondition("AccessDeniedException");
  EXPECT_EQ(Run(), begins_);
  begins_ = Status();
  regions_ = FailedPrecondition("AccessDeniedException");
  EXPECT_EQ(Run(), regions_.status());
}

}  // namespace
}  // namespace tamis
