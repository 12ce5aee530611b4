#include "tamis/hbase_cluster/hbase_attachments.h"

#include "tamis/base/random.h"
#include "tamis/hbase_cluster/attachment.h"
#include "tamis/hbase_cluster/indexed_table.h"
#include "tamis/table/definition.h"
#include "tamis/table/schema_change.h"

namespace tamis {
namespace {

// The number of rows of a newly attached table that are compared with the schema.
constexpr uint64_t kRowsLookedAt = 100;

Status TakenBy(const IndexedTable& table) {
  return AlreadyExists("\"" + table.stored.name + "\" is HBase table \"" + table.full_name() +
                       "\" already; choose another name");
}

}  // namespace

Result<TableSchema> HBaseAttachments::Attach(const TableSchema& schema,
                                             const std::string& foreign_name) {
  auto attached = AttachNow(schema, foreign_name);
  if (attached.ok()) return attached;
  return attached.status().WithContext("cannot attach HBase table \"" + foreign_name + "\" as \"" +
                                       schema.name + "\"");
}

// Attaching is one change of the table's description, which the master completes even if the client
// is gone. So after an interruption the same call can be repeated; it waits for the change in
// progress.
Result<TableSchema> HBaseAttachments::AttachNow(const TableSchema& schema,
                                                const std::string& foreign_name) {
  TAMIS_ASSIGN_OR_RETURN(const std::string hbase_name, OwnName(foreign_name));
  TAMIS_ASSIGN_OR_RETURN(hbase::TableDescription description, DescribeForeign(hbase_name));
  TAMIS_ASSIGN_OR_RETURN(const auto before, ReadIndexedTable(description));
  const bool is_defined = !schema.columns.empty();
  if (!is_defined && !before) {
    return InvalidArgument(
        "it has no definition of its own: describe its rows with --key and --column");
  }
  if (is_defined && !schema.cells) {
    return InvalidArgument(
        "no cell of it is named: give --column NAME=FAMILY:QUALIFIER:TYPE, or "
        "--marker FAMILY:QUALIFIER for a cell that all of its rows have");
  }
  if (before) return AttachAgain(*before, schema);
  TAMIS_RETURN_IF_ERROR(reports_->CheckJar(/*strict=*/true, schema));
  const auto taken = cluster_->tables().Find(schema.name);
  if (taken.ok()) return TakenBy(*taken);
  if (taken.status().code() != StatusCode::kNotFound) return taken.status();
  std::vector<std::string> obstacles = ObstaclesToAttaching(description, schema);
  TAMIS_ASSIGN_OR_RETURN(const hbase::TableState state, client_->StateOfTable(hbase_name));
  if (state != hbase::TableState::kEnabled) {
    obstacles.push_back("it is disabled; in HBase's shell: enable '" + hbase_name + "'");
  }
  if (!obstacles.empty()) return FailedPrecondition(JoinSentences(obstacles));
  TAMIS_RETURN_IF_ERROR(LookAtRows(hbase_name, schema));

  TAMIS_ASSIGN_OR_RETURN(TableSchema stored, FirstVersion(schema));
  stored = WithIndexesFrom(std::move(stored), 1 + static_cast<uint32_t>(SeedFromSystem() >> 34));
  description = WithOrigin(DescribeIndexed(std::move(description), stored), TableOrigin::kAttached);
  IndexedTable table{.description = std::move(description), .stored = std::move(stored)};
  TAMIS_RETURN_IF_ERROR(client_->ModifyTable(table.description));
  cluster_->Invalidate(schema.name);
  // Another table may have got the same name meanwhile.
  TAMIS_RETURN_IF_ERROR(cluster_->tables().CheckName(schema.name));
  return table.schema();
}

Result<TableSchema> HBaseAttachments::AttachAgain(const IndexedTable& before,
                                                  const TableSchema& wanted) {
  TAMIS_ASSIGN_OR_RETURN(const TableNames names, cluster_->tables().Names());
  const bool is_named = names.StandingOf(before.full_name()) == TableNames::Standing::kNamed;
  if (is_named && before.stored.name != wanted.name) {
    return AlreadyExists("it is attached already, as \"" + before.stored.name +
                         "\"; tamis table detach " + before.stored.name + " ends that");
  }
  const auto taken = names.Find(wanted.name);
  if (taken.ok() && taken->full_name() != before.full_name()) return TakenBy(*taken);
  IndexedTable after = before;
  if (after.stored.name != wanted.name) {
    after.stored.name = wanted.name;
    ++after.stored.version;
  }
  if (!wanted.columns.empty()) TAMIS_RETURN_IF_ERROR(CheckSameDefinition(after.stored, wanted));
  TAMIS_RETURN_IF_ERROR(reports_->CheckJar(/*strict=*/true, after.stored));
  after.description = DescribeIndexed(std::move(after.description), after.stored);
  if (!is_named) {
    after.description = WithOrigin(std::move(after.description), TableOrigin::kAttached);
  }
  TAMIS_RETURN_IF_ERROR(client_->ModifyTable(after.description));
  cluster_->Invalidate(wanted.name);
  // The master may have assigned a later version, and another table may have got the name.
  TAMIS_ASSIGN_OR_RETURN(const IndexedTable now, cluster_->tables().Find(wanted.name));
  return now.schema();
}

Status HBaseAttachments::Detach(const std::string& table) {
  return DetachNow(table).WithContext("cannot detach table \"" + table + "\"");
}

Status HBaseAttachments::DetachNow(const std::string& name) {
  TAMIS_ASSIGN_OR_RETURN(const IndexedTable table, cluster_->tables().Find(name));
  TAMIS_RETURN_IF_ERROR(client_->ModifyTable(DescribePlain(table.description)));
  cluster_->Invalidate(name);
  return Status::Ok();
}

Status HBaseAttachments::DetachForeign(const std::string& foreign_name) {
  return DetachForeignNow(foreign_name)
      .WithContext("cannot detach HBase table \"" + foreign_name + "\"");
}

// Also detaches a table whose schema cannot be read, or whose schema attribute was removed while
// other attributes were left.
Status HBaseAttachments::DetachForeignNow(const std::string& foreign_name) {
  TAMIS_ASSIGN_OR_RETURN(const std::string hbase_name, OwnName(foreign_name));
  TAMIS_ASSIGN_OR_RETURN(const hbase::TableDescription description, DescribeForeign(hbase_name));
  if (!HasTraces(description)) return FailedPrecondition("it is not attached");
  TAMIS_RETURN_IF_ERROR(client_->ModifyTable(DescribePlain(description)));
  const auto table = ReadIndexedTable(description);
  if (table.ok() && table->has_value()) cluster_->Invalidate((*table)->stored.name);
  return Status::Ok();
}

Result<std::vector<std::string>> HBaseAttachments::ListUnnamed() {
  TAMIS_ASSIGN_OR_RETURN(const TableNames names, cluster_->tables().Names());
  std::vector<std::string> texts;
  for (const TableNames::Unnamed& one : names.ListUnnamed()) {
    texts.push_back("HBase table \"" + one.table.full_name() + "\": " + one.text);
  }
  return texts;
}

// Returns the name in the store's namespace; the default namespace is left out.
Result<std::string> HBaseAttachments::OwnName(const std::string& foreign_name) const {
  const size_t colon = foreign_name.find(':');
  if (colon == std::string::npos)
    return HBaseTableName(cluster_->tables().name_space(), foreign_name);
  const std::string name_space = foreign_name.substr(0, colon);
  if (name_space == cluster_->tables().name_space()) {
    return HBaseTableName(name_space, foreign_name.substr(colon + 1));
  }
  return InvalidArgument("the store is namespace \"" + cluster_->tables().name_space() +
                         "\"; name the other one in --store, hbase://HOST:PORT,.../" + name_space +
                         ", with the options of this one behind it, if it has any (?tls=true...)");
}

Result<hbase::TableDescription> HBaseAttachments::DescribeForeign(const std::string& hbase_name) {
  auto described = client_->Table(hbase_name);
  if (described.status().code() != StatusCode::kNotFound) return described;
  const std::string full_name = FullTableName(hbase_name);
  std::string elsewhere;
  // HBase does not show the tables of all namespaces to every user.
  if (const auto all = client_->Tables(); all.ok()) {
    const std::string qualifier = full_name.substr(full_name.find(':'));
    for (const hbase::TableDescription& other : *all) {
      const std::string its = FullTableName(other.name);
      if (!its.ends_with(qualifier)) continue;
      elsewhere += "; there is \"" + its + "\", which is attached in the store " +
                   "hbase://HOST:PORT,.../" + its.substr(0, its.find(':'));
    }
  }
  return NotFound("HBase has no table \"" + full_name + "\"" +
                  (elsewhere.empty() ? "; its shell lists those that there are" : elsewhere));
}

Status HBaseAttachments::LookAtRows(const std::string& hbase_name, const TableSchema& schema) {
  RowSample sample(schema);
  const auto stream = client_->Scan(hbase_name, {.limit = kRowsLookedAt});
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(const auto rows, stream->Next());
    if (rows.empty()) break;
    for (const hbase::Row& row : rows) sample.Add(row);
  }
  const std::vector<std::string> faults = sample.Faults();
  return faults.empty() ? Status::Ok() : InvalidArgument(JoinSentences(faults));
}

}  // namespace tamis
