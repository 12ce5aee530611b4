#include "tamis/sql/table_functions.h"

#include <algorithm>
#include <memory>

#include "tamis/base/exception_status.h"
#include "tamis/sql/aggregate_rows.h"
#include "tamis/sql/extension.h"
#include "tamis/sql/grouped_rows.h"
#include "tamis/sql/guarded.h"
#include "tamis/sql/sqlite.h"
#include "tamis/sql/values.h"
#include "tamis/table/key_format.h"
#include "tamis/table/value_sample.h"

namespace tamis {
namespace {

using Rows = std::vector<Row>;

using Arguments = std::vector<std::string>;

// A function of text arguments that gives rows.
struct Function {
  const char* name;
  std::string columns;  // the columns in the form of CREATE TABLE
  std::vector<const char*> arguments;
  size_t required;  // the first arguments; the others may be left out and are empty
  Result<Rows> (*rows)(sqlite3* db, const std::shared_ptr<Session>& session,
                       const Arguments& arguments);

  // The place in a row of the value of a column; null: the same.
  size_t (*place)(size_t column, size_t row_size) = nullptr;

  int column_count() const {
    return 1 + static_cast<int>(std::count(columns.begin(), columns.end(), ','));
  }
};

Value Number(uint64_t n) { return Value::Int64(static_cast<int64_t>(n)); }
Value Micros(Duration duration) { return Number(duration.count() / 1000); }

Result<Rows> ExplainRows(sqlite3* db, const std::shared_ptr<Session>& session,
                         const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(const std::vector<Explain> searches,
                         ExplainSql(db, session, arguments[0]));
  Rows rows;
  for (const Explain& e : searches) {
    std::string terms;
    for (const std::string& term : e.terms) terms += (terms.empty() ? "" : ", ") + term;
    rows.push_back({Number(rows.size() + 1), Value::Text(e.table), Value::Text(e.predicate),
                    Value::Text(e.index), Value::Text(terms), Value::Text(e.reason)});
    for (const Explain::Number& number : Explain::Numbers()) {
      rows.back().push_back(Number(e.*number.value));
    }
    for (const Explain::Time& time : Explain::Times()) {
      rows.back().push_back(Micros(e.*time.value));
    }
  }
  return rows;
}

Result<Rows> RegionRows(sqlite3*, const std::shared_ptr<Session>& session,
                        const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, session->engine->Table(arguments[0]));
  TAMIS_ASSIGN_OR_RETURN(const std::vector<RegionInfo> regions,
                         session->Ask<std::vector<RegionInfo>>([&](Cluster& cluster, auto done) {
                           cluster.ListRegions(schema->name, {}, std::move(done));
                         }));
  const KeyFormat format(*schema);
  const auto text = [&](const std::string& key) {
    return key.empty() ? Value() : Value::Text(format.ToText(key));
  };
  Rows rows;
  for (const RegionInfo& region : regions) {
    rows.push_back({Number(region.id.number()), Number(region.epoch), Value::Bytes(region.start),
                    region.end.empty() ? Value() : Value::Bytes(region.end),
                    region.server.empty() ? Value() : Value::Text(region.server),
                    Number(region.size_bytes), text(region.start), text(region.end)});
  }
  return rows;
}

Result<Rows> IndexRows(sqlite3*, const std::shared_ptr<Session>& session,
                       const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, session->engine->Table(arguments[0]));
  Rows rows;
  for (const IndexSpec& index : schema->indexes) {
    const auto names = [&](const std::vector<uint32_t>& columns) {
      std::string text;
      for (const uint32_t column : columns) {
        text += (text.empty() ? "" : ", ") + schema->columns[column].name;
      }
      return Value::Text(text);
    };
    TAMIS_ASSIGN_OR_RETURN(Value fpr, Value::Double(index.fpr));
    rows.push_back({Value::Text(index.name), names(index.columns), std::move(fpr),
                    Number(index.expected_values), names(index.include),
                    index.IsPartial() ? Value::Text(index.where.ToString(*schema)) : Value(),
                    Number(index.cell_map == nullptr || !IsFitted(*index.cell_map)
                               ? 0
                               : index.cell_map->cells())});
  }
  return rows;
}

Result<Rows> ServerRows(sqlite3*, const std::shared_ptr<Session>& session, const Arguments&) {
  TAMIS_ASSIGN_OR_RETURN(const std::vector<ServerInfo> servers,
                         session->Ask<std::vector<ServerInfo>>([](Cluster& cluster, auto done) {
                           cluster.ListServers(std::move(done));
                         }));
  Rows rows;
  for (const ServerInfo& server : servers) {
    static constexpr const char* kStates[] = {"live", "paused", "dead"};
    rows.push_back({Value::Text(server.name), Value::Text(kStates[static_cast<int>(server.state)]),
                    Number(server.regions)});
  }
  return rows;
}

std::string ExplainColumns() {
  std::string columns =
      "search INTEGER, table_name TEXT, predicate TEXT, \"index\" TEXT, terms TEXT, reason TEXT";
  for (const Explain::Number& number : Explain::Numbers()) {
    columns += ", " + std::string(number.name) + " INTEGER";
  }
  for (const Explain::Time& time : Explain::Times()) {
    columns += ", " + std::string(time.name) + " INTEGER";
  }
  return columns;
}

Result<Rows> RowsOfAggregate(sqlite3*, const std::shared_ptr<Session>& session,
                             const Arguments& arguments) {
  return AggregateRows(session.get(), arguments);
}

Result<Rows> RowsOfGroups(sqlite3* db, const std::shared_ptr<Session>& session,
                          const Arguments& arguments) {
  return GroupedRows(db, session.get(), arguments);
}

const std::vector<Function>& Functions() {
  static const std::vector<Function> functions = {
      {"tamis_explain", ExplainColumns(), {"argument"}, 1, ExplainRows},
      {"tamis_regions",
       "region INTEGER, epoch INTEGER, start_key BLOB, end_key BLOB, server TEXT, size_bytes "
       "INTEGER, start_values TEXT, end_values TEXT",
       {"argument"},
       1,
       RegionRows},
      {"tamis_indexes",
       "name TEXT, columns TEXT, fpr REAL, expected_values INTEGER, included TEXT, condition TEXT, "
       "cells INTEGER",
       {"argument"},
       1,
       IndexRows},
      {"tamis_servers", "server TEXT, state TEXT, regions INTEGER", {}, 0, ServerRows},
      {"tamis_aggregate",
       AggregateColumns(),
       {"of_table", "group_by", "totals", "condition"},
       2,
       RowsOfAggregate},
      {"tamis_grouped",
       GroupedColumns(),
       {"of_table", "group_by", "aggregates", "condition", "statement"},
       5,
       RowsOfGroups,
       GroupedPlace},
  };
  return functions;
}

// ---- One virtual table for all of them

struct Client {
  const Function* function;
  std::shared_ptr<Session> session;
};

struct FunctionTable : sqlite3_vtab {
  sqlite3* db = nullptr;
  const Client* client = nullptr;
};

struct FunctionCursor : sqlite3_vtab_cursor {
  Arguments arguments;
  Rows rows;
  size_t next = 0;
};

FunctionCursor* CursorOf(sqlite3_vtab_cursor* cursor) {
  return static_cast<FunctionCursor*>(cursor);
}

// Eponymous: there is no xCreate, and the arguments are hidden columns.
int Connect(sqlite3* db, void* client, int, const char* const*, sqlite3_vtab** out, char**) {
  const auto* description = static_cast<Client*>(client);
  std::string declaration = "CREATE TABLE x(" + description->function->columns;
  for (const char* argument : description->function->arguments) {
    declaration += std::string(", ") + argument + " TEXT HIDDEN";
  }
  const int rc = sqlite3_declare_vtab(db, (declaration + ")").c_str());
  if (rc != SQLITE_OK) return rc;
  auto* table = new FunctionTable();
  table->db = db;
  table->client = description;
  *out = table;
  return SQLITE_OK;
}

int Disconnect(sqlite3_vtab* table) noexcept {
  delete static_cast<FunctionTable*>(table);
  return SQLITE_OK;
}

// Passes the arguments on, in order; idxNum has a bit for each that is given. Nothing else is
// looked at.
int BestIndex(sqlite3_vtab* vtab, sqlite3_index_info* info) {
  const Function& function = *static_cast<FunctionTable*>(vtab)->client->function;
  info->estimatedCost = 1000;
  info->estimatedRows = 100;
  int given = 0;
  for (size_t argument = 0; argument < function.arguments.size(); ++argument) {
    bool unusable = false;
    bool usable = false;
    for (int i = 0; i < info->nConstraint && !usable; ++i) {
      const auto& constraint = info->aConstraint[i];
      if (constraint.iColumn != function.column_count() + static_cast<int>(argument) ||
          constraint.op != SQLITE_INDEX_CONSTRAINT_EQ) {
        continue;
      }
      usable = constraint.usable != 0;
      unusable |= !usable;
      if (usable) info->aConstraintUsage[i] = {.argvIndex = ++given, .omit = 1};
    }
    if (usable) info->idxNum |= 1 << argument;
    if (!usable && unusable) return SQLITE_CONSTRAINT;
    if (usable || argument >= function.required) continue;
    vtab->zErrMsg = sqlite3_mprintf("%s needs %s", function.name,
                                    function.required == 1 ? "one argument" : "more arguments");
    return SQLITE_ERROR;
  }
  return SQLITE_OK;
}

int Open(sqlite3_vtab*, sqlite3_vtab_cursor** out) {
  *out = new FunctionCursor();
  return SQLITE_OK;
}

int Close(sqlite3_vtab_cursor* cursor) noexcept {
  delete CursorOf(cursor);
  return SQLITE_OK;
}

// An argument that is NULL makes no rows.
int Filter(sqlite3_vtab_cursor* base, int given, const char*, int argc, sqlite3_value** argv) {
  FunctionCursor* cursor = CursorOf(base);
  const auto* table = static_cast<FunctionTable*>(base->pVtab);
  cursor->rows.clear();
  cursor->next = 0;
  cursor->arguments.assign(table->client->function->arguments.size(), "");
  int next = 0;
  for (size_t i = 0; i < cursor->arguments.size() && next < argc; ++i) {
    if ((given >> i & 1) == 0) continue;
    sqlite3_value* value = argv[next++];
    if (sqlite3_value_type(value) == SQLITE_NULL) return SQLITE_OK;
    const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
    cursor->arguments[i] = text == nullptr ? "" : text;
  }
  Status status = table->client->session->CheckOpen();
  if (status.ok()) {
    auto rows = table->client->function->rows(table->db, table->client->session, cursor->arguments);
    status = rows.status();
    if (rows.ok()) cursor->rows = *std::move(rows);
  }
  if (status.ok()) return SQLITE_OK;
  table->client->session->failure = status;
  if (IsOutOfMemory(status)) return SQLITE_NOMEM;
  sqlite3_free(base->pVtab->zErrMsg);
  base->pVtab->zErrMsg = sqlite3_mprintf("%s", status.message().c_str());
  return SQLITE_ERROR;
}

int Next(sqlite3_vtab_cursor* cursor) noexcept {
  ++CursorOf(cursor)->next;
  return SQLITE_OK;
}

int Eof(sqlite3_vtab_cursor* cursor) noexcept {
  return CursorOf(cursor)->next >= CursorOf(cursor)->rows.size();
}

int ColumnValue(sqlite3_vtab_cursor* base, sqlite3_context* context, int column) {
  const FunctionCursor* cursor = CursorOf(base);
  const Function& function = *static_cast<FunctionTable*>(base->pVtab)->client->function;
  const Row& row = cursor->rows[cursor->next];
  if (column >= function.column_count()) {
    ToSqlite(Value::Text(cursor->arguments[column - function.column_count()]), context);
    return SQLITE_OK;
  }
  const auto at = static_cast<size_t>(column);
  const size_t place = function.place == nullptr ? at : function.place(at, row.size());
  if (place < row.size()) {
    ToSqlite(row[place], context);
  } else {
    sqlite3_result_null(context);
  }
  return SQLITE_OK;
}

int RowId(sqlite3_vtab_cursor* cursor, sqlite3_int64* rowid) noexcept {
  *rowid = static_cast<sqlite3_int64>(CursorOf(cursor)->next) + 1;
  return SQLITE_OK;
}

constexpr sqlite3_module kModule = {
    .iVersion = 0,
    .xConnect = Guarded<Connect>,
    .xBestIndex = Guarded<BestIndex>,
    .xDisconnect = Disconnect,
    .xDestroy = Disconnect,
    .xOpen = Guarded<Open>,
    .xClose = Close,
    .xFilter = Guarded<Filter>,
    .xNext = Next,
    .xEof = Eof,
    .xColumn = Guarded<ColumnValue>,
    .xRowid = RowId,
};

// ---- Explain

using Statement =
    std::unique_ptr<sqlite3_stmt,
                    decltype([](sqlite3_stmt* statement) { sqlite3_finalize(statement); })>;
using OwnedDb = std::unique_ptr<sqlite3, decltype([](sqlite3* db) { sqlite3_close_v2(db); })>;

Status SqlError(sqlite3* db, int rc) {
  if ((rc & 0xff) == SQLITE_NOMEM) return OutOfMemory();
  if (rc == SQLITE_INTERRUPT) return Cancelled(sqlite3_errmsg(db));
  return InvalidArgument(sqlite3_errmsg(db));
}

// Prepares `sql`, which must be one statement.
Result<Statement> PrepareOne(sqlite3* db, const std::string& sql) {
  sqlite3_stmt* prepared = nullptr;
  const char* rest = nullptr;
  const int rc =
      sqlite3_prepare_v2(db, sql.c_str(), static_cast<int>(sql.size()), &prepared, &rest);
  Statement statement(prepared);
  if (rc != SQLITE_OK) return SqlError(db, rc);
  const bool more =
      rest != nullptr && std::string_view(rest).find_first_not_of("; \t\r\n") != std::string::npos;
  if (statement == nullptr || more) {
    return InvalidArgument("cannot explain: one statement is needed");
  }
  return statement;
}

Status RunToEnd(sqlite3* db, sqlite3_stmt* statement) {
  int rc = SQLITE_ROW;
  while (rc == SQLITE_ROW) rc = sqlite3_step(statement);
  return rc == SQLITE_DONE ? Status::Ok() : SqlError(db, rc);
}

// While it lives, searches of the session are noted in `searches`.
class NotedSearches {
 public:
  NotedSearches(Session* session, std::vector<Explain>* searches)
      : session_(session), outer_(std::exchange(session->searches, searches)) {
    session_->searches_lost = false;
    ++session_->explains;
  }
  ~NotedSearches() {
    --session_->explains;
    session_->searches = outer_;
  }
  NotedSearches(const NotedSearches&) = delete;
  NotedSearches& operator=(const NotedSearches&) = delete;

 private:
  Session* const session_;
  std::vector<Explain>* const outer_;
};

}  // namespace

int RegisterTableFunctions(sqlite3* db, const std::shared_ptr<Session>& session) {
  for (const Function& function : Functions()) {
    const int rc =
        sqlite3_create_module_v2(db, function.name, &kModule, new Client{&function, session},
                                 [](void* client) { delete static_cast<Client*>(client); });
    if (rc != SQLITE_OK) return rc;
  }
  return SQLITE_OK;
}

Result<std::vector<Explain>> ExplainSql(sqlite3* db, const std::shared_ptr<Session>& session,
                                        const std::string& sql) {
  TAMIS_RETURN_IF_ERROR(session->CheckOpen());
  std::vector<Explain> searches;
  TAMIS_ASSIGN_OR_RETURN(Statement statement, PrepareOne(db, sql));
  if (sqlite3_stmt_readonly(statement.get())) {
    // COMMIT and the like are read-only to SQLite. A view may explain itself.
    constexpr int kDeepest = 4;
    const char* why = sqlite3_column_count(statement.get()) == 0
                          ? "it neither reads nor writes rows"
                      : session->explains >= kDeepest ? "too many statements explain each other"
                                                      : nullptr;
    if (why != nullptr)
      return InvalidArgument(std::string("cannot explain \"") + sql + "\": " + why);
    const NotedSearches noted(session.get(), &searches);
    const Status status = RunToEnd(db, statement.get());
    statement.reset();  // searches that it still makes are noted, too
    TAMIS_RETURN_IF_ERROR(status);
    if (session->searches_lost) return OutOfMemory();
    return searches;
  }
  statement.reset();

  // A connection of its own, whose tables are the store's only: nothing else can be written.
  auto dry = std::make_shared<Session>();
  dry->engine = session->engine;
  dry->admin = session->admin;
  dry->dry_run = true;
  dry->searches = &searches;
  sqlite3* opened = nullptr;
  const int rc =
      sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  const OwnedDb apart(opened);
  Status status =
      rc == SQLITE_OK ? Extend(apart.get(), sqlite3_api, dry) : SqlError(apart.get(), rc);
  if (status.ok()) {
    auto prepared = PrepareOne(apart.get(), sql);
    status = prepared.ok() ? RunToEnd(apart.get(), prepared->get()) : prepared.status();
    status = status.WithContext(
        "cannot explain a statement that writes unless all its tables are in the store");
  }
  TAMIS_RETURN_IF_ERROR(status);
  if (dry->searches_lost) return OutOfMemory();
  return searches;
}

Explain SumOf(const std::vector<Explain>& searches) {
  constexpr size_t kTexts = 8;
  Explain sum;
  for (size_t i = 0; i < searches.size(); ++i) {
    Explain search = searches[i];
    if (i >= kTexts) {
      search.predicate = i == kTexts ? "..." : "";
      search.reason.clear();
      search.terms.clear();
    }
    sum.Add(search);
  }
  return sum;
}

}  // namespace tamis
