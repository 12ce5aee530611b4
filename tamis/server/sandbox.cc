#include "tamis/server/sandbox.h"

#include <strings.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <string_view>
#include <utility>

#include "tamis/table/expression.h"

namespace tamis::server {
namespace {

constexpr int kMaxTextBytes = 16 << 20;  // the bound of a value, and of a row
constexpr int kMaxStatementBytes = 1 << 20;
// SQLite compares a pattern with a text in one step, which nothing interrupts: 10 s at most.
constexpr int kMaxPatternBytes = 200;

// Functions of SQLite that compute from their arguments and read nothing else; in order. json_patch
// and unhex, whose time is the product of two lengths, are not among them (text_functions.h).
constexpr std::string_view kFunctions[] = {"->",
                                           "->>",
                                           "abs",
                                           "acos",
                                           "acosh",
                                           "asin",
                                           "asinh",
                                           "atan",
                                           "atan2",
                                           "atanh",
                                           "avg",
                                           "ceil",
                                           "ceiling",
                                           "changes",
                                           "char",
                                           "coalesce",
                                           "concat",
                                           "concat_ws",
                                           "cos",
                                           "cosh",
                                           "count",
                                           "cume_dist",
                                           "current_date",
                                           "current_time",
                                           "current_timestamp",
                                           "date",
                                           "datetime",
                                           "degrees",
                                           "dense_rank",
                                           "exp",
                                           "first_value",
                                           "floor",
                                           "format",
                                           "glob",
                                           "group_concat",
                                           "hex",
                                           "ifnull",
                                           "iif",
                                           "instr",
                                           "json",
                                           "json_array",
                                           "json_array_length",
                                           "json_each",
                                           "json_extract",
                                           "json_group_array",
                                           "json_group_object",
                                           "json_insert",
                                           "json_object",
                                           "json_quote",
                                           "json_remove",
                                           "json_replace",
                                           "json_set",
                                           "json_tree",
                                           "json_type",
                                           "json_valid",
                                           "julianday",
                                           "lag",
                                           "last_value",
                                           "lead",
                                           "length",
                                           "like",
                                           "likelihood",
                                           "likely",
                                           "ln",
                                           "log",
                                           "log10",
                                           "log2",
                                           "lower",
                                           "ltrim",
                                           "match",
                                           "max",
                                           "min",
                                           "mod",
                                           "nth_value",
                                           "ntile",
                                           "nullif",
                                           "octet_length",
                                           "percent_rank",
                                           "pi",
                                           "pow",
                                           "power",
                                           "printf",
                                           "quote",
                                           "radians",
                                           "random",
                                           "randomblob",
                                           "rank",
                                           "replace",
                                           "round",
                                           "row_number",
                                           "rtrim",
                                           "sign",
                                           "sin",
                                           "sinh",
                                           "sqrt",
                                           "strftime",
                                           "string_agg",
                                           "substr",
                                           "substring",
                                           "sum",
                                           "tamis_lower_eq",
                                           "tan",
                                           "tanh",
                                           "time",
                                           "timediff",
                                           "total",
                                           "trim",
                                           "trunc",
                                           "typeof",
                                           "unicode",
                                           "unixepoch",
                                           "unlikely",
                                           "upper",
                                           "zeroblob"};
static_assert(std::is_sorted(std::begin(kFunctions), std::end(kFunctions)));

// Settings that can be read and change nothing.
constexpr std::string_view kReadablePragmas[] = {"table_info", "table_list", "table_xinfo"};

// SQLite gives nullptr for what an action has not.
std::string LowerCase(const char* text) { return AsciiLower(text == nullptr ? "" : text); }

}  // namespace

void Sandbox::Enclose(sqlite3* db) {
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, kMaxTextBytes);
  sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, kMaxStatementBytes);
  sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, kMaxPatternBytes);
  sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 200);
  sqlite3_limit(db, SQLITE_LIMIT_COMPOUND_SELECT, 50);
  sqlite3_limit(db, SQLITE_LIMIT_VDBE_OP, 250'000);
  sqlite3_limit(db, SQLITE_LIMIT_FUNCTION_ARG, 100);
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(db, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
  sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, 0);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  // Else a column's name that is spelt wrong, in double quotes, is a text.
  sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
  sqlite3_set_authorizer(db, Authorize, this);
}

std::string Sandbox::TakeRefusal() { return std::exchange(refusal_, {}); }

int Sandbox::Authorize(void* sandbox, int action, const char* first, const char* second,
                       const char* database, const char*) noexcept {
  try {
    return static_cast<Sandbox*>(sandbox)->Decide(action, first, second, database);
  } catch (const std::bad_alloc&) {
    return SQLITE_DENY;
  }
}

int Sandbox::Refuse(std::string why) {
  if (refusal_.empty()) refusal_ = std::move(why);
  return SQLITE_DENY;
}

int Sandbox::Decide(int action, const char* first, const char* second, const char* database) {
  const auto refuse = [&](const std::string& what) {
    return Refuse("this server does not permit " + what + " in SQL");
  };
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_READ:
      // It runs statements on a connection of its own, outside of the sandbox.
      if (LowerCase(first) == "tamis_explain") {
        return Refuse(
            "tamis_explain is not permitted here; send \"explain\": true with a statement");
      }
      return SQLITE_OK;
    case SQLITE_FUNCTION: {
      const std::string name = LowerCase(second);
      if (std::ranges::binary_search(kFunctions, name)) return SQLITE_OK;
      return refuse("the function " + name + "()");
    }
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE: {
      const std::string table = LowerCase(first);
      // SQLite asks this for a definition, which is refused by its own action, and when it reads
      // the definitions itself. It permits no statement to change them.
      if (table == "sqlite_master" || table == "sqlite_temp_master") return SQLITE_OK;
      // The tables of the store are in the temporary schema.
      if (LowerCase(database) != "temp") return refuse("changes of table \"" + table + "\"");
      if (may_write_) return SQLITE_OK;
      return Refuse(
          "this server only reads: it was started without --write, so it does not permit INSERT, "
          "UPDATE and DELETE");
    }
    case SQLITE_PRAGMA: {
      const std::string name = LowerCase(first);
      if (std::ranges::find(kReadablePragmas, name) != std::end(kReadablePragmas)) {
        return SQLITE_OK;
      }
      return refuse("PRAGMA " + name);
    }
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
      return refuse("ATTACH and DETACH");
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
      return refuse("transactions of several statements; each request is a transaction of its own");
    case SQLITE_ANALYZE:
    case SQLITE_REINDEX:
      return refuse("ANALYZE and REINDEX");
    default:
      return refuse("definitions (CREATE, DROP, ALTER); use the program tamis");
  }
}

}  // namespace tamis::server
