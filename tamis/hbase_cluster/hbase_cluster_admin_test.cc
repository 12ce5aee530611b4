// Administration of scripted servers. The executor's clock stands still unless a test moves it.
#include "tamis/hbase_cluster/hbase_cluster_admin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "tamis/base/testing/manual_executor.h"
#include "tamis/hbase/testing/scripted_cluster.h"
#include "tamis/table/definition.h"
#include "tamis/table/schema_change.h"

namespace tamis {
namespace {

using hbase::ScriptedServer;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr int kRegions = 4;  // the number of HBaseClusterAdmin's threads

// Table "t" has its regions on the second server. The first one is the master.
class HBaseClusterAdminTest : public testing::Test {
 protected:
  HBaseClusterAdminTest() {
    std::vector<hbase::RegionPtr> regions;
    for (int i = 1; i <= kRegions; ++i) {
      regions.push_back(std::make_shared<hbase::Region>(
          scripted_.SetRegion(std::to_string(i), std::to_string(i + 1), 1)));
    }
    const auto acknowledge = [](const auto& request, const ScriptedServer::PeerPtr& peer) {
      peer->Answer(request.call_id, hbase::pb::CreateTableResponse());
    };
    master().On("SplitRegion", acknowledge);
    master().On("getProcedureResult", [](const auto& request, const auto& peer) {
      hbase::pb::GetProcedureResultResponse answer;
      answer.set_state(hbase::pb::GetProcedureResultResponse::FINISHED);
      peer->Answer(request.call_id, answer);
    });
    master().On("Balance", [](const auto& request, const auto& peer) {
      hbase::pb::BalanceResponse answer;
      answer.set_balancer_ran(true);
      answer.set_moves_executed(3);
      peer->Answer(request.call_id, answer);
    });
    master().On("GetTableDescriptors",
                [this](const auto& request, const auto& peer) { AnswerTables(request, peer); });
    master().On("CreateTable", [this](const auto& request, const auto& peer) {
      if (!has_namespace_) {
        return peer->Throw(request.call_id, "NamespaceNotFoundException", "any text", true);
      }
      *tables_.add_table_schema() =
          request.template Parsed<hbase::pb::CreateTableRequest>().table_schema();
      peer->Answer(request.call_id, hbase::pb::CreateTableResponse());
    });
    master().On("CreateNamespace", [this](const auto& request, const auto& peer) {
      has_namespace_ = true;
      peer->Answer(request.call_id, hbase::pb::CreateTableResponse());
    });
    master().On("GetClusterStatus", [this](const auto& request, const auto& peer) {
      hbase::pb::GetClusterStatusResponse answer;
      hbase::ToProto(master().name(), answer.mutable_cluster_status()->mutable_master());
      peer->Answer(request.call_id, answer);
    });
    region_server().On("CompactRegion", acknowledge);
    region_server().On("FlushRegion", acknowledge);
    region_server().On("GetRegionInfo", [this](const auto& request, const auto& peer) {
      hbase::pb::GetRegionInfoResponse answer;
      hbase::ToProto(hbase::MetaRegion({}), answer.mutable_region_info());
      answer.set_splittable(splittable_);
      answer.set_compaction_state(hbase::pb::GetRegionInfoResponse::MAJOR);
      peer->Answer(request.call_id, answer);
    });
    const std::string address = master().address().ToString();
    cluster_ = *HBaseCluster::Open({.client = {.addresses = address}}, &executor_);
    admin_ = *HBaseClusterAdmin::Open({.client = {.addresses = address}, .patience = minutes(6)},
                                      cluster_.get(), &executor_);
    cluster_->known_regions().Learn("t", {}, regions);
  }

  ScriptedServer& master() { return scripted_.server(0); }
  ScriptedServer& region_server() { return scripted_.server(1); }

  static TableSchema Wanted() { return InCells(*ParseDefinition("t", {"id int64", "key (id)"})); }
  static hbase::pb::GetTableDescriptorsResponse Tables() {
    const TableSchema schema = *NewTable(Wanted(), 1);
    const hbase::TableDescription described =
        WithOrigin(DescribeIndexed({.name = "t"}, schema), TableOrigin::kCreated);
    hbase::pb::GetTableDescriptorsResponse answer;
    hbase::pb::TableSchema& table = *answer.add_table_schema();
    hbase::ToProto("t", table.mutable_table_name());
    for (const auto& [name, value] : described.attributes) {
      auto& attribute = *table.add_attributes();
      attribute.set_first(name);
      attribute.set_second(value);
    }
    return answer;
  }
  void AnswerTables(const ScriptedServer::Request& request, const ScriptedServer::PeerPtr& peer) {
    const auto asked = request.Parsed<hbase::pb::GetTableDescriptorsRequest>();
    if (!asked.namespace_().empty() && !has_namespace_) {
      return peer->Throw(request.call_id, "NamespaceNotFoundException", "any text", true);
    }
    peer->Answer(request.call_id, tables_);
  }
  Result<TableSchema> CreateTable() {
    std::optional<Result<TableSchema>> created;
    admin_->CreateTable(Wanted(), [&](const Result<TableSchema>& table) { created = table; });
    executor_.RunUntil([&] { return created.has_value(); });
    return *created;
  }
  static RegionId Region(int number) {
    return *RegionIdOf(std::string(32, static_cast<char>('0' + number)));
  }
  void Split(int number) {
    admin_->SplitRegion(Region(number), "15",
                        [this](const Status& status) { ended_.push_back(status); });
  }
  uint64_t StartJob(JobSpec::Kind kind) {
    std::optional<uint64_t> job;
    admin_->StartJob({.kind = kind}, [&](const Result<uint64_t>& started) {
      ASSERT_TRUE(started.ok()) << started.status();
      job = *started;
    });
    executor_.RunUntil([&] { return job.has_value(); });
    return *job;
  }
  JobInfo Job(uint64_t job) {
    JobInfo info;
    admin_->GetJob(job, [&](const Result<JobInfo>& found) { info = *found; });
    return info;
  }

  std::atomic<bool> splittable_ = false;
  // The state of the master.
  std::atomic<bool> has_namespace_ = true;
  hbase::pb::GetTableDescriptorsResponse tables_ = Tables();
  hbase::ScriptedCluster scripted_{2};
  ManualExecutor executor_;
  std::unique_ptr<HBaseCluster> cluster_;
  std::unique_ptr<HBaseClusterAdmin> admin_;
  std::vector<Status> ended_;
};

TEST_F(HBaseClusterAdminTest, RefusedSplitsDelayNoOtherCall) {
  for (int i = 1; i <= kRegions; ++i) Split(i);
  executor_.RunUntil([&] { return executor_.timers() == kRegions; });
  const uint64_t fifth = StartJob(JobSpec::Kind::kBalance);
  executor_.RunUntil([&] { return Job(fifth).ended; });
  EXPECT_EQ(Job(fifth).status, Status());
  EXPECT_EQ(Job(fifth).moved, 3u);
  EXPECT_TRUE(ended_.empty());
  EXPECT_EQ(master().calls("SplitRegion"), 0);
  EXPECT_EQ(region_server().calls("CompactRegion"), kRegions);

  splittable_ = true;
  executor_.Advance(seconds(2));
  executor_.RunUntil([&] { return ended_.size() == kRegions; });
  EXPECT_THAT(ended_, testing::Each(Status()));
  EXPECT_EQ(master().calls("SplitRegion"), kRegions);
}

TEST_F(HBaseClusterAdminTest, UnfinishedJobsDelayNoOtherJob) {
  std::vector<uint64_t> compactions;
  for (int i = 0; i < kRegions; ++i) compactions.push_back(StartJob(JobSpec::Kind::kCompact));
  executor_.RunUntil([&] { return executor_.timers() == kRegions; });
  const uint64_t fifth = StartJob(JobSpec::Kind::kBalance);
  executor_.RunUntil([&] { return Job(fifth).ended; });
  EXPECT_EQ(Job(fifth).status, Status());
  for (const uint64_t job : compactions) EXPECT_FALSE(Job(job).ended);
}

TEST_F(HBaseClusterAdminTest, PatienceLimitsTheTriesOfASplit) {
  Split(1);
  while (ended_.empty()) {
    executor_.RunUntil([&] { return executor_.timers() == 1 || !ended_.empty(); });
    executor_.Advance(minutes(1));
  }
  EXPECT_EQ(ended_[0].code(), StatusCode::kUnavailable);
  EXPECT_THAT(ended_[0].message(), HasSubstr("has not compacted it"));
  EXPECT_EQ(region_server().calls("GetRegionInfo"), 1 + minutes(6) / minutes(1));
}

TEST_F(HBaseClusterAdminTest, RepeatsAMergeThatIsRefusedByItsExceptionsClass) {
  std::atomic<bool> is_refused = true;
  master().On("MergeTableRegions", [&](const auto& request, const auto& peer) {
    if (!is_refused) return peer->Answer(request.call_id, hbase::pb::CreateTableResponse());
    peer->Throw(request.call_id, "exceptions.MergeRegionException", "any text", true);
  });
  admin_->MergeRegion(Region(1), [this](const Status& status) { ended_.push_back(status); });
  executor_.RunUntil([&] { return executor_.timers() == 1; });
  EXPECT_EQ(region_server().calls("CompactRegion"), 2);
  is_refused = false;
  executor_.Advance(seconds(2));
  executor_.RunUntil([&] { return !ended_.empty(); });
  EXPECT_EQ(ended_[0], Status());
}

// The user may create tables, but not ask the processes what they load.
TEST_F(HBaseClusterAdminTest, FirstTableCreatesTheNamespace) {
  has_namespace_ = false;
  tables_.Clear();
  master().On("ExecMasterService", [](const auto& request, const auto& peer) {
    peer->Throw(request.call_id, "security.AccessDeniedException", "any text", true);
  });
  const auto created = CreateTable();
  EXPECT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(master().calls("CreateNamespace"), 1);
  EXPECT_EQ(master().calls("CreateTable"), 2);
}

TEST_F(HBaseClusterAdminTest, NoTableIsCreatedWhereTheJarIsMissing) {
  tables_.Clear();
  master().On("ExecMasterService", [](const auto& request, const auto& peer) {
    peer->Throw(request.call_id, "exceptions.UnknownProtocolException",
                "No registered Master Coprocessor Endpoint found for tamis.pb.Installation", true);
  });
  const auto created = CreateTable();
  EXPECT_EQ(created.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(created.status().message(), HasSubstr("does not load the jar"));
  EXPECT_EQ(master().calls("CreateTable"), 0);
}

// The class of this refusal may stand for any reason, so its text must not matter.
TEST_F(HBaseClusterAdminTest, DoesNotRepeatASplitThatTheMasterRefuses) {
  splittable_ = true;
  master().On("SplitRegion", [](const auto& request, const auto& peer) {
    peer->Throw(request.call_id, "DoNotRetryIOException", "table \"NOT splittable\" is odd", true);
  });
  Split(1);
  executor_.RunUntil([&] { return !ended_.empty(); });
  EXPECT_EQ(ended_[0].code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(master().calls("SplitRegion"), 1);
}

}  // namespace
}  // namespace tamis
