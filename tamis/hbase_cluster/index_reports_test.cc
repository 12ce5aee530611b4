#include "tamis/hbase_cluster/index_reports.h"

#include <gtest/gtest.h>

#include "tamis/cluster/error.h"
#include "tamis/hbase_cluster/indexed_table.h"

namespace tamis {
namespace {

constexpr uint32_t kIndex = 3;

hbase::RegionPtr NewRegion(const std::string& digit, const std::string& host) {
  auto region = std::make_shared<hbase::Region>();
  for (int i = 0; i < 32; ++i) region->encoded += digit;
  if (!host.empty()) region->server = {.address = {host, 1}};
  return region;
}

pb::RegionStatus* AddRegion(const hbase::RegionPtr& region, bool published,
                            pb::StatusReply* reply) {
  pb::RegionStatus* status = reply->add_regions();
  status->set_region_id(RegionIdOf(region->encoded)->number());
  pb::IndexStatus* other = status->add_indexes();
  other->set_index_id(kIndex + 1);
  other->set_published(true);
  pb::IndexStatus* index = status->add_indexes();
  index->set_index_id(kIndex);
  index->set_published(published);
  index->set_entries(published ? 10 : 0);
  return status;
}

void Fail(pb::RegionStatus* region, uint64_t attempts, const Status& why) {
  region->mutable_failure()->set_attempts(attempts);
  SetError(why, region->mutable_failure()->mutable_error());
}

TEST(IndexReportsTest, FirstFailureInKeyOrderIsTold) {
  const auto a = NewRegion("2", "two");
  const auto b = NewRegion("4", "one");
  const auto c = NewRegion("6", "one");
  IndexReports reports({a, b, c});
  EXPECT_EQ(reports.Servers(), (std::vector<std::string>{"one:1", "two:1"}));
  pb::StatusReply one;
  Fail(AddRegion(c, false, &one), 2, Internal("c fails"));
  Fail(AddRegion(b, false, &one), 7, ResourceExhausted("the disk is full"));
  reports.Add("one:1", one);
  pb::StatusReply two;
  Fail(AddRegion(a, true, &two), 1, Internal("another index fails"));
  AddRegion(b, true, &two);  // it was there before
  reports.Add("two:1", two);
  const auto progress = reports.Progress(kIndex);
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(progress->regions, 3u);
  EXPECT_EQ(progress->complete, 1u);
  EXPECT_EQ(progress->entries, 10u);
  EXPECT_EQ(progress->failing, 2u);
  ASSERT_TRUE(progress->failure.has_value());
  EXPECT_EQ(progress->failure->region, *RegionIdOf(b->encoded));
  EXPECT_EQ(progress->failure->server, "one:1");
  EXPECT_EQ(progress->failure->attempts, 7u);
  EXPECT_FALSE(progress->failure->given_up);
  EXPECT_EQ(progress->failure->reason, ResourceExhausted("the disk is full"));
}

TEST(IndexReportsTest, FailureThatIsNotRetriedIsTold) {
  const auto a = NewRegion("2", "one");
  IndexReports reports({a});
  pb::StatusReply one;
  pb::RegionStatus* status = AddRegion(a, false, &one);
  status->mutable_failure()->set_given_up(true);
  SetError(FailedPrecondition("no room between its keys"),
           status->mutable_failure()->mutable_error());
  reports.Add("one:1", one);
  const auto progress = reports.Progress(kIndex);
  ASSERT_TRUE(progress.ok() && progress->failure.has_value());
  EXPECT_TRUE(progress->failure->given_up);
  EXPECT_EQ(progress->failure->attempts, 1u);
}

// A jar of an earlier version tells no failure, and a region that is being built has none.
TEST(IndexReportsTest, RegionThatReportsNoFailureIsBeingBuilt) {
  const auto a = NewRegion("2", "one");
  IndexReports reports({a});
  pb::StatusReply one;
  AddRegion(a, false, &one);
  reports.Add("one:1", one);
  const auto progress = reports.Progress(kIndex);
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(progress->complete, 0u);
  EXPECT_FALSE(progress->failure.has_value());
}

TEST(IndexReportsTest, RegionWithoutAnAnswerSaysWhy) {
  const auto reason = [](const std::string& host, const Result<pb::StatusReply>& reply) {
    IndexReports reports({NewRegion("2", host)});
    for (const std::string& server : reports.Servers()) reports.Add(server, reply);
    const auto progress = reports.Progress(kIndex);
    EXPECT_TRUE(progress.ok() && progress->failure.has_value());
    EXPECT_EQ(progress->failure->attempts, 0u);
    EXPECT_EQ(progress->failing, 1u);
    return progress->failure->reason;
  };
  EXPECT_EQ(reason("", pb::StatusReply()), Unavailable("no server has it open"));
  EXPECT_EQ(reason("one", FailedPrecondition("denied")), FailedPrecondition("denied"));
  EXPECT_EQ(reason("one", pb::StatusReply()).code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tamis
