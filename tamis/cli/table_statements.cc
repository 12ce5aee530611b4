#include "tamis/cli/table_statements.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "tamis/cli/scratch_database.h"
#include "tamis/cli/sql_text.h"
#include "tamis/sql/sql_name.h"

namespace tamis {
namespace {

// The effect that the statement being prepared would have.
struct Intent {
  int action = 0;  // a code of SQLite's authorizer; 0: none that matters here
  std::string name;
  bool selects = false;
};

int Note(void* client, int action, const char* name, const char* module, const char* database,
         const char*) noexcept {
  auto* intent = static_cast<Intent*>(client);
  if (action == SQLITE_SELECT) intent->selects = true;
  const bool lost = database != nullptr && std::strcmp(database, "main") == 0;
  const bool ours = module != nullptr && sqlite3_stricmp(module, "tamis") == 0;
  const bool matters =
      (lost && (action == SQLITE_CREATE_TABLE || action == SQLITE_CREATE_VIEW ||
                action == SQLITE_CREATE_TRIGGER || (action == SQLITE_CREATE_VTABLE && !ours))) ||
      (action == SQLITE_DROP_VTABLE && ours);
  if (!matters || intent->action != 0) return SQLITE_OK;
  try {
    intent->name = name == nullptr ? "" : name;
  } catch (const std::bad_alloc&) {
    return SQLITE_DENY;
  }
  intent->action = action;
  return SQLITE_OK;
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// VACUUM INTO makes a file that looks like a copy and holds no row of the store.
Status RefuseToCopy(const std::vector<std::string>& words) {
  if (words.empty() || words[0] != "VACUUM") return Status::Ok();
  const bool own = words.size() > 2 && (words[1] == "MAIN" || words[1] == "TEMP");
  if (words.size() < 2 || words[own ? 2 : 1] != "INTO") return Status::Ok();
  return InvalidArgument(
      "cannot VACUUM INTO a file: it would hold no table of the store; write ATTACH 'FILE' AS "
      "copy, "
      "and for each table CREATE TABLE copy.NAME AS SELECT * FROM NAME");
}

Result<std::vector<TableSchema>> TablesOf(Session* session) {
  if (session->engine == nullptr) return std::vector<TableSchema>();  // no store yet
  return session->Tables();
}

}  // namespace

bool TableStatements::MakesTable(const std::string& sql) {
  for (const char* rest = sql.c_str(); *rest != '\0';) {
    const std::string_view statement = FirstStatement(rest);
    const auto words = SqlWords(statement, 2);
    if (words.size() == 2 && words[0] == "CREATE" &&
        (words[1] == "TABLE" || words[1] == "VIRTUAL")) {
      return true;
    }
    rest += statement.size();
  }
  return false;
}

Result<std::optional<const char*>> TableStatements::Run(const char* sql) {
  const auto words = SqlWords(sql, 3);
  TAMIS_RETURN_IF_ERROR(RefuseToCopy(words));
  const bool alters = words.size() >= 2 && words[0] == "ALTER" && words[1] == "TABLE";
  if (words.size() < 2 || (words[0] != "CREATE" && words[0] != "DROP" && !alters)) {
    return std::optional<const char*>();
  }
  const std::string_view first = FirstStatement(sql);
  const std::string text(first);
  const char* const rest = sql + first.size();
  const bool of_index =
      words[1] == "INDEX" || (words[1] == "UNIQUE" && words.size() > 2 && words[2] == "INDEX");

  Intent intent;
  sqlite3_set_authorizer(db_, Note, &intent);
  sqlite3_stmt* statement = nullptr;
  const int rc = sqlite3_prepare_v2(db_, text.c_str(), -1, &statement, nullptr);
  sqlite3_set_authorizer(db_, nullptr, nullptr);
  sqlite3_finalize(statement);

  if (alters) {
    // SQLite can do it: the table is one of its own, or its module says why not.
    if (rc != SQLITE_OK) TAMIS_RETURN_IF_ERROR(RefuseToAlter(text));
    return std::optional<const char*>();
  }
  bool done = false;
  if (of_index) {
    // SQLite can do it: the table is one of its own.
    if (rc == SQLITE_OK && words[0] == "CREATE") return std::optional<const char*>();
    TAMIS_RETURN_IF_ERROR(words[0] == "CREATE" ? CreateIndex(text, &done) : DropIndex(text, &done));
    return done ? std::optional(rest) : std::optional<const char*>();
  }
  if (rc != SQLITE_OK) return std::optional<const char*>();  // it will say why
  const auto refuse = [&](const std::string& what, const std::string& instead) {
    return InvalidArgument("cannot create " + what + " \"" + intent.name +
                           "\": a store keeps none, and it would end with this program; " +
                           instead);
  };
  switch (intent.action) {
    case SQLITE_CREATE_TABLE:
      if (intent.selects) {
        return InvalidArgument("cannot create table \"" + intent.name +
                               "\" from a SELECT: a table of the store needs a key; write CREATE "
                               "TABLE " +
                               intent.name + "(..., PRIMARY KEY (...)), then INSERT INTO " +
                               intent.name + " SELECT ...; or CREATE TEMP TABLE");
      }
      TAMIS_RETURN_IF_ERROR(CreateTable(text));
      return std::optional(rest);
    case SQLITE_DROP_VTABLE:
      TAMIS_RETURN_IF_ERROR(DropTable(LowerCase(intent.name), text));
      return std::optional(rest);
    case SQLITE_CREATE_VIEW:
      return refuse("view", "write CREATE TEMP VIEW for one that does");
    case SQLITE_CREATE_TRIGGER:
      return refuse("trigger", "write CREATE TEMP TRIGGER for one that does");
    case SQLITE_CREATE_VTABLE:
      return refuse("table",
                    "write CREATE VIRTUAL TABLE temp." + intent.name + " for one that does");
    default:
      return std::optional<const char*>();
  }
}

// Ok where the statement is not about a table of the store.
Status TableStatements::RefuseToAlter(const std::string& sql) {
  TAMIS_ASSIGN_OR_RETURN(const std::vector<TableSchema> tables, TablesOf(session_.get()));
  ScratchDatabase scratch;
  TAMIS_RETURN_IF_ERROR(scratch.Mirror(tables, false));
  if (!scratch.Run(sql).ok()) return Status::Ok();  // SQLite will say why
  for (const TableSchema& table : tables) {
    const auto columns = scratch.Rows("PRAGMA table_xinfo(" + QuotedName(table.name) + ")");
    std::vector<Column> shown = table.columns;
    std::erase_if(shown, &Column::is_dropped);
    std::string instead;
    if (columns.size() > shown.size()) {
      const auto type = TypeOfDeclaration(columns.back()[2]);
      instead = "write: tamis table add-column " + table.name + " " + LowerCase(columns.back()[1]) +
                ":" + std::string(TypeName(type.value_or(Type::kText)));
    } else if (const auto [kept, changed] = std::ranges::mismatch(
                   columns, shown, {}, [](const ScratchDatabase::Row& row) { return row[1]; },
                   &Column::name);
               columns.size() + 1 == shown.size() && changed->is_computed()) {
      instead = "write: tamis table drop-column " + table.name + " " + changed->name;
    } else if (changed != shown.end()) {
      instead =
          "a table of a store keeps its columns; make another one by CREATE TABLE, and fill it by "
          "INSERT INTO ... SELECT";
    }
    if (instead.empty()) continue;
    return InvalidArgument("cannot alter table \"" + table.name + "\" in SQL: " + instead);
  }
  return Status::Ok();
}

Status TableStatements::Execute(const std::string& sql) {
  const int rc = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  return rc == SQLITE_OK ? Status::Ok() : Internal(sqlite3_errmsg(db_));
}

bool TableStatements::IsFree(const std::string& name) const {
  sqlite3_stmt* statement = nullptr;
  bool found = false;
  if (sqlite3_prepare_v2(db_, "SELECT 1 FROM sqlite_temp_schema WHERE lower(name) = ?", -1,
                         &statement, nullptr) == SQLITE_OK) {
    sqlite3_bind_text(statement, 1, name.c_str(), -1, SQLITE_TRANSIENT);
    found = sqlite3_step(statement) == SQLITE_ROW;
  }
  sqlite3_finalize(statement);
  return !found;
}

Status TableStatements::CreateTable(const std::string& sql) {
  ScratchDatabase scratch;
  TAMIS_RETURN_IF_ERROR(scratch.Run(sql));
  const bool unless_exists = scratch.Run(sql).ok();
  const auto made = scratch.Rows("SELECT name FROM sqlite_schema WHERE type = 'table' LIMIT 1");
  const ScratchDatabase::Definition definition = scratch.ReadDefinition(made[0][0], sql);
  const std::string& name = definition.schema.name;
  if (HasSchemaName(sql)) {
    return InvalidArgument("cannot create table \"" + name +
                           "\": tables of a store have no schema name; write CREATE TABLE " + name +
                           " (...)");
  }

  const auto existing = session_->engine->Table(name);
  if (existing.ok()) {
    if (unless_exists) return Status::Ok();
    return AlreadyExists("cannot create table \"" + name +
                         "\": it exists already; see it with: tamis table describe " + name);
  }
  if (existing.status().code() != StatusCode::kNotFound) return existing.status();
  if (!definition.problems.empty()) {
    return InvalidArgument("cannot create table \"" + name +
                           "\" in the store: " + Joined(definition.problems) +
                           "; write for example " + StatementFor(definition.schema) +
                           ", or CREATE TEMP TABLE for one of SQLite's own that ends with this "
                           "program");
  }
  if (!IsFree(name)) {
    return AlreadyExists("cannot create table \"" + name +
                         "\": there is a temporary table or view of that name; drop it first");
  }
  TAMIS_RETURN_IF_ERROR(session_
                            ->ChangeAtLength<TableSchema>([&](ClusterAdmin& admin, auto done) {
                              admin.CreateTable(definition.schema, std::move(done));
                            })
                            .status());
  session_->engine->ForgetTable(name);
  return Execute("CREATE VIRTUAL TABLE temp." + QuotedName(name) + " USING tamis");
}

Status TableStatements::CreateIndex(const std::string& sql, bool* done) {
  TAMIS_ASSIGN_OR_RETURN(const std::vector<TableSchema> tables, TablesOf(session_.get()));
  ScratchDatabase scratch;
  TAMIS_RETURN_IF_ERROR(scratch.Mirror(tables, false));
  if (const Status status = scratch.Run(sql); !status.ok()) {
    // SQLite itself would say only that a table of the store is a virtual one. It alone knows the
    // databases that are attached.
    if (status.message().starts_with("no such table") ||
        status.message().starts_with("unknown database")) {
      return Status::Ok();
    }
    return status.WithContext("cannot create the index");
  }
  const bool unless_exists = scratch.Run(sql).ok();
  const auto made = scratch.Rows("SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index'");
  const auto table = std::ranges::find(tables, made[0][1], &TableSchema::name);
  TAMIS_ASSIGN_OR_RETURN(const IndexSpec spec, scratch.ReadIndex(*table, made[0][0]));
  *done = true;
  if (table->FindIndex(spec.name) != nullptr && unless_exists) return Status::Ok();
  TAMIS_RETURN_IF_ERROR(session_
                            ->ChangeAtLength<TableSchema>([&](ClusterAdmin& admin, auto answer) {
                              admin.CreateIndex(table->name, spec, std::move(answer));
                            })
                            .status());
  session_->engine->ForgetTable(table->name);
  return Status::Ok();
}

Status TableStatements::DropTable(const std::string& name, const std::string& sql) {
  if (IsInTransaction()) {
    return FailedPrecondition(
        "cannot drop table \"" + name +
        "\" in a transaction: ROLLBACK would not bring it back; COMMIT first");
  }
  TAMIS_RETURN_IF_ERROR(session_->DoAtLength(
      [&](ClusterAdmin& admin, auto done) { admin.DropTable(name, {}, std::move(done)); }));
  session_->engine->ForgetTable(name);
  return Execute(sql);
}

Status TableStatements::DropIndex(const std::string& sql, bool* done) {
  TAMIS_ASSIGN_OR_RETURN(const std::vector<TableSchema> tables, TablesOf(session_.get()));
  ScratchDatabase scratch;
  TAMIS_RETURN_IF_ERROR(scratch.Mirror(tables, true));
  const auto names = [&] {
    return scratch.Rows("SELECT name FROM sqlite_schema WHERE type = 'index'");
  };
  const auto before = names();
  if (!scratch.Run(sql).ok()) return Status::Ok();  // SQLite will say why
  const auto after = names();
  const auto gone = std::ranges::find_if(
      before, [&](const auto& row) { return std::ranges::find(after, row) == after.end(); });
  if (gone == before.end()) return Status::Ok();  // IF EXISTS
  std::vector<std::string> having;
  for (const TableSchema& table : tables) {
    for (const IndexSpec& index : table.indexes) {
      if (LowerCase(index.name) == gone->front()) having.push_back(table.name + " " + index.name);
    }
  }
  if (having.size() > 1) {
    return InvalidArgument(
        "cannot drop index \"" + gone->front() +
        "\": several tables have one of that name; say which: tamis index drop " + Joined(having));
  }
  *done = true;
  const std::string table = having[0].substr(0, having[0].find(' '));
  const std::string index = having[0].substr(table.size() + 1);
  TAMIS_RETURN_IF_ERROR(session_
                            ->ChangeAtLength<TableSchema>([&](ClusterAdmin& admin, auto answer) {
                              admin.DropIndex(table, index, std::move(answer));
                            })
                            .status());
  session_->engine->ForgetTable(table);
  return Status::Ok();
}

}  // namespace tamis
