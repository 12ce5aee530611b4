#include "tamis/cli/connection.h"

#include <algorithm>
#include <cstring>

#include "tamis/cli/interrupt.h"
#include "tamis/cli/sql_text.h"
#include "tamis/cli/table_statements.h"
#include "tamis/cluster/hidden_tables.h"
#include "tamis/server/memory_database.h"
#include "tamis/sql/extension.h"
#include "tamis/sql/rewritten_query.h"
#include "tamis/table/timestamp.h"

namespace tamis {
OpenedStore::Options StoreOptionsOf(const Invocation& invocation, bool create) {
  return {.max_filter_bytes = invocation.filter_memory,
          .servers = invocation.servers,
          .server_filter_bytes = invocation.server_filter_memory,
          .split_bytes = invocation.split_bytes,
          .sync = invocation.sync,
          .salvage = invocation.salvage,
          .create = create,
          .read_only = invocation.read_only};
}

Connection::Connection(const Invocation& invocation)
    : invocation_(invocation), session_(std::make_shared<Session>()) {}

Result<std::unique_ptr<Connection>> Connection::Open(const Invocation& invocation, bool create) {
  std::unique_ptr<Connection> connection(new Connection(invocation));
  TAMIS_RETURN_IF_ERROR(connection->OpenStore(create));
  TAMIS_RETURN_IF_ERROR(connection->OpenDatabase());
  return connection;
}

Result<std::unique_ptr<Connection>> Connection::OpenWithoutStore(const Invocation& invocation) {
  std::unique_ptr<Connection> connection(new Connection(invocation));
  TAMIS_RETURN_IF_ERROR(connection->OpenDatabase());
  return connection;
}

Status Connection::OpenStore(bool create) {
  TAMIS_ASSIGN_OR_RETURN(store_,
                         OpenedStore::Open(invocation_.store, StoreOptionsOf(invocation_, create)));
  session_->engine = std::shared_ptr<Engine>(store_, &store_->engine());
  session_->admin = std::shared_ptr<ClusterAdmin>(store_, &store_->admin());
  return Status::Ok();
}

Status Connection::OpenDatabase() { return server::OpenMemoryDatabase(session_, &db_); }

Status Connection::CheckStore() const {
  if (store_) return Status::Ok();
  return NotFound("there is no store \"" + store_name() + "\" yet; CREATE TABLE makes it");
}

Status Connection::MakeStore() { return OpenStore(/*create=*/true); }

Connection::~Connection() {
  sqlite3_close(db_);
  session_.reset();
}

void Connection::WaitUntilRouted(Duration timeout) {
  const auto tables = session_->Tables();
  if (!tables.ok()) return;
  const Time until = engine().executor().Now() + timeout;
  for (const TableSchema& table : *tables) {
    const Duration left = until - engine().executor().Now();
    if (left > Duration(0)) engine().WaitUntilRouted(table, left);
  }
}

Status Connection::LastError(int rc) const {
  const std::string message = sqlite3_errmsg(db_);
  if (rc == SQLITE_INTERRUPT || session_->cancelled) {
    // The table's own message says more: a write may stand.
    return Cancelled(message == "interrupted" ? message : "interrupted: " + message);
  }
  if ((rc & 0xff) == SQLITE_CONSTRAINT) return AlreadyExists(message);
  return InvalidArgument(message + WhyUnknownTable(message));
}

// A table may be hidden from this user under another name than the statement has. Then SQLite knows
// nothing of it, but the cluster can name the hidden tables.
std::string Connection::WhyUnknownTable(const std::string& message) const {
  const std::string begin = "no such table: ";
  if (!message.starts_with(begin) || !session_->engine) return "";
  if (dynamic_cast<HiddenTables*>(&session_->engine->cluster()) == nullptr) return "";
  const auto table = session_->engine->Table(message.substr(begin.size()));
  if (table.ok() || table.status().code() != StatusCode::kNotFound) return "";
  return " (" + table.status().message() + ")";
}

Status Connection::Step(sqlite3_stmt* statement, const RowSink& sink) {
  const int columns = sqlite3_column_count(statement);
  int rc = sqlite3_step(statement);
  if (columns > 0 && (rc == SQLITE_ROW || rc == SQLITE_DONE)) {
    std::vector<std::string> names;
    for (int i = 0; i < columns; ++i) names.emplace_back(sqlite3_column_name(statement, i));
    sink.begin(names);
    for (; rc == SQLITE_ROW; rc = sqlite3_step(statement)) sink.row(statement);
    sink.end();
  }
  return rc == SQLITE_DONE ? Status::Ok() : LastError(rc);
}

// Temporary tables and views, which hide tables of the store with the same name.
bool Connection::HasTablesOfItsOwn() const {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(db_,
                     "SELECT 1 FROM sqlite_temp_schema WHERE type IN ('table', 'view') AND sql NOT "
                     "LIKE 'CREATE VIRTUAL TABLE%'",
                     -1, &statement, nullptr);
  const bool found = sqlite3_step(statement) != SQLITE_DONE;
  sqlite3_finalize(statement);
  return found;
}

// Whether the statement calls a function that is rewritten: to find its end may take long.
bool Connection::MayBeRewritten(const std::string& statement) {
  const auto words = SqlWords(statement, statement.size());
  if (words.empty() || words[0] != "SELECT") return false;
  static constexpr const char* kFunctions[] = {"LOWER", "COUNT", "SUM", "TOTAL",
                                               "AVG",   "MIN",   "MAX"};
  return std::ranges::any_of(kFunctions, [&](const char* function) {
    return std::ranges::find(words, function) != words.end();
  });
}

std::optional<std::string> Connection::RewriteFirst(const char** text) const {
  // A script may be long: it is looked at up to its first semicolon.
  const std::string begin(*text, std::strcspn(*text, ";"));
  session_->aggregated_by_sqlite.clear();
  if (session_->engine == nullptr || !MayBeRewritten(begin)) return std::nullopt;
  if (session_->HasDroppedColumns()) {
    session_->aggregated_by_sqlite =
        "a column was dropped, or has another name, since the store was opened; open it again";
    return std::nullopt;
  }
  const std::string_view first = FirstStatement(*text);
  const bool in_transaction = sqlite3_get_autocommit(db_) == 0;
  auto rewritten =
      RewriteQuery(first, session_->engine.get(), in_transaction ? "a transaction is open" : "");
  session_->aggregated_by_sqlite = std::move(rewritten.by_sqlite);
  if (!rewritten.sql.has_value()) return std::nullopt;
  if (HasTablesOfItsOwn()) {
    session_->aggregated_by_sqlite = "there are temporary tables or views";
    return std::nullopt;
  }
  *text += first.size();
  return rewritten.sql;
}

Status Connection::Run(const std::string& sql, const RowSink& sink,
                       std::vector<Explain>* searches) {
  const InterruptScope interrupt(&session_->cancelled);
  session_->searches = searches;
  Status status;
  const char* rest = sql.c_str();
  while (status.ok() && *rest != '\0') {
    if (session_->cancelled) status = Cancelled("interrupted");
    if (!status.ok()) break;
    const auto taken = TableStatements(db_, session_).Run(rest);
    if (!taken.ok()) {
      status = taken.status();
      break;
    }
    if (taken->has_value()) {
      rest = **taken;
      continue;
    }
    sqlite3_stmt* statement = nullptr;
    int rc = SQLITE_ERROR;
    const char* const first = rest;
    const bool in_transaction = sqlite3_get_autocommit(db_) == 0;
    if (const auto rewritten = RewriteFirst(&rest)) {
      rc = sqlite3_prepare_v2(db_, rewritten->c_str(), -1, &statement, nullptr);
    }
    if (rc != SQLITE_OK) rc = sqlite3_prepare_v2(db_, first, -1, &statement, &rest);
    if (rc != SQLITE_OK) {
      status = LastError(rc);
    } else if (statement != nullptr) {
      status = Step(statement, sink);
    }
    sqlite3_finalize(statement);
    if (in_transaction && IsRolledBack(first, status)) {
      const Status attached = AttachTables(db_, session_);
      if (status.ok()) status = attached;
    }
  }
  session_->searches = nullptr;
  return status;
}

// Whether the statement, which ran in a transaction, may have undone some of it. With it SQLite
// forgets the tables that were made in the transaction, which the store keeps.
bool Connection::IsRolledBack(const char* statement, const Status& status) const {
  if (session_->engine == nullptr) return false;
  if (!status.ok()) return sqlite3_get_autocommit(db_) != 0;
  return SqlWords(statement, 1) == std::vector<std::string>{"ROLLBACK"};
}

Status Connection::CheckCommitted() const {
  if (sqlite3_get_autocommit(db_) != 0) return Status::Ok();
  const std::string begin = "the transaction was not committed: ";
  const std::string remedy = "; write COMMIT after them";
  if (session_->HasUnsentWrites()) {
    return FailedPrecondition(begin + "its writes are dropped" + remedy);
  }
  for (int i = 0; const char* name = sqlite3_db_name(db_, i); ++i) {
    const char* file = sqlite3_db_filename(db_, name);
    if (file == nullptr || *file == '\0') continue;  // it ends with this program
    if (sqlite3_txn_state(db_, name) != SQLITE_TXN_WRITE) continue;
    return FailedPrecondition(begin + "any writes to the attached database \"" + name +
                              "\" are dropped" + remedy);
  }
  return Status::Ok();
}

Status Connection::RunBound(const std::string& sql, const std::vector<Value>& values,
                            const RowSink& sink) {
  const InterruptScope interrupt(&session_->cancelled);
  sqlite3_stmt* statement = nullptr;
  int rc = sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr);
  if (rc != SQLITE_OK) return LastError(rc);
  for (size_t i = 0; i < values.size() && rc == SQLITE_OK; ++i) {
    const int at = static_cast<int>(i) + 1;
    const Value& value = values[i];
    if (value.is_null()) {
      rc = sqlite3_bind_null(statement, at);
    } else if (value.type() == Type::kBytes) {
      rc = sqlite3_bind_blob64(statement, at, value.str().data(), value.str().size(),
                               SQLITE_TRANSIENT);
    } else if (value.type() == Type::kInt64 || value.type() == Type::kBool) {
      rc = sqlite3_bind_int64(statement, at, value.int64());
    } else if (value.type() == Type::kDouble) {
      rc = sqlite3_bind_double(statement, at, value.dbl());
    } else {
      const std::string text =
          value.type() == Type::kTimestamp ? FormatSqlTimestamp(value.int64()) : value.ToString();
      rc = sqlite3_bind_text64(statement, at, text.data(), text.size(), SQLITE_TRANSIENT,
                               SQLITE_UTF8);
    }
  }
  const Status status = rc == SQLITE_OK ? Step(statement, sink) : LastError(rc);
  sqlite3_finalize(statement);
  return status;
}

void OnStore(Command sub, Invocation* invocation, std::function<Status(Connection*)> command,
             bool create) {
  sub.OnParsed([invocation, create, command = std::move(command)] {
    invocation->run = [invocation, create, command] {
      auto connection = Connection::Open(*invocation, create);
      if (!connection.ok()) return Report(connection.status());
      return Report(command(connection->get()));
    };
  });
}

}  // namespace tamis
