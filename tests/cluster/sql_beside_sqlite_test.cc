// Random statements over a table of a store and over the same table of SQLite's own, while the
// table's regions are split: ORDER BY, LIMIT and OFFSET; and aggregates, whose rows the servers may
// send as groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/query/engine.h"
#include "tamis/sql/aggregate_query.h"
#include "tamis/sql/extension.h"
#include "tamis/sql/lower_query.h"
#include "tamis/sql/minimum_query.h"
#include "tamis/sql/rewritten_query.h"
#include "tamis/table/codec.h"
#include "tests/cluster/cluster_under_test.h"

namespace tamis {
namespace {

constexpr int64_t kRows = 240;
const Expression kLowerOfS{.function = Expression::Function::kLower, .source = 2};

// SQLite hands its own functions only to an extension's entry point.
std::shared_ptr<Session> opening;

int Entry(sqlite3* db, const char**, const sqlite3_api_routines* api) {
  if (opening == nullptr) return SQLITE_OK;
  return Extend(db, api, std::exchange(opening, nullptr)).ok() ? SQLITE_OK : SQLITE_ERROR;
}

class SqlBesideSqliteTest : public testing::TestWithParam<ClusterKind> {
 protected:
  ~SqlBesideSqliteTest() override {
    sqlite3_close(ours_);
    sqlite3_close(plain_);
    session_.reset();
  }

  // A statement on a real cluster takes much longer.
  int Statements(int most) const { return cluster_->has_virtual_clock() ? most : most / 4; }

  void Open() {
    auto opened = GetParam().open({.servers = 2,
                                   .seed = seed_,
                                   .page_rows = 1 + random_.Uniform(50),
                                   .page_grouped = 1 + random_.Uniform(100)});
    ASSERT_TRUE(opened.ok()) << opened.status();
    cluster_ = std::move(*opened);
    TableSchema schema;
    schema.name = "t";
    schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                      {.name = "n", .type = Type::kInt64},
                      {.name = "s", .type = Type::kText},
                      {.name = "d", .type = Type::kDouble},
                      {.name = "x", .type = Type::kText},
                      {.name = "s_lower", .type = Type::kText, .expression = kLowerOfS},
                      {.name = "x_start",
                       .type = Type::kText,
                       .expression = Expression{
                           .function = Expression::Function::kSubstr, .source = 4, .length = 2}}};
    schema.key = {0};
    schema.indexes = {{.name = "n_s", .columns = {1, 2}, .include = {4}},
                      {.name = "s", .columns = {2}},
                      {.name = "d", .columns = {3}, .include = {1, 2, 4}},
                      {.name = "x", .columns = {4}, .nulls = IndexNulls::kSkip},
                      {.name = "s_lower", .columns = {5}, .include = {1}},
                      {.name = "x_start", .columns = {6, 1}, .nulls = IndexNulls::kSkip}};
    for (IndexSpec& index : schema.indexes) index.expected_values = 200;
    const auto made = cluster_->CreateTable(schema);
    ASSERT_TRUE(made.ok()) << made.status();
    session_ = std::make_shared<Session>();
    session_->engine = std::make_shared<Engine>(&cluster_->cluster(), &cluster_->executor(),
                                                Engine::Options{.seed = 1});
    opening = session_;
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(Entry));
    ASSERT_EQ(sqlite3_open(":memory:", &ours_), SQLITE_OK) << sqlite3_errmsg(ours_);
    ASSERT_EQ(sqlite3_open(":memory:", &plain_), SQLITE_OK);
    Run(plain_,
        "CREATE TABLE t (id INTEGER PRIMARY KEY NOT NULL, n INTEGER, s TEXT, d REAL, x TEXT, "
        "s_lower TEXT AS (lower(s)), x_start TEXT AS (substr(x, 1, 2))) WITHOUT ROWID");
  }

  std::string RandomText() {
    if (random_.OneIn(6)) return "NULL";
    std::string text = random_.OneIn(8)
                           ? std::string(kIndexValueLimit - 1 + random_.Uniform(3), 'y')
                           : std::string(random_.Uniform(3), 'x');
    if (random_.OneIn(2)) text += static_cast<char>('A' + random_.Uniform(40));
    return text.find('\'') == std::string::npos ? "'" + text + "'" : "''";
  }
  std::string RandomNumber() {
    return random_.OneIn(7) ? "NULL"
                            : std::to_string(static_cast<int64_t>(random_.Uniform(30)) - 9);
  }

  void Fill() {
    for (int64_t id = 0; id < kRows; ++id) {
      const std::string insert = "INSERT INTO t VALUES (" + std::to_string(id) + ", " +
                                 RandomNumber() + ", " + RandomText() + ", " + RandomNumber() +
                                 " / 4.0, " + RandomText() + ")";
      ASSERT_EQ(Run(ours_, insert), "");
      ASSERT_EQ(Run(plain_, insert), "");
    }
    for (int i = 0; i < 3; ++i) SplitOne();
    const auto report = cluster_->Reconcile("t");
    ASSERT_TRUE(report.ok()) << report.status();
  }
  void SplitOne() {
    const auto regions = cluster_->Regions("t");
    ASSERT_TRUE(regions.ok()) << regions.status();
    // Refused while an earlier one is under way.
    (void)cluster_->Split((*regions)[random_.Uniform(regions->size())].id);
  }

  // Drops the column that is lower(s), with its index, or adds it again, under the same name or
  // another one. The connection knows it as s_lower all the time.
  void DropOrAddLower() {
    const auto change = [&](auto call) {
      const auto changed = cluster_->Ask<TableSchema>(call);
      ASSERT_TRUE(changed.ok()) << changed.status();
    };
    if (!lower_name_.empty()) {
      change([&](auto done) { cluster_->admin().DropIndex("t", "s_lower", done); });
      session_->engine->ForgetTable("t");  // a search in the order of this index would fail once
      change([&](auto done) { cluster_->admin().DropColumn("t", lower_name_, done); });
      lower_name_.clear();
    } else {
      lower_name_ = random_.OneIn(2) ? "s_lower" : "small";
      const Column column{.name = lower_name_, .type = Type::kText, .expression = kLowerOfS};
      change([&](auto done) { cluster_->admin().AddColumn("t", column, done); });
      const IndexSpec index{
          .name = "s_lower", .columns = {5}, .expected_values = 200, .include = {1}};
      change([&](auto done) { cluster_->admin().CreateIndex("t", index, done); });
    }
    if (!random_.OneIn(4)) session_->engine->ForgetTable("t");
  }

  // SQLite's own text of a REAL has 15 digits, with which other numbers look the same.
  static std::string TextOf(sqlite3_stmt* statement, int column) {
    if (sqlite3_column_type(statement, column) == SQLITE_FLOAT) {
      char text[40];
      std::snprintf(text, sizeof(text), "%.17g.", sqlite3_column_double(statement, column));
      return text;
    }
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
    return text == nullptr ? "NULL" : text;
  }
  // The names and the declared types of the columns, or the error.
  static std::string Columns(sqlite3* db, const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
      return std::string("error: ") + sqlite3_errmsg(db);
    }
    std::string columns;
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      const char* type = sqlite3_column_decltype(statement, i);
      columns += std::string(sqlite3_column_name(statement, i)) + " " +
                 (type == nullptr ? "" : type) + "\n";
    }
    sqlite3_finalize(statement);
    return columns;
  }
  static std::string Sorted(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    std::ranges::sort(lines);
    std::string out;
    for (const std::string& line : lines) out += line + "\n";
    return out;
  }

  // The rows, a line each, or the error.
  static std::string Run(sqlite3* db, const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
      return std::string("error: ") + sqlite3_errmsg(db);
    }
    std::string rows;
    int rc = sqlite3_step(statement);
    for (; rc == SQLITE_ROW; rc = sqlite3_step(statement)) {
      for (int i = 0; i < sqlite3_column_count(statement); ++i) {
        rows += (i > 0 ? " " : "") + TextOf(statement, i);
      }
      rows += "\n";
    }
    if (rc != SQLITE_DONE) rows += std::string("error: ") + sqlite3_errmsg(db);
    sqlite3_finalize(statement);
    return rows;
  }

  std::string RandomColumn() {
    static constexpr const char* kColumns[] = {"n", "s", "d", "x", "s_lower", "x_start", "n", "id"};
    return kColumns[random_.Uniform(std::size(kColumns))];
  }
  std::string RandomCondition() {
    switch (random_.Uniform(13)) {
      case 8:
        return "s_lower = " + RandomText();
      case 9:
        return "x_start > " + RandomText();
      case 10:
        // SQLite (3.40) takes equalities of one column with OR between them for an IN by bytes,
        // whatever their collations are, if an index may serve it: its own finds too few rows, too.
        return "(s = " + RandomText() + " COLLATE NOCASE AND id >= 0)";
      case 11:
        return "s COLLATE NOCASE <= " + RandomText();
      case 12: {
        static constexpr const char* kPatterns[] = {"x%", "Xx%", "yY%", "xA%", "%x", "_"};
        return "s LIKE '" + std::string(kPatterns[random_.Uniform(std::size(kPatterns))]) + "'";
      }
      case 0:
        return "n = " + RandomNumber();
      case 1:
        return "s = " + RandomText();
      case 2:
        return "d > " + RandomNumber();
      case 3:
        return "x >= ''";
      case 4:
        return RandomColumn() + " IS NOT NULL";
      case 5:
        return "n IN (1, 3, 5, -2)";
      case 6:
        return "id BETWEEN 40 AND " + std::to_string(40 + random_.Uniform(200));
      default:
        return "(n < 4 OR s > 'x')";
    }
  }
  // Holds the column to one value, most often.
  std::string RandomEquality(const std::string& column) {
    const bool is_text = column != "n" && column != "d" && column != "id";
    const auto value = [&] { return is_text ? RandomText() : RandomNumber(); };
    switch (random_.Uniform(5)) {
      case 0:
        return column + " IN (" + value() + ", " + value() + ")";
      case 1:
        return column + " IS " + value();
      case 2:
        return column + " = " + (is_text ? "'1'" : "'2'");
      default:
        return column + " = " + value();
    }
  }
  // Shows the columns of the order alone: rows that are equal there come in any order.
  std::string RandomStatement() {
    std::string where;
    for (uint64_t i = random_.Uniform(3); i > 0; --i) {
      where += (where.empty() ? " WHERE " : " AND ") + RandomCondition();
    }
    if (random_.OneIn(5)) {
      return std::string("SELECT ") + (random_.OneIn(2) ? "min(" : "max(") + RandomColumn() +
             ") FROM t" + where;
    }
    std::string order = RandomColumn(), shown = order;
    if (random_.OneIn(4)) where += (where.empty() ? " WHERE " : " AND ") + RandomEquality(order);
    const std::string way = random_.OneIn(2) ? " DESC" : "";
    order += way;
    for (uint64_t i = random_.Uniform(3); i > 0; --i) {
      const std::string column = RandomColumn();
      shown += ", " + column;
      order += ", " + column + (random_.OneIn(6) ? " DESC NULLS FIRST" : way);
    }
    std::string sql = "SELECT " + shown + " FROM t" + where + " ORDER BY " + order;
    if (random_.OneIn(2)) {
      sql += " LIMIT " + std::to_string(random_.Uniform(12));
      if (random_.OneIn(3)) sql += " OFFSET " + std::to_string(random_.Uniform(8));
    }
    return sql;
  }

  // SQLite reads keys for an OR of indexes and for a RIGHT or FULL JOIN, without announcing it.
  std::string RandomAggregate() {
    static constexpr const char* kAggregates[] = {
        "count(*)", "count(n)", "sum(n)", "count(DISTINCT s)", "max(length(x))", "total(d)"};
    const std::string column = RandomColumn();
    std::string shown = kAggregates[random_.Uniform(std::size(kAggregates))];
    std::string from = " FROM t", rest;
    if (random_.OneIn(4)) {
      static constexpr const char* kJoins[] = {" RIGHT JOIN ", " FULL JOIN ", " LEFT JOIN "};
      shown = "count(*), count(t.n), count(u.v)";
      const std::string other = "(SELECT 1 AS v UNION SELECT 3 UNION SELECT 99) AS u";
      from = " FROM " + other + std::string(kJoins[random_.Uniform(std::size(kJoins))]) +
             "t ON t.n = u.v";
      // The condition narrows the rows of u, and none of the table.
      if (random_.OneIn(3)) {
        from = " FROM t LEFT JOIN " + other + " ON t.n = u.v AND " + RandomCondition();
      }
      if (random_.OneIn(2)) {
        shown = "t.n, " + shown;
        rest = " GROUP BY t.n ORDER BY t.n" + std::string(random_.OneIn(2) ? " DESC" : "");
      }
    } else {
      rest = " WHERE " + RandomCondition();
      if (random_.OneIn(2)) rest += (random_.OneIn(2) ? " OR " : " AND ") + RandomCondition();
      if (random_.OneIn(4)) rest += " AND " + RandomEquality(column);
      if (random_.OneIn(2)) rest += RandomGroups(column, &shown);
    }
    return "SELECT " + shown + from + rest;
  }

  // GROUP BY, or DISTINCT in the place of an aggregate; each with an order, so that answers
  // compare.
  std::string RandomGroups(const std::string& column, std::string* shown) {
    const auto way = [&] { return random_.OneIn(2) ? " DESC" : ""; };
    std::string by = column, order = column + way();
    if (random_.OneIn(3)) {
      const std::string second = RandomColumn();
      by += ", " + second;
      order += ", " + second + way();
    }
    if (random_.OneIn(3)) {
      *shown = "DISTINCT " + by;
      return " ORDER BY " + order;
    }
    *shown = by + ", " + *shown;
    return " GROUP BY " + by + " ORDER BY " + order;
  }

  std::string RandomComparison() {
    static constexpr const char* kOperators[] = {" = ",  "<",  " <= ", " > ",
                                                 " >= ", "==", " <> ", "!="};
    static constexpr const char* kTexts[] = {"s", "x", "s_lower", "X_start", "\"s\"", "t.s"};
    static constexpr const char* kNumbers[] = {"n", "id", "N", "d", "T.d", "[n]"};
    const bool is_text = random_.OneIn(2);
    const std::string column = is_text ? kTexts[random_.Uniform(std::size(kTexts))]
                                       : kNumbers[random_.Uniform(std::size(kNumbers))];
    const auto value = [&] {
      const std::string one = is_text ? RandomText() : RandomNumber();
      if (one == "NULL") return std::string(is_text ? "''" : "0");
      return one + (is_text || random_.OneIn(2) ? "" : random_.OneIn(2) ? ".25" : ".1");
    };
    const std::string maybe_not = random_.OneIn(2) ? " NOT" : "";
    switch (random_.Uniform(7)) {
      case 0:
        return column + maybe_not + " BETWEEN " + value() + " AND " + value();
      case 1:
        return column + maybe_not + " IN (" + value() + ", " + value() + ", " + value() + ")";
      case 2:
        return column + " IS" + maybe_not + " NULL";
      default:
        return column + kOperators[random_.Uniform(std::size(kOperators))] + value();
    }
  }
  std::string RandomComparisons(int depth) {
    if (depth == 0 || random_.OneIn(2)) return RandomComparison();
    const std::string both = RandomComparisons(depth - 1) + (random_.OneIn(2) ? " AND " : " or ") +
                             RandomComparisons(depth - 1);
    return random_.OneIn(2) ? "(" + both + ")" : both;
  }
  std::string RandomAggregateCall(bool huge) {
    static constexpr const char* kCalls[] = {
        "count(*)", "COUNT ( * )", "count(n)", "count(t.x)", "sum(n)",       "min(d)",
        "max(s)",   "min(x)",      "max(n)",   "count(id)",  "sum( \"n\" )", "min(s_lower)",
        "avg(n)",   "total(n)",    "avg(t.n)", "max(d)",     "max(x_start)"};
    std::string call;
    do {
      call = kCalls[random_.Uniform(std::size(kCalls))];
      // They are rounded, in another way for another order of the rows.
    } while (huge && (call.starts_with("avg") || call.starts_with("total")));
    return call;
  }

  // A statement that is rewritten. With an order by all columns of the groups, or without LIMIT.
  std::string RandomGrouped(bool huge) {
    static constexpr const char* kGroups[] = {"n", "s", "t.d", "x", "S_lower", "\"x_start\""};
    std::vector<std::string> groups, shown, order;
    for (uint64_t i = random_.Uniform(3); i > 0; --i) {
      groups.emplace_back(kGroups[random_.Uniform(std::size(kGroups))]);
    }
    std::string having;
    // A minimum alone may be left to the order of an index.
    if (groups.empty()) shown.emplace_back("count(*)");
    for (const std::string& group : groups) {
      if (random_.OneIn(5)) continue;
      shown.push_back(group + (random_.OneIn(3) ? " AS g" + std::to_string(shown.size()) : ""));
    }
    for (uint64_t i = 2 + random_.Uniform(3); i > 0; --i) {
      const std::string call = RandomAggregateCall(huge);
      const std::string alias = "c" + std::to_string(shown.size());
      const bool has_alias = random_.OneIn(3);
      const bool numeric = !call.starts_with("m");
      shown.push_back(call + (has_alias ? " " + alias : ""));
      const std::string way = random_.OneIn(2) ? " DESC" : random_.OneIn(4) ? " NULLS LAST" : "";
      if (random_.OneIn(4)) order.push_back((has_alias ? alias : call) + way);
      if (random_.OneIn(6)) order.push_back(std::to_string(shown.size()) + way);
      if (groups.empty() || !numeric || !random_.OneIn(3)) continue;
      having += (having.empty() ? " HAVING " : " AND ") + (has_alias ? alias : call) +
                (random_.OneIn(2) ? " > " : "<= ") + std::to_string(random_.Uniform(12));
    }
    std::string sql = "SELECT " + Joined(shown) + " FROM t";
    if (random_.OneIn(2)) sql += " WHERE " + RandomComparisons(2);
    if (!groups.empty()) sql += " GROUP BY " + Joined(groups);
    sql += having;
    if (random_.OneIn(3)) return sql;  // in any order
    // With LIMIT and an order of groups, SQLite ends before it comes to a sum that does not fit.
    const bool may_be_limited = !order.empty() || sql.find("sum(") == std::string::npos;
    for (const std::string& group : groups) {
      order.push_back(group + (random_.OneIn(2) ? " DESC" : ""));
    }
    if (order.empty()) return sql;
    sql += " ORDER BY " + Joined(order);
    if (may_be_limited && random_.OneIn(3)) sql += " LIMIT " + std::to_string(random_.Uniform(6));
    if (sql.find(" LIMIT ") != std::string::npos && random_.OneIn(2)) sql += " OFFSET 1";
    return sql;
  }
  static std::string Joined(const std::vector<std::string>& parts) {
    std::string out;
    for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
    return out;
  }

  // A comparison of lower(s), of the table or the alias.
  std::string RandomLower(const std::string& qualifier) {
    static constexpr const char* kOperators[] = {" = ", " < ", " <= ", " > ", " >= "};
    static constexpr const char* kPatterns[] = {" LIKE 'x%'", " LIKE 'Y%a'", " GLOB 'x*'",
                                                " GLOB 'X*'"};
    const auto text = [&] {
      std::string literal = RandomText();
      return literal == "NULL" ? std::string("''") : literal;
    };
    const std::string lower = "lower(" + qualifier + "s)";
    switch (random_.Uniform(3)) {
      case 0:
        return lower + " IN (" + text() + ", " + text() + ")";
      case 1:
        return lower + kPatterns[random_.Uniform(std::size(kPatterns))];
      default:
        return lower + kOperators[random_.Uniform(std::size(kOperators))] + text();
    }
  }
  std::string RandomStatementOfLower() {
    if (random_.OneIn(4)) {
      return std::string("SELECT a.id, b.id FROM t a ") + (random_.OneIn(2) ? "LEFT " : "") +
             "JOIN t b ON a.n = b.n AND " + RandomLower("b.") + " WHERE " + RandomLower("a.") +
             " ORDER BY a.id, b.id";
    }
    std::string where = " WHERE " + RandomLower("");
    if (random_.OneIn(2)) where = " WHERE NOT (" + RandomLower("") + ")";
    if (random_.OneIn(2)) where += (random_.OneIn(2) ? " AND " : " OR ") + RandomCondition();
    if (random_.OneIn(3)) return "SELECT count(*), sum(n) FROM t" + where;
    return "SELECT id, s FROM t" + where + " ORDER BY id" + (random_.OneIn(2) ? " DESC" : "");
  }

  void Compare(const std::string& sql) { CompareAs(sql, sql); }
  // `ours` is what is run for it on the table of the store.
  void CompareAs(const std::string& sql, const std::string& ours) {
    ASSERT_EQ(Run(ours_, ours), Run(plain_, sql)) << ours << "\n"
                                                  << Run(ours_, "EXPLAIN QUERY PLAN " + ours);
  }

  // REQUIRES: the statement is one that is rewritten.
  void CompareRewritten(const std::string& sql) {
    const RewrittenQuery rewritten = RewriteQuery(sql, session_->engine.get());
    ASSERT_TRUE(rewritten.sql.has_value()) << sql << "\n" << rewritten.by_sqlite;
    std::string got = Run(ours_, *rewritten.sql), wanted = Run(plain_, sql);
    // SQLite may give groups before it comes to the sum that does not fit.
    for (std::string* rows : {&got, &wanted}) {
      if (const size_t at = rows->find("error:"); at != std::string::npos) rows->erase(0, at);
    }
    const bool in_order = sql.find(" ORDER BY ") != std::string::npos;
    ASSERT_EQ(in_order ? got : Sorted(got), in_order ? wanted : Sorted(wanted)) << sql << "\n"
                                                                                << *rewritten.sql;
    ASSERT_EQ(Columns(ours_, *rewritten.sql), Columns(plain_, sql)) << sql;
  }

  const uint64_t seed_ = SeedFromSystem();
  Random random_{seed_};
  std::unique_ptr<ClusterUnderTest> cluster_;
  std::shared_ptr<Session> session_;
  std::string lower_name_ = "s_lower";  // the name of the column lower(s); empty while dropped
  sqlite3* ours_ = nullptr;
  sqlite3* plain_ = nullptr;
};

TEST_P(SqlBesideSqliteTest, RowsComeInTheOrderOfPlainSqlite) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  for (int i = Statements(500); i > 0; --i) {
    if (random_.OneIn(60)) SplitOne();
    if (random_.OneIn(60)) {
      ASSERT_NO_FATAL_FAILURE(DropOrAddLower());
    }
    ASSERT_NO_FATAL_FAILURE(Compare(RandomStatement()));
  }
}

TEST_P(SqlBesideSqliteTest, RewrittenMinimumIsThatOfPlainSqlite) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  const auto rewritten = [&](const std::string& sql) {
    const auto statement = SelectStatement::Parse(sql);
    return statement.has_value() ? RewriteMinimum(*statement, session_->engine.get())
                                 : std::nullopt;
  };
  for (const std::string column : {"n", "s", "d", "x", "s_lower", "N"}) {
    const std::string sql = "SELECT min(" + column + ") FROM t";
    const auto instead = rewritten(sql);
    ASSERT_TRUE(instead.has_value()) << sql;
    EXPECT_EQ(Run(ours_, *instead), Run(plain_, sql)) << *instead;
    EXPECT_EQ(Columns(ours_, *instead), Columns(plain_, sql)) << *instead;
    EXPECT_THAT(Run(ours_, "EXPLAIN QUERY PLAN " + *instead),
                testing::HasSubstr("in the order of"));
  }
  EXPECT_THAT(rewritten(" select Min ( \"n\" )\n AS least from T ;").value_or("none"),
              testing::EndsWith(" AS \"least\""));
  EXPECT_THAT(rewritten("SELECT MIN(n) FROM t").value_or("none"),
              testing::EndsWith(" AS \"MIN(n)\""));
  // Other statements, and columns without an order.
  for (const char* sql :
       {"SELECT min(id) FROM t", "SELECT min(nothing) FROM t", "SELECT min(n) FROM nothing",
        "SELECT min(n) FROM t WHERE s = 'x'", "SELECT min(n), 1 FROM t", "SELECT min(n) + 1 FROM t",
        "SELECT max(n) FROM t", "SELECT min(n) FROM t GROUP BY s", "SELECT min(n) FROM t; SELECT 1",
        "SELECT min(n) FROM t, t AS u", "SELECT min(n) FILTER (WHERE n > 1) FROM t"}) {
    EXPECT_EQ(rewritten(sql), std::nullopt) << sql;
  }
}

TEST_P(SqlBesideSqliteTest, RewrittenAggregatesAreThoseOfPlainSqlite) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(Open());
  for (const char* sql :
       {"SELECT count(*), count(n), sum(n), total(n), avg(n), min(s), max(d) FROM t",
        "SELECT s, count(*) FROM t GROUP BY s"}) {
    ASSERT_NO_FATAL_FAILURE(CompareRewritten(sql));
  }
  ASSERT_NO_FATAL_FAILURE(Fill());
  for (const char* sql :
       {"SELECT count(*) /* all */ , sum(n)/* x */ AS y,\n max( n /* c */ )  FROM t -- end",
        "SELECT p.s AS n, sum(p.N) AS s, [p].x FROM T p WHERE p.n > 1 GROUP BY p.s, 3 ORDER BY n, "
        "3",
        "SELECT s AS x, x AS s, count(*) \"x\" FROM t GROUP BY x, s ORDER BY x, s",
        "SELECT n AS k, count(*) FROM t GROUP BY k HAVING count(*) >= 2 AND max(n) > 5 ORDER BY k",
        "SELECT s, count(*) FROM t GROUP BY s, s, n ORDER BY n DESC, s LIMIT 2, 3",
        "SELECT count(*), total(n) FROM t WHERE n < -9000 ORDER BY 1 LIMIT 1 OFFSET 0;",
        "SELECT count(*) FROM t LIMIT 0", "SELECT count(*), avg(n) FROM t LIMIT 5 OFFSET 1"}) {
    ASSERT_NO_FATAL_FAILURE(CompareRewritten(sql));
  }
  for (int i = Statements(600); i > 0; --i) {
    if (random_.OneIn(60)) SplitOne();
    ASSERT_NO_FATAL_FAILURE(CompareRewritten(RandomGrouped(/*huge=*/false)));
  }
  // Sums of two of these do not fit in 64 bits, whatever is added before.
  for (int64_t id = kRows; id < kRows + 6; ++id) {
    const std::string insert = "INSERT INTO t VALUES (" + std::to_string(id) +
                               ", 6917529027641081856, " + RandomText() + ", 1.5, " + RandomText() +
                               ")";
    ASSERT_EQ(Run(ours_, insert), "");
    ASSERT_EQ(Run(plain_, insert), "");
  }
  for (int i = Statements(150); i > 0; --i) {
    ASSERT_NO_FATAL_FAILURE(CompareRewritten(RandomGrouped(/*huge=*/true)));
  }
}

TEST_P(SqlBesideSqliteTest, AggregatesThatDependOnTheOrderOfRowsAreThoseOfPlainSqlite) {
  ASSERT_NO_FATAL_FAILURE(Open());
  // Group a: the sum fits, the sums on the way do not, in the order of the key or of n. Group b:
  // each number is rounded when it becomes a double. Group c: neither.
  constexpr int64_t kHuge = 6917529027641081856, kOdd = 9007199254740993;
  int64_t id = 0;
  for (const auto& [n, group] : std::vector<std::pair<int64_t, std::string>>{{kHuge, "a"},
                                                                             {kHuge, "a"},
                                                                             {-kHuge, "a"},
                                                                             {-kHuge, "a"},
                                                                             {kHuge, "a"},
                                                                             {kOdd, "b"},
                                                                             {kOdd, "b"},
                                                                             {kOdd, "b"},
                                                                             {7, "c"},
                                                                             {-2, "c"}}) {
    const std::string insert = "INSERT INTO t VALUES (" + std::to_string(id++) + ", " +
                               std::to_string(n) + ", '" + group + "', 1, 'x')";
    ASSERT_EQ(Run(ours_, insert), "");
    ASSERT_EQ(Run(plain_, insert), "");
  }
  const auto reason = [&](const std::string& sql) {
    std::vector<Explain> searches;
    session_->searches = &searches;
    (void)Run(ours_, *RewriteQuery(sql, session_->engine.get()).sql);
    session_->searches = nullptr;
    return searches.empty() ? "no search" : searches[0].reason;
  };
  const std::string by_sqlite = "SQLite computes the aggregates";
  for (const std::string sql : {"SELECT sum(n) FROM t WHERE s = 'a'",
                                "SELECT avg(n), total(n), count(*) FROM t WHERE s = 'b'",
                                "SELECT s, avg(n) FROM t WHERE s > 'a' GROUP BY s ORDER BY s"}) {
    ASSERT_NO_FATAL_FAILURE(CompareRewritten(sql));
    EXPECT_THAT(reason(sql), testing::HasSubstr(by_sqlite)) << sql;
  }
  EXPECT_THAT(
      Run(ours_, *RewriteQuery("SELECT sum(n) FROM t WHERE s = 'a'", session_->engine.get()).sql),
      "error: integer overflow");
  for (const std::string sql : {"SELECT avg(n), sum(n), total(n) FROM t WHERE s = 'c'",
                                "SELECT sum(n), max(n) FROM t WHERE s = 'b'"}) {
    ASSERT_NO_FATAL_FAILURE(CompareRewritten(sql));
    EXPECT_THAT(reason(sql), testing::Not(testing::HasSubstr(by_sqlite))) << sql;
  }
}

// SQLite's own tables have no such types: the statement as it is gives what is expected.
TEST_P(SqlBesideSqliteTest, RewrittenAggregatesOfEachTypeAreThoseOfSqlite) {
  ASSERT_NO_FATAL_FAILURE(Open());
  TableSchema schema;
  schema.name = "u";
  schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                    {.name = "b", .type = Type::kBool},
                    {.name = "at", .type = Type::kTimestamp},
                    {.name = "c", .type = Type::kDecimal},
                    {.name = "y", .type = Type::kBytes}};
  schema.key = {0};
  const auto made = cluster_->CreateTable(schema);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(Run(ours_, "CREATE VIRTUAL TABLE u USING tamis"), "");
  static constexpr const char* kRows[] = {"NULL, NULL, NULL, NULL",
                                          "1, '2026-01-02 03:04:05', '0.10', x''",
                                          "0, '2026-01-02 03:04:05.25', 0.1, x'00'",
                                          "1, '0000-01-01 00:00:00', '1e40', x'0001'",
                                          "0, '9999-12-31 23:59:59', 7, x'00'",
                                          "1, '2026-02-01', '123456789012345678901234567890', NULL",
                                          "NULL, '2026-01-02 03:04:05', 7.0, x'ff'"};
  int id = 0;
  for (const char* row : kRows) {
    ASSERT_EQ(
        Run(ours_, "INSERT INTO u VALUES (" + std::to_string(id++) + ", " + std::string(row) + ")"),
        "");
  }
  const auto compare = [&](bool far_times) {
    for (const std::string sql :
         {"SELECT b, count(*), min(at), max(at) FROM u GROUP BY b ORDER BY b",
          "SELECT at, count(b), sum(b), avg(b), total(b), max(b) FROM u GROUP BY at ORDER BY at",
          "SELECT c, count(*), count(c) FROM u GROUP BY c ORDER BY c",
          "SELECT y, count(*), min(y), max(y) FROM u GROUP BY y ORDER BY y DESC",
          "SELECT min(at), max(at), count(*) FROM u WHERE at >= '2026-01' AND at <> '2026-02-01'",
          "SELECT max(at), sum(b) FROM u WHERE at BETWEEN '2026-01-02 03:04:05' AND '2026-02-01x'",
          "SELECT count(*) FROM u WHERE at IN ('2026-01-02 03:04:05', '2026-01-02T03:04:05Z')",
          "SELECT count(*), max(at) FROM u WHERE b = 1 OR b <= 0.5",
          "SELECT count(*), min(y) FROM u WHERE b <> 2 AND c IS NOT NULL AND y IS NOT NULL"}) {
      const RewrittenQuery rewritten = RewriteQuery(sql, session_->engine.get());
      ASSERT_TRUE(rewritten.sql.has_value()) << sql << rewritten.by_sqlite;
      ASSERT_EQ(Run(ours_, *rewritten.sql), Run(ours_, sql)) << sql << far_times;
      ASSERT_EQ(Columns(ours_, *rewritten.sql), Columns(ours_, sql)) << sql;
    }
  };
  ASSERT_NO_FATAL_FAILURE(compare(false));
  // Their texts do not sort as the times do.
  const SchemaPtr table = *session_->engine->Table("u");
  for (const int64_t time : {int64_t{-99'000'000'000'000'000}, int64_t{300'000'000'000'000'000}}) {
    Row row(table->columns.size());
    row[0] = Value::Int64(id++);
    row[1] = Value::Bool(true);
    row[2] = Value::Timestamp(time);
    for (const Status& put : session_->engine->Apply(table, {{.row = row}})) {
      ASSERT_TRUE(put.ok()) << put;
    }
  }
  ASSERT_NO_FATAL_FAILURE(compare(true));
}

TEST_P(SqlBesideSqliteTest, OtherAggregatesAreLeftToSqlite) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const auto rewritten = [&](const std::string& sql) {
    return RewriteQuery(sql, session_->engine.get());
  };
  EXPECT_THAT(rewritten(" select Count ( * )\n AS \"how many\" from T ;").sql.value_or("none"),
              testing::StartsWith("SELECT tamis_grouped.a1 AS \"how many\" FROM"));
  EXPECT_THAT(rewritten("SELECT COUNT(*) FROM t WHERE n=1").sql.value_or("none"),
              testing::StartsWith("SELECT tamis_grouped.a1 AS \"COUNT(*)\" FROM"));
  EXPECT_THAT(rewritten("SELECT count(*) FROM t WHERE lower(s) = 'a'").sql.value_or("none"),
              testing::HasSubstr("s_lower = ''a''"));
  EXPECT_EQ(rewritten("SELECT n FROM t WHERE n > 5").by_sqlite, "");
  EXPECT_EQ(RewriteQuery("SELECT count(*) FROM t", session_->engine.get(), "so").by_sqlite, "so");
  // SQLite may see another value in a column or a literal, or give another result.
  const std::string literals = "its WHERE clause has more than comparisons";
  const std::vector<std::pair<const char*, std::string>> kLeft = {
      {"SELECT count(*) FROM nothing", "nothing"},
      {"SELECT count(*), 1 FROM t", "more than columns and aggregates"},
      {"SELECT count(*) + 1 FROM t", "more than columns and aggregates"},
      {"SELECT count(*) FROM t WHERE n = '1'", literals},
      {"SELECT count(*) FROM t WHERE s = 1", literals},
      {"SELECT count(*) FROM t WHERE s = \"x\"", literals},
      {"SELECT count(*) FROM t WHERE n = 01", literals},
      {"SELECT count(*) FROM t WHERE d = 0.00001", literals},
      {"SELECT count(*) FROM t WHERE d = 1e3", literals},
      {"SELECT count(*) FROM t WHERE d = 1.", literals},
      {"SELECT count(*) FROM t WHERE n < = 1", literals},
      {"SELECT count(*) FROM t WHERE NOT n = 1", literals},
      {"SELECT count(*) FROM t WHERE n = 1 = 1", literals},
      {"SELECT count(*) FROM t WHERE n = 1 + 1", literals},
      {"SELECT count(*) FROM t WHERE n = 9223372036854775808", literals},
      {"SELECT count(*) FROM t WHERE n = NULL", literals},
      {"SELECT count(*) FROM t WHERE n IN ()", literals},
      {"SELECT count(*) FROM t WHERE n IN (1, NULL)", literals},
      {"SELECT count(*) FROM t WHERE s LIKE 'x%'", literals},
      {"SELECT count(*) FROM t WHERE s = 'x' COLLATE NOCASE", literals},
      {"SELECT count(*) FROM t WHERE s = 'x' || 'y'", literals},
      {"SELECT count(*) FROM t WHERE nothing = 1", literals},
      {"SELECT count(*) FROM t WHERE u.n = 1", literals},
      {"SELECT count(*) FROM t WHERE n = 1 AND", literals},
      {"SELECT count(*) FROM t WHERE n = id", literals},
      {"SELECT count(*) FROM t WHERE n = ?", literals},
      {"SELECT count(*) FROM t WHERE (n, id) = (1, 2)", literals},
      {"SELECT count(*) FROM t WHERE current_date = '1999-01-01'", literals},
      {"SELECT count(*) FROM t, t AS u", "joins"},
      {"SELECT count(*) FROM t JOIN t u ON t.id = u.id", "joins"},
      {"SELECT count(*) FROM t WINDOW w AS (ORDER BY n)", "clause"},
      {"SELECT count(*) FROM (SELECT * FROM t)", "more than one SELECT"},
      {"SELECT count(*) FROM t UNION SELECT 1", "more than one SELECT"},
      {"SELECT count(*) FROM main.t", "more than one SELECT"},
      {"SELECT count(*) FROM t; SELECT 1", "more than one SELECT"},
      {"SELECT count(*) where FROM t", "more than columns"},
      {"SELECT count(*) 12 FROM t", "more than columns"},
      {"SELECT count(*) FROM order", "more than one SELECT"},
      {"SELECT count(*) FROM t LIMIT ?", "its LIMIT"},
      {"SELECT count(*) FROM t LIMIT 1 + 1", "its LIMIT"},
      {"SELECT count(DISTINCT n) FROM t", "is no count"},
      {"SELECT count(*) FILTER (WHERE n > 1) FROM t", "more than columns"},
      {"SELECT count(*) OVER () FROM t", "more than columns"},
      {"SELECT sum(length(s)) FROM t", "is no count"},
      {"SELECT total(d), sum(d) FROM t", "a sum of doubles depends on the order"},
      {"SELECT avg(s) FROM t", "as doubles"},
      {"SELECT max(id), min(n) FROM t", "of the key"},
      {"SELECT id, count(*) FROM t GROUP BY id", "of the key"},
      {"SELECT max(n) FROM t", "an index may give"},
      {"SELECT n, count(*) FROM t", "none of GROUP BY"},
      {"SELECT s, count(*) FROM t GROUP BY n", "none of GROUP BY"},
      {"SELECT s, count(*) FROM t GROUP BY lower(s)", "names no column"},
      {"SELECT s, count(*) FROM t GROUP BY s COLLATE NOCASE", "names no column"},
      {"SELECT DISTINCT s, count(*) FROM t GROUP BY s", "is no count"},
      {"SELECT s, count(*) FROM t GROUP BY s HAVING count(*) > 1.5", "its HAVING"},
      {"SELECT s, count(*) FROM t GROUP BY s HAVING count(*) > n", "its HAVING"},
      {"SELECT s, count(*) FROM t GROUP BY s HAVING s > 1", "its HAVING"},
      {"SELECT s, count(*) FROM t GROUP BY s HAVING count(*) > 1 OR count(*) < 5", "its HAVING"},
      {"SELECT s, count(*) FROM t GROUP BY s HAVING count(*) > 1 AND", "its HAVING"},
      {"SELECT count(*) FROM t HAVING count(*) > 1", "its HAVING"},
      {"SELECT s, sum(n) FROM t GROUP BY s LIMIT 1", "may end before a sum"},
      {"SELECT s, sum(n) FROM t GROUP BY s ORDER BY s LIMIT 1", "may end before a sum"},
      {"SELECT s, count(*) FROM t GROUP BY s ORDER BY s COLLATE NOCASE", "is no count"},
      {"SELECT s, count(*) FROM t GROUP BY s ORDER BY -count(*)", "is no count"},
      {"SELECT s, count(*) FROM t GROUP BY s ORDER BY n", "none of GROUP BY"}};
  for (const auto& [sql, why] : kLeft) {
    const RewrittenQuery left = rewritten(sql);
    EXPECT_EQ(left.sql, std::nullopt) << sql;
    EXPECT_THAT(left.by_sqlite, testing::HasSubstr(why)) << sql;
  }
  // Takes no more steps than it has characters.
  const std::string blanks(90'000, ' ');
  EXPECT_EQ(rewritten("SELECT count(*) FROM t WHERE" + blanks + ";x").sql, std::nullopt);
  EXPECT_EQ(rewritten("SELECT count(*) FROM t" + blanks + ";x").sql, std::nullopt);
  EXPECT_TRUE(rewritten("SELECT count(*) FROM t" + blanks + "; ").sql.has_value());
}

TEST_P(SqlBesideSqliteTest, RewrittenLowerFindsTheRowsOfPlainSqlite) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  for (int i = Statements(300); i > 0; --i) {
    if (random_.OneIn(60)) SplitOne();
    const std::string sql = RandomStatementOfLower();
    const auto instead = RewriteLower(SelectStatement::Parse(sql).value(), session_->engine.get());
    ASSERT_TRUE(instead.has_value()) << sql;
    EXPECT_EQ(instead->find("lower("), std::string::npos) << *instead;
    ASSERT_NO_FATAL_FAILURE(CompareAs(sql, *instead));
  }
}

TEST_P(SqlBesideSqliteTest, OpenConnectionNoticesThatAColumnWasDropped) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  EXPECT_FALSE(session_->HasDroppedColumns());
  const std::string sql = "SELECT id FROM t WHERE s_lower = 'xa' ORDER BY id";
  const std::string of_lower = "SELECT id FROM t WHERE lower(s) = 'xa' ORDER BY id";
  ASSERT_NO_FATAL_FAILURE(DropOrAddLower());
  session_->engine->ForgetTable("t");
  EXPECT_TRUE(session_->HasDroppedColumns());
  EXPECT_EQ(RewriteQuery(of_lower, session_->engine.get()).sql, std::nullopt);
  ASSERT_NO_FATAL_FAILURE(Compare(sql));
  // A column of another kind has the name from now on. Others see it, this connection does not.
  const auto added = cluster_->Ask<TableSchema>([&](auto done) {
    cluster_->admin().AddColumn("t", {.name = "s_lower", .type = Type::kInt64}, done);
  });
  ASSERT_TRUE(added.ok()) << added.status();
  session_->engine->ForgetTable("t");
  EXPECT_TRUE(session_->HasDroppedColumns());
  ASSERT_NO_FATAL_FAILURE(Compare(sql));
  ASSERT_EQ(Run(ours_, "DROP TABLE t"), "");
  ASSERT_EQ(Run(ours_, "CREATE VIRTUAL TABLE t USING tamis"), "");
  EXPECT_FALSE(session_->HasDroppedColumns());
  EXPECT_EQ(Run(ours_, "SELECT count(s_lower) FROM t"), "0\n");
  EXPECT_EQ(Run(ours_, "SELECT type FROM pragma_table_info('t') WHERE name = 's_lower'"),
            "INTEGER\n");
}

TEST_P(SqlBesideSqliteTest, ReverseKeyOrderReadsTheLastRows) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  for (const std::string sql :
       {"SELECT id, s FROM t ORDER BY id DESC LIMIT 7", "SELECT max(id) FROM t",
        "SELECT id FROM t WHERE id < 100 ORDER BY id DESC LIMIT 3 OFFSET 2",
        "SELECT id FROM t WHERE id BETWEEN 20 AND 90 AND length(x) > 0 ORDER BY id DESC",
        "SELECT id, n FROM t ORDER BY id DESC"}) {
    ASSERT_NO_FATAL_FAILURE(Compare(sql));
    EXPECT_THAT(Run(ours_, "EXPLAIN QUERY PLAN " + sql),
                testing::HasSubstr("in the order of id DESC"));
  }
  EXPECT_LE(std::stoi(Run(ours_, "SELECT rows_read FROM tamis_explain('SELECT max(id) FROM t')")),
            2);
  // The rows of an index's equality are few, and sorted.
  const std::string looked_up = "SELECT id FROM t WHERE x_start = 'x' ORDER BY id DESC";
  ASSERT_NO_FATAL_FAILURE(Compare(looked_up));
  EXPECT_THAT(Run(ours_, "EXPLAIN QUERY PLAN " + looked_up),
              testing::Not(testing::HasSubstr("in the order of")));
}

TEST_P(SqlBesideSqliteTest, OrderOfHeldColumnsOrOfTheKeyDoesNotKeepAnIndexFromBeingUsed) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  for (const auto& [sql, index] : std::vector<std::pair<std::string, std::string>>{
           {"SELECT id FROM t WHERE n = 3 AND s < 'x' ORDER BY n", "n_s"},
           {"SELECT id FROM t WHERE n = 3 AND s < 'x' ORDER BY n DESC", "n_s"},
           {"SELECT id FROM t WHERE n = 3 AND s < 'x' ORDER BY id", "n_s"},
           {"SELECT id FROM t WHERE n = 3 AND s < 'x' ORDER BY n, id", "n_s"},
           {"SELECT n, id FROM t WHERE n = 3 AND s < 'x' GROUP BY n, id", "n_s"},
           {"SELECT DISTINCT n, id FROM t WHERE n = 3 AND s < 'x'", "n_s"},
           {"SELECT DISTINCT n FROM t WHERE n = 3", "n_s"},
           {"SELECT n, count(*) FROM t WHERE n = 3 GROUP BY n", "n_s"},
           {"SELECT n, count(*), sum(id) FROM t WHERE n = 3 GROUP BY n", "n_s"},
           {"SELECT id FROM t WHERE d < 0 ORDER BY id", "d"},
           {"SELECT id FROM t WHERE d < 0 ORDER BY id DESC", "d"},
           {"SELECT id, count(*) FROM t WHERE d < 0 GROUP BY id", "d"},
           {"SELECT id FROM t WHERE d IN (1, 2, 3, 4, 5, 6, 0, -1, -2) ORDER BY id", "d"}}) {
    EXPECT_EQ(Sorted(Run(ours_, sql)), Sorted(Run(plain_, sql))) << sql;
    std::string quoted = sql;
    for (size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 2) {
      quoted.insert(at, "'");
    }
    EXPECT_EQ(Run(ours_, "SELECT \"index\", sum(rows_read) < " + std::to_string(kRows) +
                             " FROM tamis_explain('" + quoted + "')"),
              index + " 1\n")
        << sql;
  }
}

TEST_P(SqlBesideSqliteTest, AggregatesAreThoseOfPlainSqlite) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  for (int i = Statements(500); i > 0; --i) {
    if (random_.OneIn(60)) SplitOne();
    session_->most_gathered_groups = random_.OneIn(4) ? random_.Uniform(20) : 1000;
    if (random_.OneIn(60)) {
      ASSERT_NO_FATAL_FAILURE(DropOrAddLower());
    }
    ASSERT_NO_FATAL_FAILURE(Compare(RandomAggregate()));
  }
}

// Real threads add nothing here to a virtual clock.
std::vector<ClusterKind> KindsToCompare() {
  std::vector<ClusterKind> kinds = ClusterKinds();
  if (kinds.size() > 1) std::erase_if(kinds, [](const auto& kind) { return !kind.virtual_clock; });
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Kinds, SqlBesideSqliteTest, testing::ValuesIn(KindsToCompare()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace tamis
