#include "tamis/hbase_cluster/table_names.h"

#include <algorithm>

namespace tamis {
namespace {

// The table's name in HBase without the namespace.
std::string Qualifier(const IndexedTable& table) {
  const std::string full_name = table.full_name();
  return full_name.substr(full_name.find(':') + 1);
}

std::string Quoted(const std::string& name) { return "\"" + name + "\""; }

std::string JoinNames(const std::vector<IndexedTable>& tables) {
  std::string text;
  for (size_t i = 0; i < tables.size(); ++i) {
    if (i > 0) text += i + 1 == tables.size() ? " and " : ", ";
    text += Quoted(tables[i].full_name());
  }
  return text;
}

Status Ambiguous(const std::string& name, const std::vector<IndexedTable>& claimants) {
  const std::string what =
      "table name "
      " + name + "
      " is ambiguous: HBase tables " +
      JoinNames(claimants) + " have it; ";
  if (TableNames::HasItsName(claimants.front())) {
    return FailedPrecondition(what + "detach all but one: tamis table detach --hbase-table " +
                              claimants.back().full_name());
  }
  return FailedPrecondition(what + "say which one is the table: tamis table attach " + name +
                            " --hbase-table " + claimants.front().full_name() +
                            "; the others are copies of it then");
}

}  // namespace

bool TableNames::HasItsName(const IndexedTable& table) {
  return table.indexed_as() == table.full_name();
}

TableNames::TableNames(std::vector<IndexedTable> tables) : tables_(std::move(tables)) {
  const auto has_name = [](const IndexedTable& one, const std::string& name) {
    return one.stored.name == name && HasItsName(one);
  };
  for (const IndexedTable& table : tables_) {
    const std::string& name = table.stored.name;
    const auto claims = [&](const IndexedTable& other) {
      return &other != &table && other.stored.name == name && other.indexed_as().empty();
    };
    Standing standing = Standing::kNamed;
    if (HasItsName(table)) {
      if (std::ranges::count_if(tables_, [&](const auto& t) { return has_name(t, name); }) > 1) {
        standing = Standing::kAmbiguous;
      }
    } else if (!table.indexed_as().empty() ||
               std::ranges::any_of(tables_, [&](const auto& t) { return has_name(t, name); })) {
      standing = Standing::kCopy;
    } else if (Qualifier(table) != name && std::ranges::any_of(tables_, claims)) {
      const bool is_called_so = std::ranges::any_of(
          tables_, [&](const auto& t) { return claims(t) && Qualifier(t) == name; });
      standing = is_called_so ? Standing::kCopy : Standing::kAmbiguous;
    }
    standings_.push_back(standing);
  }
}

std::vector<IndexedTable> TableNames::Claimants(const std::string& name) const {
  std::vector<IndexedTable> claimants;
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (standings_[i] == Standing::kAmbiguous && tables_[i].stored.name == name) {
      claimants.push_back(tables_[i]);
    }
  }
  return claimants;
}

Result<IndexedTable> TableNames::Find(const std::string& name) const {
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (standings_[i] == Standing::kNamed && tables_[i].stored.name == name) return tables_[i];
  }
  if (const auto claimants = Claimants(name); !claimants.empty()) return Ambiguous(name, claimants);
  for (const IndexedTable& table : tables_) {
    if (table.stored.name != name) continue;
    return NotFound("no table \"" + name + "\"; HBase table " + Quoted(table.full_name()) +
                    " is a copy of the one that had the name; attach it: tamis table attach " +
                    name + " --hbase-table " + table.full_name());
  }
  return NotFound("no table \"" + name + "\"");
}

std::vector<IndexedTable> TableNames::Named() const {
  std::vector<IndexedTable> named;
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (standings_[i] == Standing::kNamed) named.push_back(tables_[i]);
  }
  return named;
}

TableNames::Standing TableNames::StandingOf(const std::string& full_name) const {
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (tables_[i].full_name() == full_name) return standings_[i];
  }
  return Standing::kCopy;
}

std::vector<TableNames::Unnamed> TableNames::ListUnnamed() const {
  std::vector<Unnamed> unnamed;
  for (size_t i = 0; i < tables_.size(); ++i) {
    const IndexedTable& table = tables_[i];
    const std::string name = table.full_name();
    if (standings_[i] == Standing::kAmbiguous) {
      unnamed.push_back({table, standings_[i], Find(table.stored.name).status().message()});
    } else if (standings_[i] == Standing::kCopy) {
      const std::string of = table.indexed_as();
      unnamed.push_back(
          {table, standings_[i],
           "is a copy of " + (of.empty() ? "table \"" + table.stored.name + "\"" : Quoted(of)) +
               ", as a clone of a snapshot is, and has no name in a store; give it one: tamis "
               "table attach NAME --hbase-table " +
               name + ", or make it a plain table: tamis table detach --hbase-table " + name});
    }
  }
  return unnamed;
}

}  // namespace tamis
