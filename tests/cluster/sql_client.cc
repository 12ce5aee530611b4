#include "tests/cluster/sql_client.h"

#include <sqlite3.h>

#include <algorithm>

#include "tamis/sql/extension.h"

namespace tamis {
namespace {

// SQLite hands its own functions only to an extension's entry point.
thread_local std::shared_ptr<Session> opening;
thread_local Status opened;

int Entry(sqlite3* db, const char**, const sqlite3_api_routines* api) {
  if (opening == nullptr) return SQLITE_OK;
  opened = Extend(db, api, std::exchange(opening, nullptr));
  return opened.ok() ? SQLITE_OK : SQLITE_ERROR;
}

std::string Literal(const Value& value) {
  if (value.is_null()) return "NULL";
  return value.type() == Type::kText ? "'" + value.str() + "'" : value.ToString();
}

Value ColumnOf(sqlite3_stmt* statement, int i) {
  switch (sqlite3_column_type(statement, i)) {
    case SQLITE_INTEGER:
      return Value::Int64(sqlite3_column_int64(statement, i));
    case SQLITE_TEXT:
      return Value::Text(reinterpret_cast<const char*>(sqlite3_column_text(statement, i)));
    default:
      return {};
  }
}

std::string Columns(const TableSchema& schema) {
  std::string text;
  for (const Column& column : schema.columns) text += (text.empty() ? "" : ", ") + column.name;
  return text;
}

std::string Assignments(const TableSchema& schema, const Write& write) {
  std::string text;
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    if (schema.columns[i].is_computed()) continue;
    const bool wanted = write.columns.empty()
                            ? !schema.IsKey(i)
                            : std::ranges::find(write.columns, i) != write.columns.end();
    if (!wanted) continue;
    if (!text.empty()) text += ", ";
    text += schema.columns[i].name + " = " + Literal(write.row[i]);
  }
  return text;
}

}  // namespace

std::string SqlOf(const TableSchema& schema, const Write& write) {
  const uint32_t key = schema.key[0];
  const std::string where = " WHERE " + schema.columns[key].name + " = " + Literal(write.row[key]);
  if (write.kind == Write::Kind::kDelete) return "DELETE FROM " + schema.name + where;
  if (write.kind == Write::Kind::kUpdate || write.condition.has_value()) {
    return "UPDATE " + schema.name + " SET " + Assignments(schema, write) + where +
           (write.condition.has_value() ? " AND " + write.condition->ToString(schema) : "");
  }
  std::string names, values;
  for (size_t i = 0; i < schema.columns.size(); ++i) {
    if (schema.columns[i].is_computed()) continue;
    names += (i == 0 ? "" : ", ") + schema.columns[i].name;
    values += (i == 0 ? "" : ", ") + Literal(write.row[i]);
  }
  const bool replace = write.kind == Write::Kind::kPut;
  return (replace ? "INSERT OR REPLACE INTO " : "INSERT INTO ") + schema.name + " (" + names +
         ") VALUES (" + values + ")";
}

std::string SqlOf(const TableSchema& schema, const SearchOptions& options) {
  std::string text = "SELECT " + Columns(schema) + " FROM " + schema.name;
  if (options.predicate.kind != Predicate::Kind::kTrue) {
    text += " WHERE " + options.predicate.ToString(schema);
  }
  if (options.key_order) text += " ORDER BY " + schema.columns[schema.key[0]].name;
  for (const OrderTerm& term : options.order) {
    text += " ORDER BY " + schema.columns[term.column].name + (term.descending ? " DESC" : "");
  }
  if (options.limit > 0) text += " LIMIT " + std::to_string(options.limit);
  return text;
}

Result<std::unique_ptr<SqlClient>> SqlClient::Open(Engine* engine) {
  std::unique_ptr<SqlClient> client(new SqlClient());
  client->session_ = std::make_shared<Session>();
  client->session_->engine = std::shared_ptr<Engine>(std::shared_ptr<void>(), engine);
  client->session_->searches = &client->searches_;
  sqlite3_auto_extension(reinterpret_cast<void (*)()>(Entry));
  opening = client->session_;
  const int rc = sqlite3_open(":memory:", &client->db_);
  if (!opened.ok()) return opened;
  if (rc != SQLITE_OK) return client->ErrorOf(rc, "open");
  return client;
}

SqlClient::~SqlClient() { sqlite3_close(db_); }

Status ErrorOfSql(int rc, const std::string& message) {
  const auto says = [&](const char* text) { return message.find(text) != std::string::npos; };
  const int code = rc & 0xff;
  if (code == SQLITE_CONSTRAINT) return AlreadyExists(message);
  if (says("may have been carried out") || says("may be done") || says("in time"))
    return DeadlineExceeded(message);
  // A row that only this client writes is never changed by another client.
  if (code == SQLITE_BUSY && !says("another client")) return Unavailable(message);
  return Internal(message);
}

Status SqlClient::ErrorOf(int rc, const std::string& sql) const {
  const Status error = ErrorOfSql(rc, sqlite3_errmsg(db_));
  return error.code() == StatusCode::kInternal ? Internal(error.message() + " (" + sql + ")")
                                               : error;
}

Status SqlClient::Run(const TableSchema& schema, const std::string& sql, std::vector<Row>* rows) {
  searches_.clear();
  sqlite3_stmt* statement = nullptr;
  int rc = sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr);
  while (rc == SQLITE_OK || rc == SQLITE_ROW) {
    rc = sqlite3_step(statement);
    if (rc != SQLITE_ROW) break;
    Row row;
    for (size_t i = 0; i < schema.columns.size(); ++i) {
      row.push_back(ColumnOf(statement, static_cast<int>(i)));
    }
    rows->push_back(std::move(row));
  }
  const Status status = rc == SQLITE_DONE ? Status::Ok() : ErrorOf(rc, sql);
  sqlite3_finalize(statement);
  return status;
}

Status SqlClient::Apply(const TableSchema& schema, const Write& write) {
  TAMIS_RETURN_IF_ERROR(Run(schema, SqlOf(schema, write), nullptr));
  if (write.kind == Write::Kind::kDelete || sqlite3_changes(db_) == 1) return Status::Ok();
  if (sqlite3_changes(db_) > 1) return Internal("a write of one row changed several");
  if (write.condition.has_value()) return FailedPrecondition("no row was changed");
  if (write.kind == Write::Kind::kUpdate) return NotFound("no row was changed");
  return Internal("nothing was inserted");
}

Result<std::vector<Row>> SqlClient::Search(const TableSchema& schema,
                                           const SearchOptions& options) {
  std::vector<Row> rows;
  TAMIS_RETURN_IF_ERROR(Run(schema, SqlOf(schema, options), &rows));
  return rows;
}

}  // namespace tamis
