#include "tamis/rocks/rocks_jobs.h"

#include <map>
#include <set>
#include <vector>

#include "tamis/base/join.h"
#include "tamis/rocks/answered_once.h"
#include "tamis/rocks/fit_cell_map.h"

namespace tamis {

RocksJobs::RocksJobs(Executor* executor, Store* store, Catalog* catalog,
                     std::shared_ptr<ServerLives> lives, std::shared_ptr<RegionChanges> changes,
                     SchemaChanges* schemas)
    : executor_(executor),
      store_(store),
      catalog_(catalog),
      lives_(std::move(lives)),
      changes_(std::move(changes)),
      schemas_(schemas) {}

void RocksJobs::Start(JobSpec spec, Callback<uint64_t> done) {
  const auto parts = CountParts(spec);
  if (!parts.ok()) return done(parts.status().WithContext("cannot " + spec.ToString()));
  const uint64_t job = jobs_.Add(spec, *parts);
  executor_->Post([weak = weak_from_this(), job, spec = std::move(spec)] {
    if (auto self = weak.lock()) self->Run(job, spec);
  });
  done(job);
}

Result<uint64_t> RocksJobs::CountParts(const JobSpec& spec) const {
  if (spec.kind == JobSpec::Kind::kBalance || spec.kind == JobSpec::Kind::kCompact) return 1;
  TAMIS_ASSIGN_OR_RETURN(const TableSchema schema, catalog_->Table(spec.table));
  if (spec.kind == JobSpec::Kind::kCheck) return lives_->Running().size();
  if (!spec.index.empty() && schema.FindIndex(spec.index) == nullptr) {
    return NotFound("table \"" + spec.table + "\" has no index \"" + spec.index + "\"");
  }
  if (spec.kind == JobSpec::Kind::kFitCells) return 1;
  std::set<std::string> servers;
  for (const pb::RegionRecord& region : catalog_->Regions(schema.id)) {
    servers.insert(region.server());
  }
  return servers.size() * (spec.index.empty() ? schema.indexes.size() : 1);
}

void RocksJobs::Run(uint64_t job, const JobSpec& spec) {
  const auto end = [weak = weak_from_this(), job](const Status& status) {
    if (auto self = weak.lock()) self->jobs_.End(job, status);
  };
  const auto update = [weak = weak_from_this(), job](const std::function<void(JobInfo*)>& change) {
    if (auto self = weak.lock()) self->jobs_.Update(job, change);
  };
  const auto part = [update] { update([](JobInfo* info) { ++info->done; }); };
  switch (spec.kind) {
    case JobSpec::Kind::kCheck:
      return Check(
          spec.table,
          [end, update](const Result<CheckReport>& report) {
            if (report.ok()) update([&](JobInfo* info) { info->check = *report; });
            end(report.status());
          },
          part);
    case JobSpec::Kind::kRebuildIndex:
      return RebuildIndex(spec.table, spec.index, end, part);
    case JobSpec::Kind::kFitCells:
      return FitCells(spec, end);
    case JobSpec::Kind::kBalance:
      return changes_->Balance([end, update](const Result<uint64_t>& moved) {
        if (moved.ok()) update([&](JobInfo* info) { info->moved = *moved; });
        end(moved.status());
      });
    case JobSpec::Kind::kCompact:
      return end(store_->Compact());
  }
}

void RocksJobs::Check(const std::string& table, Callback<CheckReport> done,
                      const std::function<void()>& part) {
  auto schema = catalog_->Table(table);
  if (!schema.ok()) return done(schema.status());
  if (Status status = CheckTiling(catalog_->Regions(schema->id)); !status.ok()) {
    return done(status.WithContext("table \"" + table + "\""));
  }
  const size_t expected = catalog_->Regions(schema->id).size();
  auto join = std::make_shared<Join<Result<CheckReport>>>(
      CheckReport(), [done, expected](Result<CheckReport> report) {
        if (report.ok() && report->regions < expected) {
          return done(Unavailable("only " + std::to_string(report->regions) + " of " +
                                  std::to_string(expected) +
                                  " regions are open; wait until all are, then check again"));
        }
        done(std::move(report));
      });
  for (auto& server : lives_->Running()) {
    if (server->paused()) continue;
    join->Begin();
    Callback<CheckReport> checked = [join, part](const Result<CheckReport>& report) {
      part();
      join->End([&](Result<CheckReport>* all) { AddTo(report, all); });
    };
    server->Check(schema->id,
                  UnlessKilled(executor_, lives_->look_interval(), server, std::move(checked)));
  }
  join->End();
}

void RocksJobs::FitCells(const JobSpec& spec, DoneCallback done) {
  const auto schema = catalog_->Table(spec.table);
  if (!schema.ok()) return done(schema.status());
  const IndexSpec* index = schema->FindIndex(spec.index);
  if (index == nullptr) {
    return done(NotFound("cannot " + spec.ToString() + ": the table has no such index"));
  }
  std::shared_ptr<const CellMap> map;
  if (spec.cells_per_value > 0) {
    auto fitted =
        FitCellMap(*store_, *schema, *index, catalog_->Regions(schema->id), spec.cells_per_value);
    if (!fitted.ok()) return done(fitted.status());
    map = std::make_shared<const CellMap>(*std::move(fitted));
  }
  schemas_->SetCellMap(spec.table, spec.index, std::move(map),
                       [done](const Result<TableSchema>& changed) { done(changed.status()); });
}

void RocksJobs::RebuildIndex(const std::string& table, const std::string& index, DoneCallback done,
                             const std::function<void()>& part) {
  auto schema = catalog_->Table(table);
  if (!schema.ok()) return done(schema.status());
  if (!index.empty() && schema->FindIndex(index) == nullptr) {
    return done(
        NotFound("cannot rebuild index \"" + index + "\": table \"" + table + "\" has none"));
  }
  std::vector<uint32_t> ids;
  for (const IndexSpec& spec : schema->indexes) {
    if (index.empty() || spec.name == index) ids.push_back(spec.id);
  }
  struct Part {
    std::shared_ptr<RocksRegionServer> server;
    std::vector<uint64_t> regions;
  };
  std::map<std::string, Part> parts;
  for (const pb::RegionRecord& region : catalog_->Regions(schema->id)) {
    auto server = lives_->FindRunning(region.server());
    if (!server || server->paused() || !server->FindRegion(region.id())) {
      return done(Unavailable("cannot rebuild indexes of table \"" + table + "\": region " +
                              std::to_string(region.id()) +
                              " is not open now; wait until it is, then do it again"));
    }
    Part& of_server = parts[server->name()];
    of_server.server = std::move(server);
    of_server.regions.push_back(region.id());
  }
  auto join = std::make_shared<Join<Status>>(Status::Ok(), [table, done](const Status& status) {
    done(status.WithContext("cannot rebuild indexes of table \"" + table + "\""));
  });
  for (const uint32_t id : ids) {
    for (auto& [name, of_server] : parts) {
      join->Begin();
      DoneCallback rebuilt = [join, part](const Status& status) {
        part();
        EndWith(join.get(), status);
      };
      const auto& server = of_server.server;
      server->RebuildIndex(
          of_server.regions, id,
          UnlessKilled(executor_, lives_->look_interval(), server, std::move(rebuilt)));
    }
  }
  join->End();
}

}  // namespace tamis
