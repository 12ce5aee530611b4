// The interface of an administrator, on the embedded cluster: jobs that are asked for, names, what
// cannot be done.
#include "tamis/cluster/cluster_admin.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tamis/base/sim_executor.h"
#include "tamis/cluster/await_job.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/rocks_cluster.h"

namespace tamis {
namespace {

using std::chrono::seconds;

class ClusterAdminTest : public testing::Test {
 protected:
  ClusterAdminTest()
      : directory_(std::filesystem::path(testing::TempDir()) /
                   ("cluster_admin_test." + std::to_string(getpid()))) {
    std::filesystem::remove_all(directory_);
    RocksCluster::Options options;
    options.store.directory = directory_;
    options.servers = 3;
    auto opened = RocksCluster::Open(options, &executor_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    opened_ = std::move(*opened);
    cluster_ = opened_.get();
    admin_ = opened_.get();
    TableSchema schema;
    schema.name = "t";
    schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                      {.name = "n", .type = Type::kInt64}};
    schema.key = {0};
    schema.indexes = {{.name = "n", .columns = {1}}};
    const auto made = Ask<TableSchema>([&](auto done) { admin_->CreateTable(schema, done); });
    EXPECT_TRUE(made.ok()) << made.status();
    table_ = std::make_shared<const TableSchema>(*made);
  }
  ~ClusterAdminTest() override {
    executor_.Clear();
    opened_.reset();
    std::filesystem::remove_all(directory_);
  }

  Wait Soon() const { return {.deadline = executor_.Now() + seconds(60)}; }
  template <class T, class Call>
  Result<T> Ask(Call&& call) {
    return AwaitResult<T>(&executor_, Soon(), call);
  }
  Result<JobInfo> Run(JobSpec spec) { return AwaitJob(admin_, &executor_, Soon(), spec); }
  std::vector<RegionInfo> Regions(std::vector<KeyRange> stale = {}) {
    auto regions = Ask<std::vector<RegionInfo>>(
        [&](auto done) { cluster_->ListRegions("t", std::move(stale), done); });
    EXPECT_TRUE(regions.ok()) << regions.status();
    return *regions;
  }
  void Fill(int64_t rows) {
    Engine engine(cluster_, &executor_, {.seed = 1});
    std::vector<Write> writes;
    for (int64_t i = 0; i < rows; ++i) {
      writes.push_back({.row = {Value::Int64(i), Value::Int64(i % 7)}});
    }
    for (const Status& status : engine.Apply(table_, std::move(writes))) {
      EXPECT_TRUE(status.ok()) << status;
    }
  }

  const std::filesystem::path directory_;
  SimExecutor executor_{1, std::chrono::milliseconds(1)};
  std::unique_ptr<RocksCluster> opened_;
  Cluster* cluster_ = nullptr;
  ClusterAdmin* admin_ = nullptr;
  SchemaPtr table_;
};

TEST_F(ClusterAdminTest, ACheckIsAJobThatBringsItsReport) {
  Fill(20);
  const auto job = Run({.kind = JobSpec::Kind::kCheck, .table = "t"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->check.ok());
  EXPECT_EQ(job->check.rows, 20u);
  EXPECT_EQ(job->check.entries, 20u);
  EXPECT_EQ(job->done, job->total);
}

TEST_F(ClusterAdminTest, StartingAJobAnswersBeforeItsWorkIsDone) {
  Fill(20);
  std::optional<Result<uint64_t>> started;
  admin_->StartJob({.kind = JobSpec::Kind::kRebuildIndex, .table = "t", .index = "n"},
                   [&](Result<uint64_t> job) { started.emplace(std::move(job)); });
  ASSERT_TRUE(started.has_value() && started->ok());
  const uint64_t job = **started;
  const auto info = [&] { return Ask<JobInfo>([&](auto done) { admin_->GetJob(job, done); }); };
  ASSERT_TRUE(info().ok());
  EXPECT_FALSE(info()->ended);
  executor_.RunFor(seconds(5));
  ASSERT_TRUE(info().ok());
  EXPECT_TRUE(info()->ended);
  EXPECT_TRUE(info()->status.ok()) << info()->status;
  EXPECT_GE(info()->total, 1u);
}

TEST_F(ClusterAdminTest, WhatCannotBeBegunIsNoJob) {
  for (const JobSpec& spec :
       {JobSpec{.kind = JobSpec::Kind::kCheck, .table = "no"},
        {.kind = JobSpec::Kind::kRebuildIndex, .table = "t", .index = "no"}}) {
    const auto job = Run(spec);
    EXPECT_EQ(job.status().code(), StatusCode::kNotFound) << job.status();
    EXPECT_NE(job.status().message().find(spec.ToString()), std::string::npos) << job.status();
  }
  EXPECT_EQ(Ask<JobInfo>([&](auto done) { admin_->GetJob(77, done); }).status().code(),
            StatusCode::kNotFound);
}

TEST_F(ClusterAdminTest, AJobThatIsNotWaitedForGoesOn) {
  Fill(20);
  const Wait none{.deadline = executor_.Now()};
  const auto job =
      AwaitJob(admin_, &executor_, none, {.kind = JobSpec::Kind::kCheck, .table = "t"});
  ASSERT_EQ(job.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(job.status().message().find("which goes on"), std::string::npos) << job.status();
  executor_.RunFor(seconds(5));
  const auto info = Ask<JobInfo>([&](auto done) { admin_->GetJob(1, done); });
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_TRUE(info->ended);
}

TEST_F(ClusterAdminTest, OnlyTheRegionsOfStaleKeysAreListed) {
  Fill(40);
  for (int i = 0; i < 2; ++i) {
    for (const RegionInfo& region : Regions()) {
      const Status split = AwaitStatus(
          &executor_, Soon(), [&](auto done) { admin_->SplitRegion(region.id, "", done); });
      ASSERT_TRUE(split.ok()) << split;
    }
  }
  const std::vector<RegionInfo> all = Regions();
  ASSERT_EQ(all.size(), 4u);
  const std::vector<RegionInfo> middle = Regions({{all[1].start, all[1].end}});
  ASSERT_EQ(middle.size(), 1u);
  EXPECT_EQ(middle[0].id, all[1].id);
  EXPECT_EQ(middle[0].name, all[1].id.ToString());
  // A key: the least range that holds it. No bound: to the end of the table.
  EXPECT_EQ(Regions({{all[2].start, all[2].start + '\0'}}).size(), 1u);
  EXPECT_EQ(Regions({{all[2].start, ""}}).size(), 2u);
  EXPECT_EQ(Regions({{"", all[1].start}, {all[3].start, ""}}).size(), 2u);
}

TEST_F(ClusterAdminTest, ErrorsNameTablesAndRegionsOneWay) {
  const auto listed =
      Ask<std::vector<RegionInfo>>([&](auto done) { cluster_->ListRegions("no", {}, done); });
  EXPECT_EQ(listed.status(), NotFound("no table \"no\""));
  const auto progress =
      Ask<IndexProgress>([&](auto done) { admin_->GetIndexProgress("t", "no", done); });
  EXPECT_EQ(progress.status(), NotFound("table \"t\" has no index \"no\""));
  for (const auto& [doing, status] :
       {std::pair("split",
                  AwaitStatus(&executor_, Soon(),
                              [&](auto done) { admin_->SplitRegion(RegionId(99), "", done); })),
        {"merge", AwaitStatus(&executor_, Soon(),
                              [&](auto done) { admin_->MergeRegion(RegionId(99), done); })},
        {"move", AwaitStatus(&executor_, Soon(),
                             [&](auto done) { admin_->MoveRegion(RegionId(99), "rs1", done); })}}) {
    EXPECT_EQ(status, NotFound(std::string("cannot ") + doing + " region 99: there is none"));
  }
}

TEST_F(ClusterAdminTest, WhatAClusterCannotDoIsAnAnswer) {
  EXPECT_TRUE(admin_->Can(Capability::kPauseServer));
  const Status status = CannotDo(Capability::kPauseServer);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "this cluster cannot pause a server");
}

TEST_F(ClusterAdminTest, StatusTellsOfServers) {
  ASSERT_TRUE(
      AwaitStatus(&executor_, Soon(), [&](auto done) { admin_->PauseServer("rs2", done); }).ok());
  ASSERT_TRUE(
      AwaitStatus(&executor_, Soon(), [&](auto done) { admin_->KillServer("rs3", done); }).ok());
  const auto status = Ask<ClusterStatus>([&](auto done) { admin_->GetStatus(done); });
  ASSERT_TRUE(status.ok());
  ASSERT_EQ(status->servers.size(), 3u);
  EXPECT_EQ(status->servers[1].info.state, ServerInfo::State::kPaused);
  EXPECT_EQ(status->servers[2].info.state, ServerInfo::State::kDead);
}

}  // namespace
}  // namespace tamis
