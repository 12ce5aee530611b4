// tamis get, put, delete, scan: single rows without SQL.

#include <limits>
#include <set>

#include "tamis/base/utf8.h"
#include "tamis/cli/command.h"
#include "tamis/cli/connection.h"
#include "tamis/cli/printer.h"
#include "tamis/sql/sql_name.h"

namespace tamis {
namespace {

// The greatest LIMIT of SQL.
constexpr auto kNoLimit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

struct RowOptions {
  std::string table;
  std::vector<std::string> values;  // values of the key, or COLUMN=VALUE
  std::string format = "line";
  std::string start;
  std::string end;
  std::string where;
  uint64_t limit = kNoLimit;
};

Result<Value> ParseCell(const TableSchema& schema, uint32_t column, const std::string& text) {
  auto value = Value::Parse(schema.columns[column].type, text);
  if (!value.ok()) {
    return value.status().WithContext("column \"" + schema.columns[column].name + "\"");
  }
  return value;
}

// "k1 = ? AND k2 = ?" and the values of the whole key.
Result<std::pair<std::string, std::vector<Value>>> KeyCondition(
    const TableSchema& schema, const std::vector<std::string>& texts) {
  if (texts.size() != schema.key.size()) {
    std::string names;
    for (const uint32_t column : schema.key) names += " " + schema.columns[column].name;
    return InvalidArgument("the key of table \"" + schema.name + "\" has " +
                           std::to_string(schema.key.size()) + " columns:" + names + "; " +
                           std::to_string(texts.size()) + " values are given");
  }
  std::string condition;
  std::vector<Value> values;
  for (size_t i = 0; i < texts.size(); ++i) {
    TAMIS_ASSIGN_OR_RETURN(Value value, ParseCell(schema, schema.key[i], texts[i]));
    condition += (i == 0 ? "" : " AND ") + QuotedName(schema.columns[schema.key[i]].name) + " = ?";
    values.push_back(std::move(value));
  }
  return std::pair(std::move(condition), std::move(values));
}

Status Get(Connection* connection, const RowOptions& options) {
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, connection->engine().Table(options.table));
  TAMIS_ASSIGN_OR_RETURN(const auto key, KeyCondition(*schema, options.values));
  TAMIS_ASSIGN_OR_RETURN(const Format format, ParseFormat(options.format));
  Printer printer(format, stdout);
  RowSink sink = printer.Sink();
  bool found = false;
  sink.row = [&, row = sink.row](sqlite3_stmt* statement) {
    found = true;
    row(statement);
  };
  TAMIS_RETURN_IF_ERROR(connection->RunBound(
      "SELECT * FROM " + QuotedName(schema->name) + " WHERE " + key.first, key.second, sink));
  if (!found) return NotFound("table \"" + schema->name + "\" has no row with this key");
  return Status::Ok();
}

Status Put(Connection* connection, const RowOptions& options) {
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, connection->engine().Table(options.table));
  std::string names;
  std::string marks;
  std::vector<Value> values;
  std::set<std::string> seen;
  for (const std::string& assignment : options.values) {
    const size_t equals = assignment.find('=');
    const std::string name = assignment.substr(0, equals);
    const auto column = schema->FindColumn(name);
    if (!seen.insert(name).second) {
      return InvalidArgument("column \"" + name + "\" is given twice");
    }
    if (equals == std::string::npos || !column) {
      return InvalidArgument("\"" + assignment +
                             "\" is not COLUMN=VALUE with a column of table \"" + schema->name +
                             "\"");
    }
    const std::string text = assignment.substr(equals + 1);
    if (schema->columns[*column].type == Type::kText &&
        FindInvalidUtf8(text) != std::string::npos) {
      return InvalidArgument("cannot put column \"" + name +
                             "\": the text is not UTF-8; a column of type bytes holds other bytes");
    }
    TAMIS_ASSIGN_OR_RETURN(Value value, ParseCell(*schema, *column, text));
    names += (names.empty() ? "" : ", ") + QuotedName(name);
    marks += marks.empty() ? "?" : ", ?";
    values.push_back(std::move(value));
  }
  return connection->RunBound("INSERT OR REPLACE INTO " + QuotedName(schema->name) + " (" + names +
                                  ") VALUES (" + marks + ")",
                              values, {});
}

Status Delete(Connection* connection, const RowOptions& options) {
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, connection->engine().Table(options.table));
  TAMIS_ASSIGN_OR_RETURN(const auto key, KeyCondition(*schema, options.values));
  TAMIS_RETURN_IF_ERROR(connection->RunBound(
      "DELETE FROM " + QuotedName(schema->name) + " WHERE " + key.first, key.second, {}));
  if (connection->changes() == 0) {
    return NotFound("table \"" + schema->name + "\" has no row with this key");
  }
  return Status::Ok();
}

Status Scan(Connection* connection, const RowOptions& options) {
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, connection->engine().Table(options.table));
  TAMIS_ASSIGN_OR_RETURN(const Format format, ParseFormat(options.format));
  const uint32_t first = schema->key[0];
  std::string conditions;
  std::vector<Value> values;
  const auto bound = [&](const std::string& text, const std::string& op) -> Status {
    if (text.empty()) return Status::Ok();
    TAMIS_ASSIGN_OR_RETURN(Value value, ParseCell(*schema, first, text));
    conditions +=
        (conditions.empty() ? "" : " AND ") + QuotedName(schema->columns[first].name) + op + "?";
    values.push_back(std::move(value));
    return Status::Ok();
  };
  TAMIS_RETURN_IF_ERROR(bound(options.start, " >= "));
  TAMIS_RETURN_IF_ERROR(bound(options.end, " < "));
  if (!options.where.empty()) {
    conditions += (conditions.empty() ? "(" : " AND (") + options.where + ")";
  }
  std::string sql = "SELECT * FROM " + QuotedName(schema->name);
  if (!conditions.empty()) sql += " WHERE " + conditions;
  sql += " ORDER BY ";
  for (const uint32_t column : schema->key) {
    sql += (column == first ? "" : ", ") + QuotedName(schema->columns[column].name);
  }
  if (options.limit < kNoLimit) sql += " LIMIT " + std::to_string(options.limit);
  Printer printer(format, stdout);
  return connection->RunBound(sql, values, printer.Sink());
}

}  // namespace

void AddRowCommands(Command app, Invocation* invocation) {
  using Run = Status (*)(Connection*, const RowOptions&);
  const auto add = [&](const char* name, const char* help, Run run) {
    auto options = std::make_shared<RowOptions>();
    Command sub = app.AddCommand(name, help);
    sub.AddOption("TABLE", options->table, "The table").Required();
    OnStore(sub, invocation, [=](Connection* connection) { return run(connection, *options); });
    return std::pair(sub, options);
  };

  {
    const auto [sub, options] = add("get", "Print the row with a key", Get);
    sub.AddOption("KEY", options->values, "The values of the key columns, in key order").Required();
    AddFormatOption(sub, options->format);
  }
  {
    const auto [sub, options] = add(
        "put", "Put a row: it replaces the row with the same key; columns not named are NULL", Put);
    sub.AddOption("COLUMN=VALUE", options->values, "The columns, the key's among them").Required();
  }
  {
    const auto [sub, options] = add("delete", "Delete the row with a key", Delete);
    sub.AddOption("KEY", options->values, "The values of the key columns, in key order").Required();
  }
  {
    const auto [sub, options] = add("scan", "Print rows in key order", Scan);
    options->format = "table";
    sub.AddOption("--start", options->start, "The first key column is at least this");
    sub.AddOption("--end", options->end, "The first key column is less than this");
    sub.AddOption("--where", options->where, "A condition in SQL");
    sub.AddOption("--limit", options->limit, "At most this many rows");
    AddFormatOption(sub, options->format);
  }
}

}  // namespace tamis
