#include "tamis/sql/table_module.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <unordered_map>

#include "tamis/base/exception_status.h"
#include "tamis/cluster/hidden_tables.h"
#include "tamis/sql/extension.h"
#include "tamis/sql/guarded.h"
#include "tamis/sql/plan.h"
#include "tamis/sql/replayed_rows.h"
#include "tamis/sql/sql_name.h"
#include "tamis/sql/values.h"
#include "tamis/sql/write_buffer.h"
#include "tamis/table/definition.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

// A row as a statement that writes has read it, and which of its columns it looked at.
struct ReadRow {
  Row row;
  std::vector<bool> looked_at;
};

// A search lasts as long as the statement reads its rows, which may be the outer loop of a long
// join.
constexpr Duration kSearchPatience = std::chrono::hours(1);

struct Table : sqlite3_vtab {
  sqlite3* db = nullptr;
  std::shared_ptr<Session> session;
  SchemaPtr schema;  // the schema that was declared to SQLite
  bool writing = false;
  WriteBuffer writes;
  std::unordered_map<std::string, ReadRow> read;  // by key; only while writing
};

struct Cursor : sqlite3_vtab_cursor {
  std::optional<ReplayedRows> rows;
  bool at_end = true;
  bool reads_keys = false;      // although SQLite did not say so
  std::vector<bool> searched;   // the columns that the search itself compares
  std::vector<bool> looked_at;  // these columns, and those that SQLite has asked for of this row
  std::optional<std::string> remembered;  // the key under which Table::read has the row
  sqlite3_int64 number = 0;
};

Table* TableOf(sqlite3_vtab* vtab) { return static_cast<Table*>(vtab); }
Cursor* CursorOf(sqlite3_vtab_cursor* cursor) { return static_cast<Cursor*>(cursor); }

int ResultCode(const Status& status) {
  if (IsOutOfMemory(status)) return SQLITE_NOMEM;
  switch (status.code()) {
    case StatusCode::kOk:
      return SQLITE_OK;
    case StatusCode::kAlreadyExists:
      return SQLITE_CONSTRAINT;
    case StatusCode::kUnavailable:
    case StatusCode::kBusy:
      return SQLITE_BUSY;
    case StatusCode::kCancelled:
      return SQLITE_INTERRUPT;
    case StatusCode::kDataLoss:
      return SQLITE_CORRUPT_VTAB;
    case StatusCode::kResourceExhausted:
      return SQLITE_FULL;
    default:
      return SQLITE_ERROR;
  }
}

int Fail(sqlite3_vtab* vtab, int rc, const std::string& message) {
  sqlite3_free(vtab->zErrMsg);
  vtab->zErrMsg = sqlite3_mprintf("%s", message.c_str());
  return rc;
}

int Fail(sqlite3_vtab* vtab, const Status& status) {
  if (status.ok()) return SQLITE_OK;
  TableOf(vtab)->session->failure = status;
  return Fail(vtab, ResultCode(status), status.message());
}

// ---- Connecting

std::string Declaration(const TableSchema& schema) {
  std::string out = "CREATE TABLE x(";
  for (const Column& column : schema.columns) {
    out += QuotedName(column.name) + " " + std::string(SqlType(column.type)) +
           (column.is_computed() ? " HIDDEN" : "") + (column.nullable ? ", " : " NOT NULL, ");
  }
  return out + "tamis_key BLOB HIDDEN PRIMARY KEY NOT NULL) WITHOUT ROWID";
}

// The table as the arguments define it; without arguments, as it is.
Result<SchemaPtr> FindOrCreate(Session* session, const std::string& name,
                               const std::vector<std::string>& parts, bool create) {
  TAMIS_RETURN_IF_ERROR(session->CheckOpen());
  Engine* engine = session->engine.get();
  auto existing = engine->Table(name);
  if (!existing.ok() && existing.status().code() != StatusCode::kNotFound) return existing.status();
  if (parts.empty() || !create) {
    if (existing.ok()) return existing;
    return NotFound("there is no table \"" + name +
                    "\" in the store; make it with CREATE VIRTUAL TABLE " + name +
                    " USING tamis(COLUMN TYPE, ..., key (COLUMN, ...), index NAME (COLUMN, ...))");
  }
  TAMIS_ASSIGN_OR_RETURN(const TableSchema wanted, ParseDefinition(name, parts));
  return session->Define(wanted);
}

int Connect(sqlite3* db, void* client, int argc, const char* const* argv, sqlite3_vtab** out,
            char** error, bool create) {
  const auto& session = *static_cast<std::shared_ptr<Session>*>(client);
  std::vector<std::string> parts;
  for (int i = 3; i < argc; ++i) {
    if (argv[i][0] != '\0') parts.emplace_back(argv[i]);
  }
  std::string name = argv[2];
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  auto schema = FindOrCreate(session.get(), name, parts, create);
  if (!schema.ok()) {
    *error = sqlite3_mprintf("%s", schema.status().message().c_str());
    return SQLITE_ERROR;
  }
  int rc = sqlite3_declare_vtab(db, Declaration(**schema).c_str());
  if (rc == SQLITE_OK) rc = sqlite3_vtab_config(db, SQLITE_VTAB_CONSTRAINT_SUPPORT, 1);
  if (rc != SQLITE_OK) {
    *error = sqlite3_mprintf("cannot declare table \"%s\": %s", name.c_str(), sqlite3_errmsg(db));
    return rc;
  }
  auto table = std::make_unique<Table>();
  table->db = db;
  table->session = session;
  table->schema = *std::move(schema);
  session->declared[name] = table->schema;
  session->write_buffers.insert(&table->writes);
  *out = table.release();
  return SQLITE_OK;
}

// xCreate, for CREATE VIRTUAL TABLE: makes the table in the store if it is not there, and declares
// its columns. An error leaves nothing behind in SQLite's schema.
int Create(sqlite3* db, void* client, int argc, const char* const* argv, sqlite3_vtab** out,
           char** error) {
  return Connect(db, client, argc, argv, out, error, true);
}

// xConnect: the table stands in SQLite's schema already. Finds it in the store and declares its
// columns; never makes it.
int ConnectExisting(sqlite3* db, void* client, int argc, const char* const* argv,
                    sqlite3_vtab** out, char** error) {
  return Connect(db, client, argc, argv, out, error, false);
}

// xDisconnect: the connection closes, or forgets the table. Changes nothing in the store.
int Disconnect(sqlite3_vtab* vtab) noexcept {
  Table* table = TableOf(vtab);
  table->session->write_buffers.erase(&table->writes);
  delete table;
  return SQLITE_OK;
}

// xDestroy, for DROP TABLE: the table stays in the store. Refused while writes wait for COMMIT,
// which would be lost.
int Destroy(sqlite3_vtab* vtab) noexcept {
  return TableOf(vtab)->writes.size() > 0 ? SQLITE_LOCKED : Disconnect(vtab);
}

// ---- Reading

// Whether rows of `current` have the columns and the key that were declared to SQLite.
bool FitsDeclaration(const TableSchema& declared, const TableSchema& current) {
  if (current.columns.size() < declared.columns.size()) return false;
  for (size_t i = 0; i < declared.columns.size(); ++i) {
    const Column& a = declared.columns[i];
    const Column& b = current.columns[i];
    if (a.name != b.name || a.type != b.type || a.nullable != b.nullable ||
        a.expression != b.expression) {
      return false;
    }
  }
  return declared.key == current.key;
}

// The schema as it is now, for its indexes and version. The columns that were declared keep their
// places: columns are only added, after them. A table that was dropped and created again, or
// detached and attached again, takes the place of the one before if its columns fit, but not within
// a transaction that has read or written that one.
Result<SchemaPtr> CurrentSchema(Table* table) {
  TAMIS_RETURN_IF_ERROR(table->session->CheckOpen());
  TAMIS_ASSIGN_OR_RETURN(SchemaPtr current, table->session->engine->Table(table->schema->name));
  if (current->id == table->schema->id) return current;
  const std::string what = "table \"" + table->schema->name + "\" was dropped and created again";
  if (table->writes.size() > 0 || !table->read.empty()) {
    return FailedPrecondition(what + " since this transaction began; begin it again");
  }
  if (!FitsDeclaration(*table->schema, *current)) {
    return FailedPrecondition(what + " with other columns; open the store again");
  }
  TableSchema declared = *current;
  declared.columns.resize(table->schema->columns.size());
  table->schema = std::make_shared<const TableSchema>(std::move(declared));
  return current;
}

// xBestIndex: SQLite offers conditions, an order and a limit. Chooses the ones that the search will
// apply and estimates its cost and rows. A condition is omitted from SQLite's own check only where
// the search evaluates it exactly as SQLite does.
int BestIndex(sqlite3_vtab* vtab, sqlite3_index_info* info) {
  Table* table = TableOf(vtab);
  auto current = CurrentSchema(table);
  if (!current.ok()) return Fail(vtab, current.status());
  TableSchema declared = **current;
  declared.columns.resize(table->schema->columns.size());
  const auto size = static_cast<ptrdiff_t>(declared.columns.size());
  std::erase_if(declared.indexes, [&](const IndexSpec& index) {
    std::vector<bool> used((*current)->columns.size());
    for (const uint32_t column : index.columns) used[column] = true;
    index.where.AddColumns(&used);
    return std::find(used.begin() + size, used.end(), true) != used.end();
  });
  const SqlPlan plan = MakeSqlPlan(table->session.get(), declared, info);
  info->idxStr = sqlite3_mprintf("%s", plan.ToString(declared).c_str());
  info->needToFreeIdxStr = 1;
  return info->idxStr == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

// xOpen: makes a cursor; xFilter begins its search.
int Open(sqlite3_vtab*, sqlite3_vtab_cursor** out) {
  *out = new Cursor();
  return SQLITE_OK;
}

void EndSearch(Cursor* cursor) {
  if (!cursor->rows) return;
  Session* session = TableOf(cursor->pVtab)->session.get();
  if (session->searches != nullptr) session->Note(cursor->rows->explain());
  cursor->rows.reset();
}

// xClose: ends the search of the cursor, also one with rows left. SQLite ignores the result.
int Close(sqlite3_vtab_cursor* cursor) noexcept {
  Session* session = TableOf(cursor->pVtab)->session.get();
  session->searches_lost |= !WithoutExceptions([&] {
                               EndSearch(CursorOf(cursor));
                               return Status::Ok();
                             }).ok();
  delete CursorOf(cursor);
  return SQLITE_OK;
}

// xNext: moves to the next row that the search returns, each row once, or to the end.
int Next(sqlite3_vtab_cursor* base) {
  Cursor* cursor = CursorOf(base);
  Table* table = TableOf(base->pVtab);
  cursor->remembered.reset();
  cursor->looked_at = cursor->searched;
  ++cursor->number;
  const Status moved = cursor->rows->Next();
  cursor->at_end = !moved.ok() || cursor->rows->AtEnd();
  if (!moved.ok()) return Fail(base->pVtab, moved);
  if (cursor->at_end) {
    EndSearch(cursor);
    return SQLITE_OK;
  }
  if (table->writes.size() == 0) return SQLITE_OK;
  if (const Status status = cursor->rows->NeedKey(); !status.ok()) return Fail(table, status);
  const auto key = KeyFormat(*table->schema).Encode(cursor->rows->row());
  if (!key.ok()) return Fail(base->pVtab, key.status());
  if (table->writes.Holds(*key)) {
    return Fail(
        base->pVtab, SQLITE_BUSY,
        "table \"" + table->schema->name +
            "\": the statement reads a row that this transaction has written; its writes are "
            "sent at COMMIT, so commit first");
  }
  return SQLITE_OK;
}

// xFilter: begins the search that xBestIndex planned (plan_text), with the values of its
// conditions, and moves to the first row. Called again for each outer row of a join.
int Filter(sqlite3_vtab_cursor* base, int, const char* plan_text, int argc, sqlite3_value** argv) {
  Cursor* cursor = CursorOf(base);
  Table* table = TableOf(base->pVtab);
  EndSearch(cursor);
  cursor->at_end = true;
  auto current = CurrentSchema(table);
  if (!current.ok()) return Fail(base->pVtab, current.status());
  SqlPlan plan = SqlPlan::Parse(plan_text);
  auto options = MakeSearch(plan, *table->schema, argc, argv);
  if (!options.ok()) return Fail(base->pVtab, options.status());
  cursor->searched.assign(table->schema->columns.size(), false);
  for (const SqlPlan::Term& term : plan.terms) {
    if (term.OnColumn()) cursor->searched[term.column] = true;
  }
  // A statement that writes is checked against all that it has read.
  if (table->writing) options->columns.reset();
  if (table->writing || table->writes.size() > 0 || cursor->reads_keys || !table->session->groups) {
    options->groups = SearchOptions::Groups::kNone;
  }
  options->cancelled = &table->session->cancelled;
  options->timeout = kSearchPatience;
  options->explained_regions = table->session->explained_regions;
  cursor->rows.emplace(table->session->engine.get(), *current, *std::move(options),
                       ReplayedRows::Needs{.each_once = plan.each_once,
                                           .most_gathered = table->session->most_gathered_groups});
  cursor->number = 0;
  return Next(base);
}

// xEof: true once the search has no more rows, or has failed.
int Eof(sqlite3_vtab_cursor* cursor) noexcept { return CursorOf(cursor)->at_end; }

// Remembers the row for the UPDATE or DELETE that is about to come.
int Remember(Cursor* cursor, const std::string& key) {
  Table* table = TableOf(cursor->pVtab);
  if (table->read.size() >= WriteBuffer::kMaxTransactionWrites && !table->read.contains(key)) {
    return Fail(table, SQLITE_FULL,
                "the statement changes more than " +
                    std::to_string(WriteBuffer::kMaxTransactionWrites) +
                    " rows; change them in parts, by a range of the key");
  }
  ReadRow read{.row = cursor->rows->row(), .looked_at = cursor->looked_at};
  cursor->remembered = key;
  table->read.insert_or_assign(key, std::move(read));
  return SQLITE_OK;
}

// xColumn: the value of a column of the current row, or its encoded key (the hidden column). While
// the statement writes, notes which columns it looks at.
int ColumnValue(sqlite3_vtab_cursor* base, sqlite3_context* context, int column) {
  Cursor* cursor = CursorOf(base);
  Table* table = TableOf(base->pVtab);
  const auto position = static_cast<uint32_t>(column);
  if (position >= table->schema->columns.size() || table->schema->IsKey(position)) {
    if (const Status status = cursor->rows->NeedKey(); !status.ok()) return Fail(table, status);
    cursor->reads_keys |= cursor->rows->needed_key();
  }
  if (position >= table->schema->columns.size()) {
    const auto key = KeyFormat(*table->schema).Encode(cursor->rows->row());
    if (!key.ok()) return Fail(table, key.status());
    if (table->writing) {
      if (const int rc = Remember(cursor, *key); rc != SQLITE_OK) return rc;
    }
    sqlite3_result_blob64(context, key->data(), key->size(), SQLITE_TRANSIENT);
    return SQLITE_OK;
  }
  // UPDATE asks for the columns that it does not set; they are not sent back.
  if (sqlite3_vtab_nochange(context) && !table->schema->IsKey(position)) return SQLITE_OK;
  cursor->looked_at[position] = true;
  if (cursor->remembered) {
    const auto read = table->read.find(*cursor->remembered);
    if (read != table->read.end()) read->second.looked_at[position] = true;
  }
  ToSqlite(cursor->rows->row()[position], context);
  return SQLITE_OK;
}

// xRowid: never called, since the table is WITHOUT ROWID.
int RowId(sqlite3_vtab_cursor* cursor, sqlite3_int64* rowid) noexcept {
  *rowid = CursorOf(cursor)->number;
  return SQLITE_OK;
}

// ---- Writing

struct Change {
  enum class Kind { kInsert, kUpdate, kDelete };
  Kind kind = Kind::kInsert;
  std::string old_key;                 // kUpdate, kDelete
  Row row;                             // the new values
  std::vector<uint32_t> columns;       // kUpdate: the positions that were set
  std::optional<Predicate> condition;  // that the row is as it was read
  std::string conflict;
};

std::string UniqueViolation(const TableSchema& schema) {
  std::string out = "UNIQUE constraint failed: ";
  for (const uint32_t column : schema.key) {
    if (column != schema.key.front()) out += ", ";
    out += schema.name + "." + schema.columns[column].name;
  }
  return out;
}

// "The columns that the statement looked at are still what they were."
Predicate AsRead(const ReadRow& read) {
  std::vector<Predicate> conditions;
  for (uint32_t i = 0; i < read.looked_at.size(); ++i) {
    if (!read.looked_at[i]) continue;
    conditions.push_back(read.row[i].is_null()
                             ? Predicate::IsNull(i)
                             : Predicate::Compare(i, Predicate::Op::kEq, read.row[i]));
  }
  return Predicate::And(std::move(conditions));
}

// A computed column cannot be set. An UPDATE ... FROM hands over the value that the row has.
Status CheckComputed(const TableSchema& schema, uint32_t position, const Value& before,
                     sqlite3_value* argument) {
  const Column& column = schema.columns[position];
  const auto value = ConvertForColumn(column, FromSqlite(argument));
  if (value.ok() && *value == before) return Status::Ok();
  return InvalidArgument(
      "table \"" + schema.name + "\": column \"" + column.name +
      "\" cannot be set, since it is computed as " +
      column.expression->ToString(schema.columns[column.expression->source].name));
}

// Reads xUpdate's arguments: old key, new key, columns, hidden column.
Result<Change> ReadChange(Table* table, int argc, sqlite3_value** argv) {
  const TableSchema& schema = *table->schema;
  Change change{.conflict = UniqueViolation(schema)};
  change.row.resize(schema.columns.size());
  if (sqlite3_value_type(argv[0]) != SQLITE_NULL) {
    change.kind = argc == 1 ? Change::Kind::kDelete : Change::Kind::kUpdate;
    change.old_key = FromSqlite(argv[0]).str();
    const auto read = table->read.find(change.old_key);
    if (read != table->read.end()) {
      change.condition = AsRead(read->second);
      change.row = std::move(read->second.row);
      change.row.resize(schema.columns.size());
      table->read.erase(read);
    } else {
      TAMIS_RETURN_IF_ERROR(KeyFormat(schema).Decode(change.old_key, &change.row));
    }
  }
  if (argc == 1) return change;
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    sqlite3_value* argument = argv[2 + i];
    if (sqlite3_value_nochange(argument)) continue;
    const Column& column = schema.columns[i];
    if (column.is_computed()) {
      TAMIS_RETURN_IF_ERROR(CheckComputed(schema, i, change.row[i], argument));
      continue;
    }
    auto value = ConvertForColumn(column, FromSqlite(argument));
    if (!value.ok()) return value.status().WithContext("table \"" + schema.name + "\"");
    if (value->is_null() && !column.nullable) {
      return AlreadyExists("NOT NULL constraint failed: " + schema.name + "." + column.name);
    }
    change.row[i] = *std::move(value);
    if (change.kind == Change::Kind::kUpdate && !schema.IsKey(i)) change.columns.push_back(i);
  }
  return change;
}

Status Add(Table* table, const std::string& key, Write write, const WriteBuffer::Options& options) {
  const bool transaction = sqlite3_get_autocommit(table->db) == 0;
  if (transaction && table->writes.size() >= WriteBuffer::kMaxTransactionWrites) {
    return ResourceExhausted("a transaction holds at most " +
                             std::to_string(WriteBuffer::kMaxTransactionWrites) +
                             " writes of a table; COMMIT more often");
  }
  table->writes.Add(key, std::move(write), options);
  return Status::Ok();
}

// Rows that a statement sends at once while it runs.
constexpr size_t kStatementBatch = 1000;

Status Apply(Table* table, Change change) {
  const TableSchema& schema = *table->schema;
  const int on_conflict = sqlite3_vtab_on_conflict(table->db);
  const bool replace = on_conflict == SQLITE_REPLACE;
  std::string key = change.old_key;
  if (change.kind != Change::Kind::kDelete) {
    TAMIS_ASSIGN_OR_RETURN(key, KeyFormat(schema).Encode(change.row));
  }
  WriteBuffer::Options options{.conflict = change.conflict};
  const bool transaction = sqlite3_get_autocommit(table->db) == 0;
  const auto insert = [&]() -> Status {
    options.ignore_existing = transaction && on_conflict == SQLITE_IGNORE;
    if (transaction && !replace) {
      const auto last = table->writes.LastKind(key);
      if (last && *last != Write::Kind::kDelete) return AlreadyExists(change.conflict);
    }
    return Add(
        table, key,
        {.kind = replace ? Write::Kind::kPut : Write::Kind::kInsert, .row = std::move(change.row)},
        options);
  };
  const auto erase = [&](bool only_after_previous) {
    Row old(schema.columns.size());
    TAMIS_RETURN_IF_ERROR(KeyFormat(schema).Decode(change.old_key, &old));
    return Add(table, change.old_key,
               {.kind = Write::Kind::kDelete, .row = std::move(old), .condition = change.condition},
               {.conflict = change.conflict, .only_after_previous = only_after_previous});
  };

  const auto send = [&]() -> Status {
    TAMIS_ASSIGN_OR_RETURN(const SchemaPtr current, CurrentSchema(table));
    return table->writes.Send(table->session->engine.get(), current, table->session->cancelled);
  };
  switch (change.kind) {
    case Change::Kind::kDelete:
      TAMIS_RETURN_IF_ERROR(erase(false));
      break;
    case Change::Kind::kInsert:
      TAMIS_RETURN_IF_ERROR(insert());
      // SQLite counts the row as changed unless the conflict is reported now.
      if (!transaction && on_conflict == SQLITE_IGNORE) return send();
      break;
    case Change::Kind::kUpdate:
      if (key == change.old_key) {
        if (change.columns.empty()) return Status::Ok();
        TAMIS_RETURN_IF_ERROR(Add(table, key,
                                  {.kind = Write::Kind::kUpdate,
                                   .row = std::move(change.row),
                                   .columns = std::move(change.columns),
                                   .condition = std::move(change.condition)},
                                  options));
        break;
      }
      // The row moves: it must stand in its new place before it leaves the old one.
      if (!transaction && table->writes.size() > 0) TAMIS_RETURN_IF_ERROR(send());
      TAMIS_RETURN_IF_ERROR(insert());
      if (!transaction) TAMIS_RETURN_IF_ERROR(send());
      TAMIS_RETURN_IF_ERROR(erase(transaction));
      break;
  }
  if (!transaction && table->writes.size() >= kStatementBatch) return send();
  return Status::Ok();
}

// INSERT OR IGNORE ... RETURNING is running. SQLite would return the rows that are not inserted,
// too: it goes on to RETURNING whatever xUpdate says. A statement that writes has columns only for
// RETURNING.
bool IgnoresAndReturns(sqlite3* db) {
  if (sqlite3_vtab_on_conflict(db) != SQLITE_IGNORE) return false;
  for (sqlite3_stmt* s = sqlite3_next_stmt(db, nullptr); s; s = sqlite3_next_stmt(db, s)) {
    if (sqlite3_stmt_busy(s) != 0 && sqlite3_stmt_readonly(s) == 0 && sqlite3_column_count(s) > 0 &&
        sqlite3_strlike("%ignore%", sqlite3_sql(s), 0) == 0) {
      return true;
    }
  }
  return false;
}

// xUpdate: one INSERT, UPDATE or DELETE of a row. Puts the write into the buffer, which xSync
// sends; outside of a transaction a full batch is sent at once.
int Update(sqlite3_vtab* vtab, int argc, sqlite3_value** argv, sqlite3_int64*) {
  Table* table = TableOf(vtab);
  if (table->session->dry_run) return SQLITE_OK;
  if (IgnoresAndReturns(table->db)) {
    return Fail(vtab, SQLITE_ERROR,
                "RETURNING is not available for INSERT OR IGNORE on tables of a store: it would "
                "return rows that are not inserted, too");
  }
  auto change = ReadChange(table, argc, argv);
  if (!change.ok()) {
    const bool mismatch = change.status().code() == StatusCode::kInvalidArgument;
    return Fail(vtab, mismatch ? SQLITE_MISMATCH : ResultCode(change.status()),
                change.status().message());
  }
  return Fail(vtab, Apply(table, *std::move(change)));
}

// xBegin: a statement that writes begins, or the first one of a transaction.
int Begin(sqlite3_vtab* vtab) {
  Table* table = TableOf(vtab);
  table->writing = true;
  table->read.clear();
  return SQLITE_OK;
}

// The statement or transaction ends well: what is left is sent now, while it can still fail. After
// plain SQLITE_BUSY SQLite would leave the transaction open, to COMMIT it again; its writes are
// gone by then, so that the next COMMIT would say that all is well.
// xSync: COMMIT asks whether it may commit. Sends the writes that wait; an error ends the
// transaction, and writes that were sent before it stand.
int Sync(sqlite3_vtab* vtab) {
  Table* table = TableOf(vtab);
  if (table->writes.size() == 0) return SQLITE_OK;
  const auto current = CurrentSchema(table);
  const Status status = current.ok() ? table->writes.Send(table->session->engine.get(), *current,
                                                          table->session->cancelled)
                                     : current.status();
  const int rc = Fail(vtab, status);
  return rc == SQLITE_BUSY ? SQLITE_BUSY_SNAPSHOT : rc;
}

// xCommit: the transaction is over; its writes were sent by xSync. Cannot fail.
int Commit(sqlite3_vtab* vtab) noexcept {
  Table* table = TableOf(vtab);
  assert(table->writes.size() == 0);
  table->writing = false;
  table->read.clear();
  return SQLITE_OK;
}

// xRollback: drops the writes that wait.
int Rollback(sqlite3_vtab* vtab) noexcept {
  Table* table = TableOf(vtab);
  table->writes.Clear();
  table->writing = false;
  table->read.clear();
  return SQLITE_OK;
}

// xRename, for ALTER TABLE ... RENAME TO: refused. SQLite finds the table of the store by its own
// name for it. Without this method it would change its own name alone. After an error it undoes
// that.
int Rename(sqlite3_vtab* vtab, const char* name) {
  const std::string& table = TableOf(vtab)->schema->name;
  return Fail(vtab, SQLITE_ERROR,
              "cannot rename table \"" + table + "\" to \"" + name +
                  "\": a table of a store keeps its name; CREATE TEMP VIEW \"" + name +
                  "\" AS SELECT * FROM \"" + table + "\" gives it another one to read by");
}

// xSavepoint: marks how many writes wait. SQLite also makes savepoints of its own, one for each
// statement inside a transaction.
int Savepoint(sqlite3_vtab* vtab, int number) {
  TableOf(vtab)->writes.Savepoint(number);
  return SQLITE_OK;
}

// xRelease: forgets the savepoint and the later ones; their writes stay.
int Release(sqlite3_vtab* vtab, int number) noexcept {
  TableOf(vtab)->writes.Release(number);
  return SQLITE_OK;
}

// xRollbackTo: drops the writes since the savepoint.
int RollbackTo(sqlite3_vtab* vtab, int number) noexcept {
  TableOf(vtab)->writes.RollbackTo(number);
  return SQLITE_OK;
}

constexpr sqlite3_module kModule = {
    .iVersion = 3,
    .xCreate = Guarded<Create>,
    .xConnect = Guarded<ConnectExisting>,
    .xBestIndex = Guarded<BestIndex>,
    .xDisconnect = Disconnect,
    .xDestroy = Destroy,
    .xOpen = Guarded<Open>,
    .xClose = Close,
    .xFilter = Guarded<Filter>,
    .xNext = Guarded<Next>,
    .xEof = Eof,
    .xColumn = Guarded<ColumnValue>,
    .xRowid = RowId,
    .xUpdate = Guarded<Update>,
    .xBegin = Guarded<Begin>,
    .xSync = Guarded<Sync>,
    .xCommit = Commit,
    .xRollback = Rollback,
    .xRename = Guarded<Rename>,
    .xSavepoint = Guarded<Savepoint>,
    .xRelease = Release,
    .xRollbackTo = RollbackTo,
};

// The module of one table under the table's name: SQLite connects it when a statement names it. So
// a table that this user may not see gives the reason instead of "no such table".
constexpr sqlite3_module kHiddenModule = [] {
  sqlite3_module module = kModule;
  module.xCreate = nullptr;
  module.xDestroy = nullptr;
  return module;
}();

// `sql` asks for the name ?1.
bool Finds(sqlite3* db, const std::string& sql, const std::string& table) {
  sqlite3_stmt* statement = nullptr;
  bool exists = false;
  if (sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK) {
    sqlite3_bind_text(statement, 1, table.c_str(), -1, SQLITE_TRANSIENT);
    exists = sqlite3_step(statement) == SQLITE_ROW;
  }
  sqlite3_finalize(statement);
  return exists;
}

bool Exists(sqlite3* db, const std::string& table) {
  return Finds(db,
               "SELECT 1 FROM sqlite_schema WHERE lower(name) = ?1 UNION ALL "
               "SELECT 1 FROM sqlite_temp_schema WHERE lower(name) = ?1",
               table);
}

int RegisterModule(sqlite3* db, const char* name, const sqlite3_module* module,
                   const std::shared_ptr<Session>& session) {
  return sqlite3_create_module_v2(
      db, name, module, new std::shared_ptr<Session>(session),
      [](void* client) { delete static_cast<std::shared_ptr<Session>*>(client); });
}

Status AttachHiddenTables(sqlite3* db, const std::shared_ptr<Session>& session) {
  auto* const hides = dynamic_cast<HiddenTables*>(&session->engine->cluster());
  if (hides == nullptr) return Status::Ok();
  const auto hidden = session->Ask<std::vector<std::string>>(
      [&](Cluster&, auto done) { hides->ListHiddenTables(std::move(done)); });
  // Without the names, the error for such a table is SQLite's own.
  if (!hidden.ok()) return IsOutOfMemory(hidden.status()) ? hidden.status() : Status::Ok();
  for (const std::string& table : *hidden) {
    if (Finds(db, "SELECT 1 FROM pragma_module_list WHERE lower(name) = lower(?1)", table)) {
      continue;
    }
    if (RegisterModule(db, table.c_str(), &kHiddenModule, session) == SQLITE_NOMEM) {
      return OutOfMemory();
    }
  }
  return Status::Ok();
}

}  // namespace

int RegisterTableModule(sqlite3* db, const std::shared_ptr<Session>& session) {
  return RegisterModule(db, "tamis", &kModule, session);
}

Status AttachTables(sqlite3* db, const std::shared_ptr<Session>& session) {
  TAMIS_RETURN_IF_ERROR(session->CheckOpen());
  TAMIS_ASSIGN_OR_RETURN(const std::vector<TableSchema> tables,
                         session->Ask<std::vector<TableSchema>>([](Cluster& cluster, auto done) {
                           cluster.ListTables(std::move(done));
                         }));
  for (const TableSchema& table : tables) {
    if (Exists(db, table.name)) continue;
    const std::string sql = "CREATE VIRTUAL TABLE temp." + QuotedName(table.name) + " USING tamis";
    char* error = nullptr;
    const int rc = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error);
    const std::string message = error != nullptr ? error : "SQLite error " + std::to_string(rc);
    sqlite3_free(error);
    if (rc == SQLITE_NOMEM) return OutOfMemory();
    if (rc != SQLITE_OK) {
      return Internal("cannot attach table \"" + table.name + "\": " + message);
    }
  }
  return AttachHiddenTables(db, session);
}

}  // namespace tamis
