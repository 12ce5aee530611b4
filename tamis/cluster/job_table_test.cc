#include "tamis/cluster/job_table.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

TEST(JobTableTest, StateOfAJobIsKnownBeforeAndAfterItsEnd) {
  JobTable jobs;
  const uint64_t job = jobs.Add({.kind = JobSpec::Kind::kCheck, .table = "t"}, 3);
  jobs.Update(job, [](JobInfo* info) { ++info->done; });
  auto info = jobs.Find(job);
  ASSERT_TRUE(info.ok());
  EXPECT_FALSE(info->ended);
  EXPECT_EQ(info->spec.table, "t");
  EXPECT_EQ(info->done, 1u);
  EXPECT_EQ(info->total, 3u);

  jobs.End(job, Unavailable("x"));
  jobs.End(job, Status::Ok());  // it has ended once
  jobs.Update(job, [](JobInfo* late) { ++late->done; });
  info = jobs.Find(job);
  ASSERT_TRUE(info.ok());
  EXPECT_TRUE(info->ended);
  EXPECT_EQ(info->status, Unavailable("x"));
  EXPECT_EQ(info->done, 1u);
}

TEST(JobTableTest, OnlyTheLastEndedJobsAreKept) {
  JobTable jobs;
  const uint64_t running = jobs.Add({}, 1);
  const uint64_t first = jobs.Add({}, 1);
  jobs.End(first, Status::Ok());
  uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    last = jobs.Add({}, 1);
    jobs.End(last, Status::Ok());
  }
  EXPECT_TRUE(jobs.Find(running).ok());
  EXPECT_TRUE(jobs.Find(last).ok());
  EXPECT_EQ(jobs.Find(first).status().message(), "there is no job 2 any more; it ended long ago");
  EXPECT_EQ(jobs.Find(4711).status().message(), "there is no job 4711");
}

}  // namespace
}  // namespace tamis
