#include "tamis/hbase_cluster/hbase_schema_changes.h"

#include "tamis/hbase_cluster/indexed_table.h"
#include "tamis/table/schema_change.h"

namespace tamis {
namespace {

// The tries of a schema change that conflicts with concurrent changes.
constexpr int kTriesOfChange = 5;

}  // namespace

Result<TableSchema> HBaseSchemaChanges::Create(TableSchema schema) {
  const std::string what = "cannot create table \"" + schema.name + "\"";
  const auto existing = cluster_->tables().Find(schema.name);
  if (existing.ok()) return AlreadyExists(what + ": there is one");
  if (existing.status().code() != StatusCode::kNotFound) return existing.status().WithContext(what);
  TAMIS_ASSIGN_OR_RETURN(TableSchema stored, FirstVersion(InCells(std::move(schema))));
  // A user who may create tables need not have the right to query the servers.
  TAMIS_RETURN_IF_ERROR(reports_->CheckJar(/*strict=*/false, stored).WithContext(what));
  std::string hbase_name = HBaseTableName(cluster_->tables().name_space(), stored.name);
  IndexedTable table{.description = {.name = std::move(hbase_name)}, .stored = std::move(stored)};
  table.description = WithOrigin(DescribeIndexed(std::move(table.description), table.stored),
                                 TableOrigin::kCreated);
  Status created = client_->CreateTable(table.description);
  if (created.code() == StatusCode::kNotFound) {  // the namespace
    created = client_->CreateNamespace(cluster_->tables().name_space());
    if (created.ok() || created.code() == StatusCode::kAlreadyExists) {
      created = client_->CreateTable(table.description);
    }
  }
  if (created.code() == StatusCode::kAlreadyExists) {
    return AlreadyExists(what + ": HBase has a table \"" + table.description.name +
                         "\", which is not the store's table of that name; attach it: tamis table "
                         "attach");
  }
  TAMIS_RETURN_IF_ERROR(created.WithContext(what));
  cluster_->Invalidate(table.stored.name);
  // Another table may have got the same name meanwhile.
  TAMIS_RETURN_IF_ERROR(cluster_->tables().CheckName(table.stored.name));
  return table.schema();
}

Status HBaseSchemaChanges::Drop(const std::string& table, DropOptions options) {
  return DropNow(table, options).WithContext("cannot drop table \"" + table + "\"");
}

Status HBaseSchemaChanges::DropNow(const std::string& name, DropOptions options) {
  TAMIS_ASSIGN_OR_RETURN(const IndexedTable table, cluster_->tables().Find(name));
  if (table.origin() != TableOrigin::kCreated && !options.delete_attached) {
    return FailedPrecondition(
        "it is HBase table \"" + table.full_name() +
        "\", which was attached, and its rows are others'; tamis table detach " + name +
        " leaves them as they are, tamis table drop " + name +
        " --delete-hbase-table deletes the HBase table with all of its rows");
  }
  Status disabled = client_->DisableTable(table.description.name);
  // The table may be disabled already, by a call that was interrupted before the deletion.
  if (!disabled.ok() && disabled.code() != StatusCode::kFailedPrecondition) return disabled;
  TAMIS_RETURN_IF_ERROR(client_->DeleteTable(table.description.name));
  cluster_->Invalidate(name);
  return Status::Ok();
}

// The master refuses a schema that does not follow the current one; this means that a concurrent
// change came first.
Result<TableSchema> HBaseSchemaChanges::Change(
    const std::string& name, const std::function<Result<TableSchema>(TableSchema)>& change) {
  for (int i = 0;; ++i) {
    TAMIS_ASSIGN_OR_RETURN(IndexedTable table, cluster_->tables().Find(name));
    TAMIS_ASSIGN_OR_RETURN(table.stored, change(table.stored));
    const hbase::TableDescription changed = DescribeIndexed(table.description, table.stored);
    const Status modified = client_->ModifyTable(changed);
    if (modified.ok()) {
      cluster_->Invalidate(name);
      return table.schema();
    }
    const auto now = cluster_->tables().Find(name);
    const bool overtaken = modified.code() == StatusCode::kInvalidArgument && now.ok() &&
                           now->stored.version >= table.stored.version;
    if (!overtaken || i == kTriesOfChange) {
      return modified.WithContext("cannot change the schema of table \"" + name + "\"");
    }
  }
}

Result<TableSchema> HBaseSchemaChanges::AddColumn(const std::string& table, const Column& column) {
  return Change(table, [&](TableSchema old) {
    Column placed = InCell(old, column);
    return WithColumn(std::move(old), std::move(placed));
  });
}

Result<TableSchema> HBaseSchemaChanges::DropColumn(const std::string& table,
                                                   const std::string& column) {
  return Change(table, [&](TableSchema old) { return WithoutColumn(std::move(old), column); });
}

Result<TableSchema> HBaseSchemaChanges::CreateIndex(const std::string& table, IndexSpec index) {
  if (index.seed == 0) index.seed = NewIndexSeed();
  // A server that does not support what it requires could not open the table's regions again.
  if (!index.include.empty() || index.IsPartial() || index.cell_map != nullptr) {
    TAMIS_ASSIGN_OR_RETURN(const IndexedTable before, cluster_->tables().Find(table));
    TAMIS_ASSIGN_OR_RETURN(const TableSchema wanted, WithIndex(before.stored, index));
    TAMIS_RETURN_IF_ERROR(reports_->CheckJar(/*strict=*/false, wanted)
                              .WithContext("cannot create index \"" + index.name + "\""));
  }
  return Change(table, [&](TableSchema old) { return WithIndex(std::move(old), index); });
}

Result<TableSchema> HBaseSchemaChanges::DropIndex(const std::string& table,
                                                  const std::string& index) {
  return Change(table, [&](TableSchema old) { return WithoutIndex(std::move(old), index); });
}

Status HBaseSchemaChanges::CheckCells(const std::string& table, const std::string& index) {
  TAMIS_ASSIGN_OR_RETURN(const IndexedTable before, cluster_->tables().Find(table));
  TAMIS_ASSIGN_OR_RETURN(const TableSchema wanted,
                         WithCellMap(before.stored, index, std::make_shared<const CellMap>()));
  return reports_->CheckJar(/*strict=*/false, wanted);
}

Result<TableSchema> HBaseSchemaChanges::SetCellMap(const std::string& table,
                                                   const std::string& index,
                                                   std::shared_ptr<const CellMap> map) {
  return Change(table, [&](TableSchema old) { return WithCellMap(std::move(old), index, map); });
}

}  // namespace tamis
