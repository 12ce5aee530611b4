#include "tamis/hbase_cluster/hbase_tables.h"

#include <strings.h>

#include <set>

#include "tamis/hbase/exception.h"
#include "tamis/hbase_cluster/payload.pb.h"
#include "tamis/hbase_cluster/table_attributes.pb.h"

namespace tamis {
namespace {

// HBase has no such table, or none can have such a name.
bool IsNoTable(const Status& status) {
  return status.code() == StatusCode::kNotFound || status.code() == StatusCode::kInvalidArgument;
}

// Tables whose schema cannot be read are left out, so that they do not hide the others. A look-up
// by their own name returns the error.
std::vector<IndexedTable> ReadableTables(std::vector<hbase::TableDescription> descriptions) {
  std::vector<IndexedTable> tables;
  for (hbase::TableDescription& description : descriptions) {
    auto table = ReadIndexedTable(std::move(description));
    if (table.ok() && table->has_value()) tables.push_back(**std::move(table));
  }
  return tables;
}

Result<hbase::TableDescription> ReadReply(const std::string& hbase_table,
                                          const std::string& answer) {
  pb::Payload payload;
  pb::TableAttributesReply reply;
  if (!payload.ParseFromString(answer) || !reply.ParseFromString(payload.bytes())) {
    return DataLoss("a region of HBase table \"" + hbase_table +
                    "\" sent an answer that cannot be read");
  }
  hbase::TableDescription description{.name = hbase_table};
  for (const auto& [name, value] : reply.attributes()) description.attributes[name] = value;
  return description;
}

}  // namespace

Result<std::vector<hbase::TableDescription>> HBaseTables::List() {
  auto listed = client_->Tables(name_space_);
  // HBaseClusterAdmin creates the namespace with its first table, so it may not exist yet.
  if (listed.status().code() == StatusCode::kNotFound) {
    return std::vector<hbase::TableDescription>();
  }
  return listed;
}

Result<hbase::TableDescription> HBaseTables::Described(const std::string& hbase_table) {
  return client_->Table(hbase_table);
}

Result<hbase::TableDescription> HBaseTables::DescribedToReaders(const std::string& hbase_table) {
  auto described = client_->Table(hbase_table);
  if (described.ok() || !hbase::IsAccessDenied(described.status())) return described;
  const auto answer = client_->Exec(hbase_table, "",
                                    {.service = "tamis.pb.IndexedTable",
                                     .method = "Describe",
                                     .request = pb::Payload().SerializeAsString(),
                                     .repeat = true});
  if (answer.ok()) return ReadReply(hbase_table, *answer);
  // A table that is not ours, or an older jar, has no such service; then the master's answer
  // counts.
  const bool is_reason =
      hbase::IsAccessDenied(answer.status()) || IsTransient(answer.status().code());
  return is_reason ? answer.status() : described.status();
}

Result<TableNames> HBaseTables::Names() {
  TAMIS_ASSIGN_OR_RETURN(auto descriptions, List());
  return TableNames(ReadableTables(std::move(descriptions)));
}

Result<TableNames> HBaseTables::ReadableNames(std::vector<std::string>* hidden) {
  TAMIS_ASSIGN_OR_RETURN(auto descriptions, List());
  TAMIS_ASSIGN_OR_RETURN(const auto names, HiddenNames(descriptions));
  for (const std::string& name : names) {
    auto described = DescribedToReaders(HBaseTableName(name_space_, name));
    if (described.ok()) {
      descriptions.push_back(*std::move(described));
    } else if (hidden != nullptr) {
      hidden->push_back(name);
    }
  }
  return TableNames(ReadableTables(std::move(descriptions)));
}

Status HBaseTables::CheckName(const std::string& name) {
  TAMIS_ASSIGN_OR_RETURN(const TableNames names, Names());
  return names.Find(name).status();
}

Result<std::vector<IndexedTable>> HBaseTables::Readable() {
  TAMIS_ASSIGN_OR_RETURN(const TableNames names, ReadableNames(nullptr));
  return names.Named();
}

Result<std::optional<IndexedTable>> HBaseTables::FindAgain(const std::string& name,
                                                           Describe describe) {
  const auto known = Recall(name);
  if (!known) return std::optional<IndexedTable>();
  auto description = (this->*describe)(known->hbase_name);
  if (description.status().code() == StatusCode::kNotFound) return std::optional<IndexedTable>();
  TAMIS_ASSIGN_OR_RETURN(auto read, std::move(description));
  TAMIS_ASSIGN_OR_RETURN(auto table, ReadIndexedTable(std::move(read)));
  if (!table || table->stored.name != name || !TableNames::HasItsName(*table)) table.reset();
  return table;
}

Result<IndexedTable> HBaseTables::Look(const std::string& name, Describe describe) {
  TAMIS_ASSIGN_OR_RETURN(auto again, FindAgain(name, describe));
  if (again) return *std::move(again);
  TAMIS_ASSIGN_OR_RETURN(const TableNames names, Names());
  auto named = names.Find(name);
  if (named.status().code() != StatusCode::kNotFound) return named;
  // The name in an unreadable schema is unknown, but the table may have the same name in HBase.
  const auto same = client_->Table(HBaseTableName(name_space_, name));
  if (same.ok()) {
    TAMIS_RETURN_IF_ERROR(ReadIndexedTable(*same).status());
  } else if (IsTransient(same.status().code())) {
    return same.status();
  }
  // The list leaves out tables whose descriptions HBase hides from this user.
  std::vector<std::string> hidden;
  TAMIS_ASSIGN_OR_RETURN(const TableNames readable, ReadableNames(&hidden));
  if (describe == &HBaseTables::DescribedToReaders) {
    named = readable.Find(name);
    if (named.status().code() != StatusCode::kNotFound) return named;
  } else if (const auto told = readable.Find(name); told.ok()) {
    return client_->Table(told->description.name).status();
  }
  TAMIS_RETURN_IF_ERROR(WhyHidden(name, hidden, describe));
  return same.ok() || IsNoTable(same.status()) ? named.status() : same.status();
}

Result<IndexedTable> HBaseTables::Find(const std::string& name) {
  return Find(name, &HBaseTables::Described);
}

Result<IndexedTable> HBaseTables::FindReadable(const std::string& name) {
  return Find(name, &HBaseTables::DescribedToReaders);
}

Result<IndexedTable> HBaseTables::Find(const std::string& name, Describe describe) {
  auto found = Look(name, describe);
  if (found.ok() || found.status().code() == StatusCode::kNotFound) return found;
  return found.status().WithContext("cannot look up table \"" + name + "\"");
}

// Any user may read hbase:meta, which has a row with a state for each table.
Result<std::vector<std::string>> HBaseTables::HiddenNames(
    const std::vector<hbase::TableDescription>& described) {
  std::set<std::string> shown;
  for (const hbase::TableDescription& table : described) shown.insert(FullTableName(table.name));
  const std::string prefix = FullTableName(HBaseTableName(name_space_, ""));
  std::vector<std::string> hidden;
  const auto states = client_->Scan("hbase:meta", {.columns = {{.family = "table"}}});
  while (true) {
    const auto rows = states->Next();
    // Another access controller may not let every user read it.
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

Result<std::vector<std::string>> HBaseTables::Hidden() {
  std::vector<std::string> hidden;
  TAMIS_RETURN_IF_ERROR(ReadableNames(&hidden).status());
  return hidden;
}

Status HBaseTables::WhyHidden(const std::string& name, const std::vector<std::string>& hidden,
                              Describe describe) {
  std::string list;
  for (const std::string& one : hidden) {
    // Names of stores are in lower case, and names in HBase need not be.
    if (strcasecmp(one.c_str(), name.c_str()) == 0) {
      return (this->*describe)(HBaseTableName(name_space_, one)).status();
    }
    list += (list.empty() ? "\"" : ", \"") + one + "\"";
  }
  if (list.empty()) return {};
  return NotFound("no table \"" + name + "\" that this user may see: HBase hides " + list +
                  " of namespace \"" + name_space_ +
                  "\"; if it is one of them, the right R on it is missing");
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
