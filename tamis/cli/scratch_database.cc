#include "tamis/cli/scratch_database.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "tamis/cli/sql_text.h"
#include "tamis/sql/sql_name.h"
#include "tamis/table/condition.h"

namespace tamis {

Status ScratchDatabase::Run(const std::string& sql) {
  if (rc_ != SQLITE_OK) return Internal("cannot open a database in memory");
  const int rc = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  return rc == SQLITE_OK ? Status::Ok() : InvalidArgument(sqlite3_errmsg(db_));
}

std::vector<ScratchDatabase::Row> ScratchDatabase::Rows(const std::string& sql) {
  std::vector<Row> rows;
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK) {
    while (sqlite3_step(statement) == SQLITE_ROW) {
      Row& row = rows.emplace_back();
      for (int i = 0; i < sqlite3_column_count(statement); ++i) {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
        row.emplace_back(text == nullptr ? "" : text);
      }
    }
  }
  sqlite3_finalize(statement);
  return rows;
}

Status ScratchDatabase::Mirror(const std::vector<TableSchema>& tables, bool indexes) {
  for (const TableSchema& table : tables) {
    std::string columns;
    for (const Column& column : table.columns) {
      if (column.is_dropped()) continue;
      columns += (columns.empty() ? "" : ", ") + QuotedName(column.name);
    }
    TAMIS_RETURN_IF_ERROR(Run("CREATE TABLE " + QuotedName(table.name) + "(" + columns + ")"));
    for (const IndexSpec& index : table.indexes) {
      if (!indexes) break;
      // A name that another table has an index of already, too, is known.
      (void)Run("CREATE INDEX IF NOT EXISTS " + QuotedName(LowerCase(index.name)) + " ON " +
                QuotedName(table.name) + "(" + QuotedName(table.columns[index.columns[0]].name) +
                ")");
    }
  }
  return Status::Ok();
}

void ScratchDatabase::ReadColumns(const std::string& table, Definition* out) {
  TableSchema& schema = out->schema;
  std::map<int, uint32_t> key;  // by place in the primary key
  for (const Row& row : Rows("PRAGMA table_xinfo(" + QuotedName(table) + ")")) {
    const std::string& name = row[1];
    const std::string& declared = row[2];
    const auto problem = [&](const std::string& what) {
      out->problems.push_back("column \"" + name + "\" " + what);
    };
    const auto type = TypeOfDeclaration(declared);
    if (declared.empty()) {
      problem("has no type");
    } else if (!type) {
      problem("has the type " + declared +
              ", which is none of TEXT, INTEGER, REAL, BLOB, BOOLEAN, TIMESTAMP, DECIMAL");
    }
    if (!row[4].empty() && UpperCase(row[4]) != "NULL") problem("has a DEFAULT");
    if (row[6] != "0") problem("is GENERATED");
    const char* collation = nullptr;
    int increments = 0;
    sqlite3_table_column_metadata(db_, nullptr, table.c_str(), name.c_str(), nullptr, &collation,
                                  nullptr, nullptr, &increments);
    if (collation != nullptr && sqlite3_stricmp(collation, "BINARY") != 0) {
      problem(std::string("has the collation ") + collation);
    }
    if (increments != 0) problem("is AUTOINCREMENT");
    const int place = std::stoi(row[5]);
    if (place > 0) key[place] = static_cast<uint32_t>(schema.columns.size());
    schema.columns.push_back({.id = schema.next_column_id++,
                              .name = LowerCase(name),
                              .type = type.value_or(Type::kText),
                              .nullable = row[3] == "0" && place == 0});
  }
  for (const auto& [place, column] : key) schema.key.push_back(column);
}

ScratchDatabase::Definition ScratchDatabase::ReadDefinition(const std::string& table,
                                                            const std::string& sql) {
  Definition out;
  out.schema.name = LowerCase(table);
  ReadColumns(table, &out);
  if (out.schema.key.empty()) {
    out.problems.emplace_back("it has no PRIMARY KEY");
    out.schema.key = {0};
    out.schema.columns[0].nullable = false;
  }
  for (const Row& index : Rows("PRAGMA index_list(" + QuotedName(table) + ")")) {
    if (index[3] == "u") out.problems.emplace_back("it has a UNIQUE constraint");
    if (index[3] != "pk") continue;
    for (const Row& part : Rows("PRAGMA index_xinfo(" + QuotedName(index[1]) + ")")) {
      const bool is_key = part[5] == "1";
      if (is_key && part[4] != "BINARY") {
        out.problems.push_back("its PRIMARY KEY has the collation " + part[4]);
      }
    }
  }
  if (!Rows("PRAGMA foreign_key_list(" + QuotedName(table) + ")").empty()) {
    out.problems.emplace_back("it has a FOREIGN KEY");
  }
  if (HasSqlWord(sql, "CHECK")) out.problems.emplace_back("it has a CHECK");
  if (HasSqlWord(sql, "CONFLICT")) out.problems.emplace_back("it has an ON CONFLICT clause");
  return out;
}

std::string ScratchDatabase::ConditionOf(const std::string& index) {
  std::string sql;
  for (const Row& row : Rows("SELECT name, sql FROM sqlite_schema WHERE type = 'index'")) {
    if (row[0] == index) sql = row[1];
  }
  constexpr std::string_view kWhere = "WHERE";
  for (size_t i = 0; i < sql.size(); ++i) {
    if (sql[i] == '\'' || sql[i] == '"' || sql[i] == '`') {  // one that is doubled begins again
      i = std::min(sql.find(sql[i], i + 1), sql.size());
      continue;
    }
    const bool begins = i > 0 && (sql[i - 1] == ' ' || sql[i - 1] == ')' || sql[i - 1] == '\n');
    if (begins && UpperCase(std::string_view(sql).substr(i, kWhere.size())) == kWhere) {
      return sql.substr(i + kWhere.size());
    }
  }
  return "";
}

Result<IndexSpec> ScratchDatabase::ReadIndex(const TableSchema& table, const std::string& name) {
  IndexSpec spec{.name = LowerCase(name)};
  const auto cannot = [&](const std::string& why) {
    return InvalidArgument("cannot create index \"" + spec.name + "\": " + why);
  };
  for (const Row& row : Rows("PRAGMA index_list(" + QuotedName(table.name) + ")")) {
    if (row[1] != name) continue;
    if (row[2] != "0") {
      return cannot("an index of a store is not UNIQUE; only the key is, PRIMARY KEY (...)");
    }
    if (row[4] == "0") continue;
    auto condition = ParseCondition(table, ConditionOf(name));
    if (!condition.ok()) return cannot(condition.status().message());
    spec.where = *std::move(condition);
  }
  for (const Row& row : Rows("PRAGMA index_xinfo(" + QuotedName(name) + ")")) {
    if (row[5] == "0") continue;  // the rowid
    const auto column = table.FindColumn(LowerCase(row[2]));
    if (!column) return cannot("an index of a store is of columns, not of expressions");
    if (row[4] != "BINARY") return cannot("an index of a store has no collation but BINARY");
    spec.columns.push_back(*column);
  }
  return spec;
}

std::optional<Type> TypeOfDeclaration(const std::string& declared) {
  const std::string type = UpperCase(declared.substr(0, declared.find('(')));
  const auto has = [&](const char* part) { return type.find(part) != std::string::npos; };
  if (type.empty()) return std::nullopt;
  if (has("TIMESTAMP") || has("DATETIME")) return Type::kTimestamp;
  if (has("INT")) return Type::kInt64;
  if (has("CHAR") || has("CLOB") || has("TEXT")) return Type::kText;
  if (has("BLOB") || type == "BYTES" || has("BINARY")) return Type::kBytes;
  if (has("REAL") || has("FLOA") || has("DOUB")) return Type::kDouble;
  if (has("BOOL")) return Type::kBool;
  if (has("DECIMAL") || has("NUMERIC")) return Type::kDecimal;
  return std::nullopt;
}

std::string StatementFor(const TableSchema& schema) {
  std::string text = "CREATE TABLE " + QuotedName(schema.name) + " (";
  for (const Column& column : schema.columns) {
    const std::string_view type = SqlType(column.type);  // a time's is two words
    text += QuotedName(column.name) + " " + std::string(type.substr(0, type.find(' '))) +
            (column.nullable ? ", " : " NOT NULL, ");
  }
  text += "PRIMARY KEY (";
  for (const uint32_t column : schema.key) {
    text += (column == schema.key.front() ? "" : ", ") + QuotedName(schema.columns[column].name);
  }
  return text + "))";
}

}  // namespace tamis
