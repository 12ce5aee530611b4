#include "tamis/hbase_cluster/hbase_jobs.h"

#include "tamis/base/answers.h"
#include "tamis/hbase_cluster/compaction_job.h"
#include "tamis/hbase_cluster/table_job.h"

namespace tamis {
namespace {

constexpr int kThreads = 4;
constexpr Duration kAnswerTime = std::chrono::seconds(10);

}  // namespace

HBaseJobs::HBaseJobs(Executor* executor, Duration patience, HBaseCluster* cluster,
                     hbase::Client* client, RegionDirectory* regions,
                     const std::atomic<bool>* closed)
    : executor_(executor),
      patience_(patience),
      cluster_(cluster),
      client_(client),
      regions_(regions),
      closed_(*closed),
      threads_(kThreads) {}

Result<uint64_t> HBaseJobs::Start(const JobSpec& spec) {
  const std::string what = "cannot " + spec.ToString();
  std::optional<IndexedTable> table;
  if (spec.kind == JobSpec::Kind::kCheck || spec.kind == JobSpec::Kind::kRebuildIndex) {
    auto found = cluster_->Find(spec.table);
    if (!found.ok()) return found.status().WithContext(what);
    table = *std::move(found);
    if (!spec.index.empty() && table->stored.FindIndex(spec.index) == nullptr) {
      return NotFound(what + ": table \"" + spec.table + "\" has no index \"" + spec.index + "\"");
    }
  }
  const uint64_t job = jobs_.Add(spec, 1);
  threads_.Post([this, job, spec, what, table = std::move(table)] {
    jobs_.End(job, Run(job, spec, table).WithContext(what));
  });
  return job;
}

Status HBaseJobs::Run(uint64_t job, const JobSpec& spec, const std::optional<IndexedTable>& table) {
  switch (spec.kind) {
    case JobSpec::Kind::kCheck:
    case JobSpec::Kind::kRebuildIndex:
      break;
    case JobSpec::Kind::kBalance: {
      TAMIS_ASSIGN_OR_RETURN(const uint64_t moved, client_->Balance());
      jobs_.Update(job, [&](JobInfo* info) { info->moved = moved; });
      return Status::Ok();
    }
    case JobSpec::Kind::kCompact:
      return Compact(job);
  }
  TableJob::Options options;
  if (spec.kind == JobSpec::Kind::kRebuildIndex) {
    options.kind = pb::StartJobRequest::REBUILD;
    if (!spec.index.empty()) options.index_id = table->stored.FindIndex(spec.index)->id;
  }
  const auto soon = [this] {
    return Wait{.deadline = executor_->Now() + kAnswerTime, .cancelled = &closed_};
  };
  TableJob parts({.list =
                      [&] {
                        return AwaitResult<std::vector<RegionInfo>>(
                            executor_, soon(), [&](auto done) {
                              cluster_->ListRegions(table->stored.name, {}, std::move(done));
                            });
                      },
                  .start =
                      [&](const std::string& server, const pb::StartJobRequest& request) {
                        return AwaitResult<pb::StartJobReply>(executor_, soon(), [&](auto done) {
                          cluster_->Stub(server)->StartJob(request, std::move(done));
                        });
                      },
                  .get =
                      [&](const std::string& server, const pb::GetJobRequest& request,
                          const std::vector<RegionId>& regions) {
                        return AwaitResult<pb::GetJobReply>(executor_, soon(), [&](auto done) {
                          cluster_->Stub(server)->GetJob(request, regions, std::move(done));
                        });
                      },
                  .now = [this] { return executor_->Now(); },
                  .pause = [this](Duration pause) { return Pause(pause); }},
                 table->schema().id, options);
  TAMIS_RETURN_IF_ERROR(
      parts.Run([&](uint64_t done, uint64_t total) { SetProgress(job, done, total); }));
  if (spec.kind == JobSpec::Kind::kCheck) {
    jobs_.Update(job, [&](JobInfo* info) { info->check = parts.report(); });
  }
  return Status::Ok();
}

Status HBaseJobs::Compact(uint64_t job) {
  CompactionJob all(
      {.list = [this] { return regions_->OfAllTables(); },
       .begin = [this](const hbase::Region& region) -> Status {
         TAMIS_RETURN_IF_ERROR(client_->FlushRegion(region));
         return client_->CompactRegion(region, true);
       },
       .is_compacting = [this](const auto& region) { return client_->IsCompacting(region); },
       .now = [this] { return executor_->Now(); },
       .pause = [this](Duration pause) { return Pause(pause); }},
      patience_);
  return all.Run([&](uint64_t done, uint64_t total) { SetProgress(job, done, total); });
}

Status HBaseJobs::Pause(Duration pause) {
  if (closed_) return Cancelled("the cluster was closed");
  Sleep(executor_, pause);
  return Status::Ok();
}

void HBaseJobs::SetProgress(uint64_t job, uint64_t done, uint64_t total) {
  jobs_.Update(job, [&](JobInfo* info) {
    info->done = done;
    info->total = total;
  });
}

}  // namespace tamis
