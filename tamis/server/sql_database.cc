#include "tamis/server/sql_database.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tamis/server/format_function.h"
#include "tamis/server/json_rows.h"
#include "tamis/server/memory_database.h"
#include "tamis/server/text_functions.h"
#include "tamis/sql/rewritten_query.h"
#include "tamis/table/value.h"

namespace tamis::server {
namespace {

int BindOne(sqlite3_stmt* statement, int at, const Value& value) {
  if (value.is_null()) return sqlite3_bind_null(statement, at);
  switch (value.type()) {
    case Type::kInt64:
      return sqlite3_bind_int64(statement, at, value.int64());
    case Type::kDouble:
      return sqlite3_bind_double(statement, at, value.dbl());
    case Type::kBytes:
      return sqlite3_bind_blob64(statement, at, value.str().data(), value.str().size(),
                                 SQLITE_TRANSIENT);
    default:
      return sqlite3_bind_text64(statement, at, value.str().data(), value.str().size(),
                                 SQLITE_TRANSIENT, SQLITE_UTF8);
  }
}

bool IsBlank(const char* text) {
  for (; *text != '\0'; ++text) {
    if (*text != ' ' && *text != '\t' && *text != '\n' && *text != '\r' && *text != ';')
      return false;
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<SqlDatabase>> SqlDatabase::Open(const std::shared_ptr<OpenedStore>& store,
                                                       bool may_write) {
  std::unique_ptr<SqlDatabase> database(new SqlDatabase(may_write));
  Session& session = *database->session_;
  session.engine = std::shared_ptr<Engine>(store, &store->engine());
  session.admin = std::shared_ptr<ClusterAdmin>(store, &store->admin());
  TAMIS_RETURN_IF_ERROR(OpenMemoryDatabase(database->session_, &database->db_));
  if (RegisterTextFunctions(database->db_) != SQLITE_OK ||
      RegisterFormatFunctions(database->db_) != SQLITE_OK) {
    return ResourceExhausted("there is no memory for a database");
  }
  database->sandbox_.Enclose(database->db_);
  return database;
}

SqlDatabase::~SqlDatabase() {
  End(/*keep=*/false);
  statements_.Clear();
  sqlite3_close(db_);
}

Result<sqlite3_stmt*> SqlDatabase::Prepare(const std::string& sql) {
  sandbox_.TakeRefusal();
  session_->failure = Status::Ok();
  // A statement that is to explain each region is rewritten in another way.
  const bool explains_regions = session_->explained_regions != 0;
  const Time now = session_->engine->executor().Now();
  if (!explains_regions) {
    auto kept = statements_.Take(sql, now, [this](const auto& table) { return VersionOf(table); });
    if (kept.has_value()) {
      present_ = *std::move(kept);
      can_be_kept_ = true;
      session_->aggregated_by_sqlite = present_.aggregated_by_sqlite;
      return present_.handle;
    }
  }
  const auto before = Versions();
  TAMIS_ASSIGN_OR_RETURN(sqlite3_stmt* const statement, PrepareAnew(sql));
  present_ = {.handle = statement, .prepared = now};
  // The text of a rewritten statement depends on the tables that it names. A table that changed, or
  // became known, while the statement was prepared may have been planned by an older version.
  const bool is_as_written =
      statement != nullptr && !explains_regions && sqlite3_sql(statement) == sql;
  can_be_kept_ =
      is_as_written && before.size() == session_->declared.size() && before == Versions();
  if (can_be_kept_) {
    present_.sql = sql;
    present_.tables = before;
    present_.aggregated_by_sqlite = session_->aggregated_by_sqlite;
  }
  return statement;
}

int SqlDatabase::End(bool keep) {
  StatementCache::Statement statement = std::exchange(present_, {});
  if (!keep || !can_be_kept_) return sqlite3_finalize(statement.handle);
  const int rc = sqlite3_reset(statement.handle);
  statements_.Put(std::move(statement));
  return rc;
}

std::optional<TableVersion> SqlDatabase::VersionOf(const std::string& table) const {
  const auto schema = session_->engine->Table(table);
  if (!schema.ok()) return std::nullopt;
  return TableVersion((*schema)->id, (*schema)->version);
}

std::map<std::string, TableVersion> SqlDatabase::Versions() const {
  std::map<std::string, TableVersion> versions;
  for (const auto& [name, schema] : session_->declared) {
    if (const auto version = VersionOf(name)) versions[name] = *version;
  }
  return versions;
}

Result<sqlite3_stmt*> SqlDatabase::PrepareAnew(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const auto prepare = [&](const std::string& text) {
    return sqlite3_prepare_v2(db_, text.c_str(), static_cast<int>(text.size() + 1), &statement,
                              &rest);
  };
  const bool explains_regions = session_->explained_regions != 0;
  auto rewritten =
      RewriteQuery(sql, session_->engine.get(),
                   sqlite3_get_autocommit(db_) == 0 ? "a transaction is open"
                   : explains_regions ? "an aggregate of the servers tells nothing of each region"
                                      : "");
  session_->aggregated_by_sqlite = std::move(rewritten.by_sqlite);
  int rc = rewritten.sql.has_value() ? prepare(*rewritten.sql) : SQLITE_ERROR;
  if (rc != SQLITE_OK) {
    sandbox_.TakeRefusal();
    rc = prepare(sql);
  }
  if (rc != SQLITE_OK) return ErrorOf(rc);
  if (!IsBlank(rest)) {
    // A comment after the statement is none.
    sqlite3_stmt* next = nullptr;
    const int next_rc = sqlite3_prepare_v2(db_, rest, -1, &next, nullptr);
    const bool is_comment = next_rc == SQLITE_OK && next == nullptr;
    sqlite3_finalize(next);
    if (!is_comment) {
      sqlite3_finalize(statement);
      return InvalidArgument("the text has more than one statement; send one in each request");
    }
  }
  return statement;
}

Status SqlDatabase::Bind(sqlite3_stmt* statement, const nlohmann::json& values) {
  const int wanted = sqlite3_bind_parameter_count(statement);
  if (static_cast<size_t>(wanted) != values.size()) {
    return InvalidArgument("the statement has " + std::to_string(wanted) +
                           (wanted == 1 ? " parameter" : " parameters") +
                           ", and the request has values for " + std::to_string(values.size()));
  }
  for (int i = 0; i < wanted; ++i) {
    const auto value = FromJson(values[static_cast<size_t>(i)]);
    if (!value.ok()) {
      return value.status().WithContext("parameter " + std::to_string(i + 1));
    }
    const int rc = BindOne(statement, i + 1, *value);
    if (rc != SQLITE_OK) return ErrorOf(rc);
  }
  return Status::Ok();
}

Status SqlDatabase::ErrorOf(int rc) {
  std::string refusal = sandbox_.TakeRefusal();
  if (!refusal.empty()) return InvalidArgument(std::move(refusal));
  const std::string message = db_ == nullptr ? sqlite3_errstr(rc) : sqlite3_errmsg(db_);
  // The engine's own code says whether a change may have been made, and whether to ask again.
  const StatusCode failure = session_->failure.code();
  if (failure == StatusCode::kDeadlineExceeded || failure == StatusCode::kUnavailable ||
      failure == StatusCode::kDataLoss) {
    return Status(failure, message);
  }
  // Rows were changed meanwhile. Others of the statement may stand, so that it is not to be sent
  // again without a look at them.
  if (failure == StatusCode::kBusy) return FailedPrecondition(message);
  if (rc == SQLITE_INTERRUPT || session_->cancelled) {
    // The table's own message says more: a write may stand.
    return Cancelled(message == "interrupted" ? message : "interrupted: " + message);
  }
  switch (rc & 0xff) {
    case SQLITE_NOMEM:
      return ResourceExhausted("the statement needs more memory than this server gives to SQL");
    case SQLITE_TOOBIG:
      return InvalidArgument(message +
                             ": a value or the statement is longer than this server permits");
    case SQLITE_CONSTRAINT:
      return AlreadyExists(message);
    default:
      return InvalidArgument(message);
  }
}

bool SqlDatabase::IsCurrent() const {
  return std::ranges::all_of(session_->declared, [this](const auto& table) {
    const auto now = session_->engine->Table(table.first);
    if (!now.ok()) return now.status().code() != StatusCode::kNotFound;
    return (*now)->id == table.second->id &&
           std::ranges::equal((*now)->columns, table.second->columns, {}, &Column::name,
                              &Column::name);
  });
}

void SqlDatabase::Interrupt() {
  session_->cancelled = true;
  sqlite3_interrupt(db_);
}

Result<std::unique_ptr<SqlDatabase>> SqlDatabases::Take(bool fresh) {
  while (!fresh) {
    std::unique_ptr<SqlDatabase> database;
    {
      std::lock_guard lock(mutex_);
      if (free_.empty()) break;
      database = std::move(free_.back());
      free_.pop_back();
    }
    if (database->IsCurrent()) return database;
  }
  return SqlDatabase::Open(store_, may_write_);
}

void SqlDatabases::GiveBack(std::unique_ptr<SqlDatabase> database) {
  database->session()->cancelled = false;
  database->session()->searches = nullptr;
  std::lock_guard lock(mutex_);
  if (free_.size() < kept_) free_.push_back(std::move(database));
}

}  // namespace tamis::server
