#include "tests/cluster/cluster_under_test.h"

#include "tamis/cluster/await_job.h"

namespace tamis {

Status ClusterUnderTest::Kill(const std::string& server) {
  return Order([&](auto done) { admin().KillServer(server, done); });
}

Status ClusterUnderTest::Pause(const std::string& server) {
  return Order([&](auto done) { admin().PauseServer(server, done); });
}

Status ClusterUnderTest::Resume(const std::string& server) {
  return Order([&](auto done) { admin().ResumeServer(server, done); });
}

Status ClusterUnderTest::Split(RegionId region, const std::string& key) {
  return Order([&](auto done) { admin().SplitRegion(region, key, done); });
}

Status ClusterUnderTest::Merge(RegionId region) {
  return Order([&](auto done) { admin().MergeRegion(region, done); });
}

Status ClusterUnderTest::Move(RegionId region, const std::string& server) {
  return Order([&](auto done) { admin().MoveRegion(region, server, done); });
}

Result<JobInfo> ClusterUnderTest::Run(const JobSpec& job) {
  return AwaitJob(&admin(), &executor(), Soon(), job);
}

Result<SchemaPtr> ClusterUnderTest::CreateTable(const TableSchema& schema) {
  TAMIS_ASSIGN_OR_RETURN(auto made,
                         Ask<TableSchema>([&](auto done) { admin().CreateTable(schema, done); }));
  return std::make_shared<const TableSchema>(std::move(made));
}

Result<std::vector<RegionInfo>> ClusterUnderTest::Regions(const std::string& table,
                                                          std::vector<KeyRange> stale) {
  return Ask<std::vector<RegionInfo>>(
      [&](auto done) { cluster().ListRegions(table, std::move(stale), done); });
}

Result<std::vector<std::string>> ClusterUnderTest::Servers() {
  TAMIS_ASSIGN_OR_RETURN(const auto servers, Ask<std::vector<ServerInfo>>(
                                                 [&](auto done) { cluster().ListServers(done); }));
  std::vector<std::string> names;
  for (const ServerInfo& server : servers) names.push_back(server.name);
  return names;
}

Status ClusterUnderTest::SplitAll(const std::string& table) {
  TAMIS_ASSIGN_OR_RETURN(const auto regions, Regions(table));
  for (const RegionInfo& region : regions) TAMIS_RETURN_IF_ERROR(Split(region.id));
  return Status::Ok();
}

Result<CheckReport> ClusterUnderTest::Reconcile(const std::string& table, Duration patience) {
  const Time end = executor().Now() + patience;
  std::string last;
  while (executor().Now() < end) {
    const auto job = Run({.kind = JobSpec::Kind::kCheck, .table = table});
    if (job.ok() && !job->check.ok()) {
      return Internal("the check is not clean: " + job->check.ToString());
    }
    const auto status = Ask<ClusterStatus>([&](auto done) { admin().GetStatus(done); });
    const bool rests = status.ok() && status->pending_work == 0;
    if (rests && job.ok() && job->check.incomplete == 0) return job->check;
    last = (job.ok() ? job->check.ToString() : job.status().ToString()) +
           (rests ? "" : ", work is pending");
    Sleep(&executor(), std::chrono::milliseconds(20));
  }
  return DeadlineExceeded("the cluster does not come to rest: " + last);
}

}  // namespace tamis
