#include "tamis/hbase_cluster/hbase_tables.h"

#include <strings.h>

#include <set>

namespace tamis {

Result<TableNames> HBaseTables::Names() {
  auto listed = client_->Tables(name_space_);
  // HBaseClusterAdmin creates the namespace with its first table, so it may not exist yet.
  if (listed.status().code() == StatusCode::kNotFound) return TableNames({});
  TAMIS_ASSIGN_OR_RETURN(auto descriptions, std::move(listed));
  std::vector<IndexedTable> tables;
  for (hbase::TableDescription& description : descriptions) {
    // Skip a table that cannot be read, so that it does not hide the others. A look-up by its own
    // name returns the error.
    auto table = ReadIndexedTable(std::move(description));
    if (table.ok() && table->has_value()) tables.push_back(**std::move(table));
  }
  return TableNames(std::move(tables));
}

Status HBaseTables::CheckName(const std::string& name) {
  TAMIS_ASSIGN_OR_RETURN(const TableNames names, Names());
  return names.Find(name).status();
}

Result<std::vector<IndexedTable>> HBaseTables::Named() {
  TAMIS_ASSIGN_OR_RETURN(const TableNames names, Names());
  return names.Named();
}

Result<std::optional<IndexedTable>> HBaseTables::FindAgain(const std::string& name) {
  const auto known = Recall(name);
  if (!known) return std::optional<IndexedTable>();
  auto description = client_->Table(known->hbase_name);
  if (description.status().code() == StatusCode::kNotFound) return std::optional<IndexedTable>();
  TAMIS_ASSIGN_OR_RETURN(auto read, std::move(description));
  TAMIS_ASSIGN_OR_RETURN(auto table, ReadIndexedTable(std::move(read)));
  if (!table || table->stored.name != name || !TableNames::HasItsName(*table)) table.reset();
  return table;
}

Result<IndexedTable> HBaseTables::Find(const std::string& name) {
  const auto look = [&]() -> Result<IndexedTable> {
    TAMIS_ASSIGN_OR_RETURN(auto again, FindAgain(name));
    if (again) return *std::move(again);
    TAMIS_ASSIGN_OR_RETURN(const TableNames names, Names());
    auto named = names.Find(name);
    if (named.status().code() != StatusCode::kNotFound) return named;
    // The name in an unreadable schema is unknown, but the table may have the same name in HBase.
    auto same = client_->Table(HBaseTableName(name_space_, name));
    if (same.ok()) TAMIS_RETURN_IF_ERROR(ReadIndexedTable(*same).status());
    // The list leaves out tables that this user may not see; a look-up by name reports the missing
    // right.
    if (!same.ok() && same.status().code() != StatusCode::kNotFound) return same.status();
    if (!same.ok()) TAMIS_RETURN_IF_ERROR(WhyHidden(name));
    return named;
  };
  auto found = look();
  if (found.ok() || found.status().code() == StatusCode::kNotFound) return found;
  return found.status().WithContext("cannot look up table \"" + name + "\"");
}

// Any user may read hbase:meta, which has a row with a state for each table.
Result<std::vector<std::string>> HBaseTables::Hidden() {
  const auto described = client_->Tables(name_space_);
  if (described.status().code() == StatusCode::kNotFound) return std::vector<std::string>();
  TAMIS_RETURN_IF_ERROR(described.status());
  std::set<std::string> shown;
  for (const hbase::TableDescription& table : *described) shown.insert(FullTableName(table.name));
  const std::string prefix = FullTableName(HBaseTableName(name_space_, ""));
  std::vector<std::string> hidden;
  const auto states = client_->Scan("hbase:meta", {.columns = {{.family = "table"}}});
  while (true) {
    const auto rows = states->Next();
    // Another keeper of rights may not let everybody read it.
    if (!rows.ok()) return IsTransient(rows.status().code()) ? rows.status() : Result(hidden);
    if (rows->empty()) return hidden;
    for (const hbase::Row& row : *rows) {
      const std::string name = FullTableName(row.key());
      if (name.starts_with(prefix) && !shown.contains(name)) {
        hidden.push_back(name.substr(prefix.size()));
      }
    }
  }
}

Status HBaseTables::WhyHidden(const std::string& name) {
  const auto hidden = Hidden();
  if (!hidden.ok()) return {};
  std::string list;
  for (const std::string& one : *hidden) {
    // Names of stores are in lower case, and names in HBase need not be.
    if (strcasecmp(one.c_str(), name.c_str()) == 0) {
      return client_->Table(HBaseTableName(name_space_, one)).status();
    }
    list += (list.empty() ? "\"" : ", \"") + one + "\"";
  }
  if (list.empty()) return {};
  return NotFound("no table \"" + name + "\" that this user may see: HBase hides " + list +
                  " of namespace \"" + name_space_ +
                  "\"; if it is one of them, the right C or A on it is missing");
}

HBaseTables::Known HBaseTables::KnownOf(const IndexedTable& table) const {
  return {table.description.name, TableIdInMessages(table.description.name, table.stored.id),
          executor_->Now()};
}

std::optional<HBaseTables::Known> HBaseTables::Recall(const std::string& name) const {
  std::lock_guard lock(mutex_);
  const auto known = known_.find(name);
  return known == known_.end() ? std::nullopt : std::optional(known->second);
}

void HBaseTables::Remember(const std::string& name, const Result<IndexedTable>& table) {
  std::lock_guard lock(mutex_);
  if (table.ok()) {
    known_[name] = KnownOf(*table);
  } else if (table.status().code() == StatusCode::kNotFound) {
    known_.erase(name);
  }
}

void HBaseTables::Forget(const std::string& name) {
  std::lock_guard lock(mutex_);
  known_.erase(name);
}

}  // namespace tamis
