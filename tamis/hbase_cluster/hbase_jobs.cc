#include "tamis/hbase_cluster/hbase_jobs.h"

#include "tamis/base/answers.h"
#include "tamis/hbase_cluster/compaction_job.h"

namespace tamis {
namespace {

constexpr int kThreads = 4;
constexpr Duration kAnswerTime = std::chrono::seconds(10);
// Values by which cells are fitted. They are in the memory of the servers and here, and travel more
// than once.
constexpr uint64_t kSampleSize = 1 << 16;

}  // namespace

HBaseJobs::HBaseJobs(Executor* executor, Duration patience, HBaseCluster* cluster,
                     hbase::Client* client, RegionDirectory* regions,
                     HBaseSchemaChanges* schema_changes, const std::atomic<bool>* closed)
    : executor_(executor),
      patience_(patience),
      cluster_(cluster),
      client_(client),
      regions_(regions),
      schema_changes_(schema_changes),
      closed_(*closed),
      jobs_(std::make_shared<JobTable>()),
      workers_(executor, kThreads) {}

Result<uint64_t> HBaseJobs::Start(const JobSpec& spec) {
  const std::string what = "cannot " + spec.ToString();
  std::optional<IndexedTable> table;
  if (spec.kind != JobSpec::Kind::kBalance && spec.kind != JobSpec::Kind::kCompact) {
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
      break;
    case JobSpec::Kind::kFitCells:
      return StepsOfCells(job, spec, *table);
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
  const auto parts = NewTableJob(table, options);
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

// Values of all regions are sampled; then the schema is changed, for which every region is opened
// again.
Workers::Step HBaseJobs::StepsOfCells(uint64_t job, const JobSpec& spec,
                                      const IndexedTable& table) {
  const auto set = [this, spec](std::shared_ptr<const CellMap> map) {
    return schema_changes_->SetCellMap(spec.table, spec.index, std::move(map)).status();
  };
  if (spec.cells_per_value == 0) {
    return [set]() -> Result<std::optional<Duration>> {
      TAMIS_RETURN_IF_ERROR(set(nullptr));
      return std::optional<Duration>();
    };
  }
  // Before all entries are read.
  const auto check = [this, spec] { return schema_changes_->CheckCells(spec.table, spec.index); };
  const auto parts = NewTableJob(table, {.kind = pb::StartJobRequest::SAMPLE,
                                         .index_id = table.stored.FindIndex(spec.index)->id,
                                         .sample_size = kSampleSize});
  return [this, job, set, check, parts, cells = spec.cells_per_value,
          checked = false]() mutable -> Result<std::optional<Duration>> {
    if (!std::exchange(checked, true)) TAMIS_RETURN_IF_ERROR(check());
    TAMIS_ASSIGN_OR_RETURN(const auto pause, parts->Step([&](uint64_t done, uint64_t total) {
      SetProgress(job, done, total);
    }));
    if (pause) return pause;
    const std::vector<ValueSample> samples = parts->samples();
    TAMIS_RETURN_IF_ERROR(
        set(std::make_shared<const CellMap>(FitCellMap(samples, samples.size(), cells))));
    return std::optional<Duration>();
  };
}

std::shared_ptr<TableJob> HBaseJobs::NewTableJob(const IndexedTable& table,
                                                 TableJob::Options options) {
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
  return std::make_shared<TableJob>(std::move(actions), table.schema().id, options);
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
