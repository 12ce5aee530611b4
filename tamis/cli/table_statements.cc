#include "tamis/cli/table_statements.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace tamis {
namespace {

// ---- The text of a statement

std::string Upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string Quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

// The words of the text in capitals, without what is quoted or in a comment; at most so many.
std::vector<std::string> Words(std::string_view text, size_t most) {
  std::vector<std::string> words;
  const auto skip_behind = [&](std::string_view end, size_t from) {
    const size_t at = text.find(end, from);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + end.size());
  };
  while (!text.empty() && words.size() < most) {
    const auto c = static_cast<unsigned char>(text[0]);
    if (text.starts_with("--")) {
      skip_behind("\n", 2);
    } else if (text.starts_with("/*")) {
      skip_behind("*/", 2);
    } else if (c == '\'' || c == '"' || c == '`') {
      skip_behind(text.substr(0, 1), 1);
    } else if (c == '[') {
      skip_behind("]", 1);
    } else if (std::isalpha(c) != 0 || c == '_') {
      size_t size = 1;
      while (size < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[size])) != 0 || text[size] == '_')) {
        ++size;
      }
      words.push_back(Upper(text.substr(0, size)));
      text.remove_prefix(size);
    } else {
      text.remove_prefix(1);
    }
  }
  return words;
}

bool HasWord(const std::string& sql, const char* word) {
  const auto words = Words(sql, sql.size());
  return std::ranges::find(words, word) != words.end();
}

// The first statement with its semicolon, or all of the text.
std::string_view FirstStatement(const char* sql) {
  const std::string_view text = sql;
  for (size_t at = text.find(';'); at != std::string_view::npos; at = text.find(';', at + 1)) {
    const std::string_view statement = text.substr(0, at + 1);
    if (sqlite3_complete(std::string(statement).c_str()) != 0) return statement;
  }
  return text;
}

// ---- What SQLite says of it

// The effect that the statement being prepared would have.
struct Intent {
  int action = 0;  // of SQLite's authorizer; 0: none that matters here
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

// A database apart, in which a statement is run for the schema that comes of it.
class Apart {
 public:
  Apart() { rc_ = sqlite3_open(":memory:", &db_); }
  ~Apart() { sqlite3_close(db_); }
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;

  Status Run(const std::string& sql) {
    if (rc_ != SQLITE_OK) return Internal("cannot open a database in memory");
    const int rc = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
    return rc == SQLITE_OK ? Status::Ok() : InvalidArgument(sqlite3_errmsg(db_));
  }
  using Row = std::vector<std::string>;  // NULL is empty
  std::vector<Row> Rows(const std::string& sql) {
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
  sqlite3* db() const { return db_; }

 private:
  sqlite3* db_ = nullptr;
  int rc_ = SQLITE_OK;
};

// ---- CREATE TABLE

// The type of a column that is declared so.
std::optional<Type> TypeOf(const std::string& declared) {
  const std::string type = Upper(declared.substr(0, declared.find('(')));
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

std::string_view SqlName(Type type) {
  switch (type) {
    case Type::kText:
      return "TEXT";
    case Type::kBytes:
      return "BLOB";
    case Type::kInt64:
      return "INTEGER";
    case Type::kDouble:
      return "REAL";
    case Type::kBool:
      return "BOOLEAN";
    case Type::kTimestamp:
      return "TIMESTAMP";
    case Type::kDecimal:
      return "DECIMAL";
  }
  return "TEXT";
}

// A statement that makes as much of the table as a store can have.
std::string StatementFor(const TableSchema& schema) {
  std::string text = "CREATE TABLE " + Quoted(schema.name) + " (";
  for (const Column& column : schema.columns) {
    text += Quoted(column.name) + " " + std::string(SqlName(column.type)) +
            (column.nullable ? ", " : " NOT NULL, ");
  }
  text += "PRIMARY KEY (";
  for (const uint32_t column : schema.key) {
    text += (column == schema.key.front() ? "" : ", ") + Quoted(schema.columns[column].name);
  }
  return text + "))";
}

struct Definition {
  TableSchema schema;
  std::vector<std::string> problems;  // what a table of a store cannot have
};

void ReadColumns(Apart* apart, const std::string& table, Definition* out) {
  TableSchema& schema = out->schema;
  std::map<int, uint32_t> key;  // by place in the primary key
  for (const Apart::Row& row : apart->Rows("PRAGMA table_xinfo(" + Quoted(table) + ")")) {
    const std::string& name = row[1];
    const std::string& declared = row[2];
    const auto problem = [&](const std::string& what) {
      out->problems.push_back("column \"" + name + "\" " + what);
    };
    const auto type = TypeOf(declared);
    if (declared.empty()) {
      problem("has no type");
    } else if (!type) {
      problem("has the type " + declared +
              ", which is none of TEXT, INTEGER, REAL, BLOB, BOOLEAN, TIMESTAMP, DECIMAL");
    }
    if (!row[4].empty() && Upper(row[4]) != "NULL") problem("has a DEFAULT");
    if (row[6] != "0") problem("is GENERATED");
    const char* collation = nullptr;
    int increments = 0;
    sqlite3_table_column_metadata(apart->db(), nullptr, table.c_str(), name.c_str(), nullptr,
                                  &collation, nullptr, nullptr, &increments);
    if (collation != nullptr && sqlite3_stricmp(collation, "BINARY") != 0) {
      problem(std::string("has the collation ") + collation);
    }
    if (increments != 0) problem("is AUTOINCREMENT");
    const int place = std::stoi(row[5]);
    if (place > 0) key[place] = static_cast<uint32_t>(schema.columns.size());
    schema.columns.push_back({.id = schema.next_column_id++,
                              .name = Lower(name),
                              .type = type.value_or(Type::kText),
                              .nullable = row[3] == "0" && place == 0});
  }
  for (const auto& [place, column] : key) schema.key.push_back(column);
}

Definition ReadDefinition(Apart* apart, const std::string& table, const std::string& sql) {
  Definition out;
  out.schema.name = Lower(table);
  ReadColumns(apart, table, &out);
  if (out.schema.key.empty()) {
    out.problems.emplace_back("it has no PRIMARY KEY");
    out.schema.key = {0};
    out.schema.columns[0].nullable = false;
  }
  for (const Apart::Row& index : apart->Rows("PRAGMA index_list(" + Quoted(table) + ")")) {
    if (index[3] == "u") out.problems.emplace_back("it has a UNIQUE constraint");
    if (index[3] != "pk") continue;
    for (const Apart::Row& part : apart->Rows("PRAGMA index_xinfo(" + Quoted(index[1]) + ")")) {
      const bool is_key = part[5] == "1";
      if (is_key && part[4] != "BINARY") {
        out.problems.push_back("its PRIMARY KEY has the collation " + part[4]);
      }
    }
  }
  if (!apart->Rows("PRAGMA foreign_key_list(" + Quoted(table) + ")").empty()) {
    out.problems.emplace_back("it has a FOREIGN KEY");
  }
  if (HasWord(sql, "CHECK")) out.problems.emplace_back("it has a CHECK");
  if (HasWord(sql, "CONFLICT")) out.problems.emplace_back("it has an ON CONFLICT clause");
  return out;
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// ---- The tables of the store, in a database apart

Status Mirror(const std::vector<TableSchema>& tables, bool indexes, Apart* apart) {
  for (const TableSchema& table : tables) {
    std::string columns;
    for (const Column& column : table.columns) {
      columns += (columns.empty() ? "" : ", ") + Quoted(column.name);
    }
    TAMIS_RETURN_IF_ERROR(apart->Run("CREATE TABLE " + Quoted(table.name) + "(" + columns + ")"));
    for (const IndexSpec& index : table.indexes) {
      if (!indexes) break;
      // A name that another table has an index of already, too, is known.
      (void)apart->Run("CREATE INDEX IF NOT EXISTS " + Quoted(Lower(index.name)) + " ON " +
                       Quoted(table.name) + "(" + Quoted(table.columns[index.columns[0]].name) +
                       ")");
    }
  }
  return Status::Ok();
}

Result<std::vector<TableSchema>> TablesOf(Session* session) {
  if (session->engine == nullptr) return std::vector<TableSchema>();  // no store yet
  return session->Ask<std::vector<TableSchema>>(
      [](Cluster& cluster, auto done) { cluster.ListTables(std::move(done)); });
}

// The index that came of the statement.
Result<IndexSpec> ReadIndex(Apart* apart, const TableSchema& table, const std::string& name) {
  IndexSpec spec{.name = Lower(name)};
  const auto cannot = [&](const std::string& why) {
    return InvalidArgument("cannot create index \"" + spec.name + "\": " + why);
  };
  for (const Apart::Row& row : apart->Rows("PRAGMA index_list(" + Quoted(table.name) + ")")) {
    if (row[1] != name) continue;
    if (row[2] != "0") {
      return cannot("an index of a store is not UNIQUE; only the key is, PRIMARY KEY (...)");
    }
    if (row[4] != "0") {
      return cannot(
          "an index of a store has all rows; without WHERE, or without NULLs by: tamis index "
          "create TABLE INDEX COLUMNS --nulls skip");
    }
  }
  for (const Apart::Row& row : apart->Rows("PRAGMA index_xinfo(" + Quoted(name) + ")")) {
    if (row[5] == "0") continue;  // the rowid
    const auto column = table.FindColumn(Lower(row[2]));
    if (!column) return cannot("an index of a store is of columns, not of expressions");
    if (row[4] != "BINARY") return cannot("an index of a store has no collation but BINARY");
    spec.columns.push_back(*column);
  }
  return spec;
}

}  // namespace

bool TableStatements::MakesTable(const std::string& sql) {
  for (const char* rest = sql.c_str(); *rest != '\0';) {
    const std::string_view statement = FirstStatement(rest);
    const auto words = Words(statement, 2);
    if (words.size() == 2 && words[0] == "CREATE" &&
        (words[1] == "TABLE" || words[1] == "VIRTUAL")) {
      return true;
    }
    rest += statement.size();
  }
  return false;
}

Result<std::optional<const char*>> TableStatements::Run(const char* sql) {
  const auto words = Words(sql, 3);
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
      TAMIS_RETURN_IF_ERROR(DropTable(Lower(intent.name), text));
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
  Apart apart;
  TAMIS_RETURN_IF_ERROR(Mirror(tables, false, &apart));
  if (!apart.Run(sql).ok()) return Status::Ok();  // SQLite will say why
  for (const TableSchema& table : tables) {
    const auto columns = apart.Rows("PRAGMA table_xinfo(" + Quoted(table.name) + ")");
    std::string instead;
    if (columns.size() > table.columns.size()) {
      const auto type = TypeOf(columns.back()[2]);
      instead = "write: tamis table add-column " + table.name + " " + Lower(columns.back()[1]) +
                ":" + std::string(TypeName(type.value_or(Type::kText)));
    } else if (columns.size() < table.columns.size() ||
               !std::ranges::equal(
                   columns, table.columns, {}, [](const Apart::Row& row) { return row[1]; },
                   &Column::name)) {
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
  Apart apart;
  TAMIS_RETURN_IF_ERROR(apart.Run(sql));
  const bool unless_exists = apart.Run(sql).ok();
  const auto made = apart.Rows("SELECT name FROM sqlite_schema WHERE type = 'table' LIMIT 1");
  const Definition definition = ReadDefinition(&apart, made[0][0], sql);
  const std::string& name = definition.schema.name;

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
  return Execute("CREATE VIRTUAL TABLE temp." + Quoted(name) + " USING tamis");
}

Status TableStatements::CreateIndex(const std::string& sql, bool* done) {
  TAMIS_ASSIGN_OR_RETURN(const std::vector<TableSchema> tables, TablesOf(session_.get()));
  Apart apart;
  TAMIS_RETURN_IF_ERROR(Mirror(tables, false, &apart));
  if (!apart.Run(sql).ok()) return Status::Ok();  // SQLite will say why
  const bool unless_exists = apart.Run(sql).ok();
  const auto made = apart.Rows("SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index'");
  const auto table = std::ranges::find(tables, made[0][1], &TableSchema::name);
  TAMIS_ASSIGN_OR_RETURN(const IndexSpec spec, ReadIndex(&apart, *table, made[0][0]));
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
  Apart apart;
  TAMIS_RETURN_IF_ERROR(Mirror(tables, true, &apart));
  const auto names = [&] {
    return apart.Rows("SELECT name FROM sqlite_schema WHERE type = 'index'");
  };
  const auto before = names();
  if (!apart.Run(sql).ok()) return Status::Ok();  // SQLite will say why
  const auto after = names();
  const auto gone = std::ranges::find_if(
      before, [&](const auto& row) { return std::ranges::find(after, row) == after.end(); });
  if (gone == before.end()) return Status::Ok();  // IF EXISTS
  std::vector<std::string> having;
  for (const TableSchema& table : tables) {
    for (const IndexSpec& index : table.indexes) {
      if (Lower(index.name) == gone->front()) having.push_back(table.name + " " + index.name);
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
