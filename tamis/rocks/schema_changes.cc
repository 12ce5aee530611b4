#include "tamis/rocks/schema_changes.h"

#include <algorithm>
#include <vector>

#include "tamis/base/join.h"
#include "tamis/base/random.h"
#include "tamis/rocks/answered_once.h"
#include "tamis/table/schema_change.h"

namespace tamis {

SchemaChanges::SchemaChanges(Executor* executor, Duration timeout, uint64_t seed, Catalog* catalog,
                             FenceTable* fences, std::shared_ptr<ServerLives> lives,
                             std::shared_ptr<RegionAssignment> assignment)
    : executor_(executor),
      timeout_(timeout),
      seed_(seed),
      catalog_(catalog),
      fences_(fences),
      lives_(std::move(lives)),
      assignment_(std::move(assignment)) {}

Result<TableSchema> SchemaChanges::Create(TableSchema schema) {
  pb::RegionRecord region;
  TAMIS_RETURN_IF_ERROR(Commit(&schema, &region));
  assignment_->OpenNew(region, Duration(0));
  return schema;
}

// Gives ids to the table and to its first region.
Status SchemaChanges::Commit(TableSchema* schema, pb::RegionRecord* region) {
  std::lock_guard lock(mutex_);
  if (catalog_->Table(schema->name).ok()) {
    return AlreadyExists("cannot create table \"" + schema->name +
                         "\": there is a table of that name; choose another one, or drop it first");
  }
  TAMIS_ASSIGN_OR_RETURN(*schema, NewTable(std::move(*schema), catalog_->NewTableId()));
  for (IndexSpec& index : schema->indexes) {
    if (index.seed == 0) index.seed = NewSeed(schema->id, index.id);
    region->add_complete_indexes(index.id);  // there is nothing to index yet
  }
  region->set_id(catalog_->NewRegionId());
  region->set_epoch(catalog_->NewEpoch());
  region->set_table_id(schema->id);
  assignment_->SetOwner(assignment_->LeastLoaded(), region);
  return catalog_->Commit({.put_tables = {*schema}, .put_regions = {*region}});
}

uint64_t SchemaChanges::NewSeed(uint32_t table_id, uint32_t index_id) const {
  if (seed_ == 0) return SeedFromSystem();
  return Mix(seed_ + (uint64_t{table_id} << 32 | index_id));
}

Status SchemaChanges::Drop(const std::string& table) {
  return CommitDrop(table).WithContext("cannot drop table \"" + table + "\"");
}

// No write runs in the regions from here on, or nothing is changed.
Status SchemaChanges::CommitDrop(const std::string& name) {
  std::lock_guard lock(mutex_);
  TAMIS_ASSIGN_OR_RETURN(const TableSchema schema, catalog_->Table(name));
  std::vector<std::shared_ptr<Fence>> fences;
  std::vector<std::unique_lock<std::shared_mutex>> excluded;
  // In order of their ids, as a merge takes its two.
  std::vector<pb::RegionRecord> regions = catalog_->Regions(schema.id);
  std::ranges::sort(regions, {}, &pb::RegionRecord::id);
  for (const pb::RegionRecord& region : regions) {
    fences.push_back(fences_->Of(region.id()));
    excluded.push_back(fences.back()->Exclude());
  }
  TAMIS_RETURN_IF_ERROR(catalog_->Commit({.erase_tables = {schema.id}}));
  const uint64_t epoch = catalog_->NewEpoch();
  for (auto& fence : fences) fence->AdvanceExcluded(epoch);
  excluded.clear();
  for (auto& server : lives_->Running()) server->CloseTable(schema.id);
  return Status::Ok();
}

void SchemaChanges::Change(const std::string& table, Callback<TableSchema> done,
                           const std::function<Result<TableSchema>(TableSchema)>& change) {
  const auto schema = CommitChange(table, change);
  if (!schema.ok()) return done(schema.status());
  Broadcast(*schema, std::move(done));
}

Result<TableSchema> SchemaChanges::CommitChange(
    const std::string& table, const std::function<Result<TableSchema>(TableSchema)>& change) {
  std::lock_guard lock(mutex_);
  TAMIS_ASSIGN_OR_RETURN(TableSchema schema, catalog_->Table(table));
  TAMIS_ASSIGN_OR_RETURN(schema, change(std::move(schema)));
  TAMIS_RETURN_IF_ERROR(catalog_->Commit({.put_tables = {schema}}));
  return schema;
}

// Tells the servers. A paused one follows when it goes on, and is not waited for: until then it
// refuses writes of the new version. A dead one's regions are opened with the new schema.
void SchemaChanges::Broadcast(const TableSchema& schema, Callback<TableSchema> done) {
  auto once = OnceWithin(executor_, timeout_, "change table \"" + schema.name + "\"",
                         [schema, done = std::move(done)](const Status& status) {
                           if (status.ok()) {
                             done(schema);
                           } else {
                             done(status);
                           }
                         });
  auto join = std::make_shared<Join<bool>>(true, [once](bool) { once(Status::Ok()); });
  for (auto& server : lives_->Running()) {
    if (server->paused()) {
      server->UpdateSchema(schema.id, [] {});
    } else {
      join->Begin();
      server->UpdateSchema(schema.id, [join] { join->End(); });
    }
  }
  join->End();
}

void SchemaChanges::AddColumn(const std::string& table, Column column, Callback<TableSchema> done) {
  Change(table, std::move(done),
         [&](TableSchema old) { return WithColumn(std::move(old), std::move(column)); });
}

void SchemaChanges::DropColumn(const std::string& table, const std::string& column,
                               Callback<TableSchema> done) {
  Change(table, std::move(done),
         [&](TableSchema old) { return WithoutColumn(std::move(old), column); });
}

void SchemaChanges::CreateIndex(const std::string& table, IndexSpec index,
                                Callback<TableSchema> done) {
  Change(table, std::move(done), [&](TableSchema old) {
    if (index.seed == 0) index.seed = NewSeed(old.id, old.next_index_id);
    return WithIndex(std::move(old), std::move(index));
  });
}

void SchemaChanges::DropIndex(const std::string& table, const std::string& index,
                              Callback<TableSchema> done) {
  Change(table, std::move(done),
         [&](TableSchema old) { return WithoutIndex(std::move(old), index); });
}

void SchemaChanges::SetCellMap(const std::string& table, const std::string& index,
                               std::shared_ptr<const CellMap> map, Callback<TableSchema> done) {
  Change(table, std::move(done),
         [&](TableSchema old) { return WithCellMap(std::move(old), index, map); });
}

}  // namespace tamis
