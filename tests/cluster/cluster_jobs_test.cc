// The long work of every kind of cluster, and the names that its errors use.
#include "tests/cluster/cluster_suite.h"

#include "tamis/cluster/await_job.h"

namespace tamis {
namespace {

using std::chrono::seconds;

TEST_P(ClusterSuite, ACheckIsAJobThatBringsItsReport) {
  Fill(20);
  const auto job = kind_->Run({.kind = JobSpec::Kind::kCheck, .table = "packages"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->check.ok());
  EXPECT_EQ(job->check.rows, 20u);
  EXPECT_EQ(job->check.entries, 40u);
  EXPECT_EQ(job->done, job->total);
}

TEST_P(ClusterSuite, EveryJobEndsAndLeavesTheTableAsItWas) {
  Fill(300);
  SplitAll(2);
  const std::pair<JobSpec::Kind, std::optional<Capability>> kinds[] = {
      {JobSpec::Kind::kRebuildIndex, {}},
      {JobSpec::Kind::kBalance, Capability::kBalance},
      {JobSpec::Kind::kCompact, Capability::kCompact}};
  for (const auto& [kind, capability] : kinds) {
    if (capability.has_value() && !Can(*capability)) continue;
    const JobSpec spec{.kind = kind, .table = "packages"};
    const auto job = kind_->Run(spec);
    ASSERT_TRUE(job.ok()) << spec.ToString() << ": " << job.status();
    ExpectAll(300);
    ExpectClean(300);
  }
  const auto servers = kind_->Servers();
  if (!Can(Capability::kBalance) || servers->size() < Regions().size()) return;
  std::map<std::string, int> regions;
  for (const RegionInfo& region : Regions()) ++regions[region.server];
  for (const auto& [server, number] : regions) EXPECT_LE(number, 1) << server;
}

TEST_P(ClusterSuite, StartingAJobAnswersBeforeItsWorkIsDone) {
  if (!kind_->has_virtual_clock()) GTEST_SKIP() << "its work may be done at once";
  Fill(20);
  std::optional<Result<uint64_t>> started;
  kind_->admin().StartJob(
      {.kind = JobSpec::Kind::kRebuildIndex, .table = "packages", .index = "size"},
      [&](Result<uint64_t> job) { started.emplace(std::move(job)); });
  ASSERT_TRUE(started.has_value() && started->ok());
  const uint64_t job = **started;
  const auto info = [&] {
    return kind_->Ask<JobInfo>([&](auto done) { kind_->admin().GetJob(job, done); });
  };
  ASSERT_TRUE(info().ok());
  EXPECT_FALSE(info()->ended);
  Sleep(&kind_->executor(), seconds(5));
  ASSERT_TRUE(info().ok());
  EXPECT_TRUE(info()->ended);
  EXPECT_TRUE(info()->status.ok()) << info()->status;
  EXPECT_GE(info()->total, 1u);
}

TEST_P(ClusterSuite, AJobThatIsNotWaitedForGoesOn) {
  if (!kind_->has_virtual_clock()) GTEST_SKIP() << "it may have ended at once";
  Fill(20);
  const Wait none{.deadline = kind_->executor().Now()};
  const auto job = AwaitJob(&kind_->admin(), &kind_->executor(), none,
                            {.kind = JobSpec::Kind::kCheck, .table = "packages"});
  ASSERT_EQ(job.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(job.status().message().find("which goes on"), std::string::npos) << job.status();
  Sleep(&kind_->executor(), seconds(5));
  const auto info = kind_->Ask<JobInfo>([&](auto done) { kind_->admin().GetJob(1, done); });
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_TRUE(info->ended);
}

TEST_P(ClusterSuite, RequestThatCannotBeginMakesNoJob) {
  for (const JobSpec& spec :
       {JobSpec{.kind = JobSpec::Kind::kCheck, .table = "no"},
        {.kind = JobSpec::Kind::kRebuildIndex, .table = "packages", .index = "no"}}) {
    const auto job = kind_->Run(spec);
    EXPECT_EQ(job.status().code(), StatusCode::kNotFound) << job.status();
    EXPECT_NE(job.status().message().find(spec.ToString()), std::string::npos) << job.status();
  }
  const auto job = kind_->Ask<JobInfo>([&](auto done) { kind_->admin().GetJob(77, done); });
  EXPECT_EQ(job.status().code(), StatusCode::kNotFound);
}

TEST_P(ClusterSuite, ErrorsNameTablesAndRegionsOneWay) {
  EXPECT_EQ(kind_->Regions("no").status(), NotFound("no table \"no\""));
  // HBase allows no such name.
  EXPECT_EQ(kind_->Regions("no name").status(), NotFound("no table \"no name\""));
  const auto progress = kind_->Ask<IndexProgress>(
      [&](auto done) { kind_->admin().GetIndexProgress("packages", "no", done); });
  EXPECT_EQ(progress.status(), NotFound("table \"packages\" has no index \"no\""));
  const auto servers = kind_->Servers();
  ASSERT_TRUE(servers.ok()) << servers.status();
  for (const auto& [doing, status] : {std::pair("split", kind_->Split(RegionId(99))),
                                      {"merge", kind_->Merge(RegionId(99))},
                                      {"move", kind_->Move(RegionId(99), servers->front())}}) {
    EXPECT_EQ(status, NotFound(std::string("cannot ") + doing + " region 99: there is none"));
  }
}

}  // namespace
}  // namespace tamis
