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
      jobs_(std::make_shared<JobTable>()),
      workers_(executor, kThreads) {}

Result<uint64_t> HBaseJobs::Start(const JobSpec& spec) {
  const std::string what = "cannot " + spec.ToString();
  if (spec.kind == JobSpec::Kind::kFitCells) {
    return InvalidArgument(what + ": the jar in HBase's servers does not support cells yet");
  }
  std::optional<IndexedTable> table;
  if (spec.kind == JobSpec::Kind::kCheck || spec.kind == JobSpec::Kind::kRebuildIndex) {
    auto found = cluster_->tables().FindReadable(spec.table);
    if (!found.ok()) return found.status().WithContext(what);
    table = *std::move(found);
    if (!spec.index.empty() && table->stored.FindIndex(spec.index) == nullptr) {
      return NotFound(what + ": table \"" + spec.table + "\" has no index \"" + spec.index + "\"");
    }
  }
  const uint64_t job = jobs_->Add(spec, 1);
  workers_.RunSteps(StepsOf(job, spec, std::move(table)),
                    [jobs = jobs_, job, what](const Status& status) {
                      jobs->End(job, status.WithContext(what));
                    });
  return job;
}

Workers::Step HBaseJobs::StepsOf(uint64_t job, const JobSpec& spec,
                                 std::optional<IndexedTable> table) {
  switch (spec.kind) {
    case JobSpec::Kind::kCheck:
    case JobSpec::Kind::kRebuildIndex:
    case JobSpec::Kind::kFitCells:  // refused by Start
      break;
    case JobSpec::Kind::kBalance:
      return [this, job]() -> Result<std::optional<Duration>> {
        TAMIS_ASSIGN_OR_RETURN(const uint64_t moved, client_->Balance());
        jobs_->Update(job, [&](JobInfo* info) { info->moved = moved; });
        return std::optional<Duration>();
      };
    case JobSpec::Kind::kCompact:
      return StepsOfCompaction(job);
  }
  return StepsOfTable(job, spec, *table);
}

Workers::Step HBaseJobs::StepsOfTable(uint64_t job, const JobSpec& spec,
                                      const IndexedTable& table) {
  TableJob::Options options;
  if (spec.kind == JobSpec::Kind::kRebuildIndex) {
    options.kind = pb::StartJobRequest::REBUILD;
    if (!spec.index.empty()) options.index_id = table.stored.FindIndex(spec.index)->id;
  }
  const auto soon = [this] {
    return Wait{.deadline = executor_->Now() + kAnswerTime, .cancelled = &closed_};
  };
  TableJob::Actions actions{
      .list =
          [this, soon, name = table.stored.name] {
            return AwaitResult<std::vector<RegionInfo>>(executor_, soon(), [&](auto done) {
              cluster_->ListRegions(name, {}, std::move(done));
            });
          },
      .start =
          [this, soon](const std::string& server, const pb::StartJobRequest& request) {
            return AwaitResult<pb::StartJobReply>(executor_, soon(), [&](auto done) {
              cluster_->Stub(server)->StartJob(request, std::move(done));
            });
          },
      .get =
          [this, soon](const std::string& server, const pb::GetJobRequest& request,
                       const std::vector<RegionId>& regions) {
            return AwaitResult<pb::GetJobReply>(executor_, soon(), [&](auto done) {
              cluster_->Stub(server)->GetJob(request, regions, std::move(done));
            });
          },
      .now = [this] { return executor_->Now(); }};
  const auto parts = std::make_shared<TableJob>(std::move(actions), table.schema().id, options);
  const bool is_check = spec.kind == JobSpec::Kind::kCheck;
  return [this, job, parts, is_check]() -> Result<std::optional<Duration>> {
    TAMIS_ASSIGN_OR_RETURN(const auto pause, parts->Step([&](uint64_t done, uint64_t total) {
      SetProgress(job, done, total);
    }));
    if (!pause && is_check) {
      jobs_->Update(job, [&](JobInfo* info) { info->check = parts->report(); });
    }
    return pause;
  };
}

Workers::Step HBaseJobs::StepsOfCompaction(uint64_t job) {
  CompactionJob::Actions actions{
      .list = [this] { return regions_->OfAllTables(); },
      .begin = [this](const hbase::Region& region) -> Status {
        TAMIS_RETURN_IF_ERROR(client_->FlushRegion(region));
        return client_->CompactRegion(region, true);
      },
      .is_compacting = [this](const auto& region) { return client_->IsCompacting(region); },
      .now = [this] { return executor_->Now(); }};
  const auto all = std::make_shared<CompactionJob>(std::move(actions), patience_);
  return [this, job, all] {
    return all->Step([&](uint64_t done, uint64_t total) { SetProgress(job, done, total); });
  };
}

void HBaseJobs::SetProgress(uint64_t job, uint64_t done, uint64_t total) {
  jobs_->Update(job, [&](JobInfo* info) {
    info->done = done;
    info->total = total;
  });
}

}  // namespace tamis
