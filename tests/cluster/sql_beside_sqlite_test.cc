// Random statements over a table of a store and over the same table of SQLite's own, while the
// table's regions are split: ORDER BY, LIMIT and OFFSET; and aggregates, whose rows the servers may
// send as groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <memory>
#include <string>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/query/engine.h"
#include "tamis/sql/count_query.h"
#include "tamis/sql/extension.h"
#include "tamis/sql/lower_query.h"
#include "tamis/sql/minimum_query.h"
#include "tamis/table/codec.h"
#include "tests/cluster/cluster_under_test.h"

namespace tamis {
namespace {

constexpr int64_t kRows = 240;

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
    schema.columns = {
        {.name = "id", .type = Type::kInt64, .nullable = false},
        {.name = "n", .type = Type::kInt64},
        {.name = "s", .type = Type::kText},
        {.name = "d", .type = Type::kDouble},
        {.name = "x", .type = Type::kText},
        {.name = "s_lower",
         .type = Type::kText,
         .expression = Expression{.function = Expression::Function::kLower, .source = 2}},
        {.name = "x_start",
         .type = Type::kText,
         .expression =
             Expression{.function = Expression::Function::kSubstr, .source = 4, .length = 2}}};
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
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
        rows += (i > 0 ? " " : "") + std::string(text == nullptr ? "NULL" : text);
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

  const uint64_t seed_ = SeedFromSystem();
  Random random_{seed_};
  std::unique_ptr<ClusterUnderTest> cluster_;
  std::shared_ptr<Session> session_;
  sqlite3* ours_ = nullptr;
  sqlite3* plain_ = nullptr;
};

TEST_P(SqlBesideSqliteTest, RowsComeInTheOrderOfPlainSqlite) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  for (int i = Statements(500); i > 0; --i) {
    if (random_.OneIn(60)) SplitOne();
    ASSERT_NO_FATAL_FAILURE(Compare(RandomStatement()));
  }
}

TEST_P(SqlBesideSqliteTest, RewrittenMinimumIsThatOfPlainSqlite) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  const auto rewritten = [&](const std::string& sql) {
    return RewriteMinimum(sql, session_->engine.get());
  };
  for (const std::string column : {"n", "s", "d", "x", "s_lower", "N"}) {
    const std::string sql = "SELECT min(" + column + ") FROM t";
    const auto instead = rewritten(sql);
    ASSERT_TRUE(instead.has_value()) << sql;
    EXPECT_EQ(Run(ours_, *instead), Run(plain_, sql)) << *instead;
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

TEST_P(SqlBesideSqliteTest, RewrittenCountIsThatOfPlainSqlite) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(Open());
  const auto rewritten = [&](const std::string& sql) {
    return RewriteCount(sql, session_->engine.get());
  };
  ASSERT_TRUE(rewritten("SELECT count(*) FROM t").has_value());
  ASSERT_NO_FATAL_FAILURE(
      CompareAs("SELECT count(*) FROM t", *rewritten("SELECT count(*) FROM t")));
  ASSERT_NO_FATAL_FAILURE(Fill());
  static constexpr const char* kOperators[] = {" = ", "<", " <= ", " > ", " >= ", "=="};
  for (int i = Statements(200); i > 0; --i) {
    if (random_.OneIn(40)) SplitOne();
    std::string sql = "SELECT count(*) FROM t";
    for (uint64_t n = random_.Uniform(4); n > 0; --n) {
      static constexpr const char* kTexts[] = {"s", "x", "s_lower", "X_start", "\"s\""};
      static constexpr const char* kNumbers[] = {"n", "id", "N"};
      const bool text = random_.OneIn(2);
      std::string value = text ? RandomText() : RandomNumber();
      if (value == "NULL") value = text ? "''" : "0";
      sql += (sql.ends_with("t") ? " WHERE " : " and ") +
             std::string(text ? kTexts[random_.Uniform(std::size(kTexts))]
                              : kNumbers[random_.Uniform(std::size(kNumbers))]) +
             kOperators[random_.Uniform(std::size(kOperators))] + value;
    }
    if (sql.size() > 1000) continue;
    const auto instead = rewritten(sql);
    ASSERT_TRUE(instead.has_value()) << sql;
    ASSERT_NO_FATAL_FAILURE(CompareAs(sql, *instead));
  }
  EXPECT_THAT(rewritten(" select Count ( * )\n AS \"how many\" from T ;").value_or("none"),
              testing::StartsWith("SELECT +count AS \"how many\" FROM"));
  EXPECT_THAT(rewritten("SELECT COUNT(*) FROM t WHERE n=1").value_or("none"),
              testing::StartsWith("SELECT +count AS \"COUNT(*)\" FROM"));
  // Where SQLite may see another value in a column or a literal, and other statements.
  for (const char* sql : {"SELECT count(*) FROM nothing",
                          "SELECT count(n) FROM t",
                          "SELECT count(*), 1 FROM t",
                          "SELECT count(*) FROM t WHERE n = '1'",
                          "SELECT count(*) FROM t WHERE s = 1",
                          "SELECT count(*) FROM t WHERE d = 1",
                          "SELECT count(*) FROM t WHERE n = 01",
                          "SELECT count(*) FROM t WHERE n = 1.5",
                          "SELECT count(*) FROM t WHERE n = 1 OR n = 2",
                          "SELECT count(*) FROM t WHERE NOT n = 1",
                          "SELECT count(*) FROM t WHERE n = 1 = 1",
                          "SELECT count(*) FROM t WHERE n = 9223372036854775808",
                          "SELECT count(*) FROM t, t AS u",
                          "SELECT count(*) FROM t WHERE s = 'x' COLLATE NOCASE",
                          "SELECT count(*) FROM t GROUP BY n",
                          "SELECT count(*) FROM t WHERE nothing = 1",
                          "SELECT count(*) FROM t LIMIT 0",
                          "SELECT count(*) FROM t WHERE n = 1 AND",
                          "SELECT count(*) FROM t WHERE n = id",
                          "SELECT count(*) FROM t WHERE n = ?",
                          "SELECT count(*) FROM t WHERE current_date = '1999-01-01'",
                          "SELECT count(*) where FROM t",
                          "SELECT count(*) 12 FROM t",
                          "SELECT count(*) FROM order",
                          "SELECT count(*) FROM t; SELECT 1"}) {
    EXPECT_EQ(rewritten(sql), std::nullopt) << sql;
  }
  // Takes no more steps than it has characters.
  const std::string blanks(960, ' ');
  EXPECT_EQ(rewritten("SELECT count(*) FROM t WHERE" + blanks + ";x"), std::nullopt);
  EXPECT_EQ(rewritten("SELECT count(*) FROM t" + blanks + ";x"), std::nullopt);
  EXPECT_TRUE(rewritten("SELECT count(*) FROM t" + blanks + "; ").has_value());
}

TEST_P(SqlBesideSqliteTest, RewrittenLowerFindsTheRowsOfPlainSqlite) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  for (int i = Statements(300); i > 0; --i) {
    if (random_.OneIn(60)) SplitOne();
    const std::string sql = RandomStatementOfLower();
    const auto instead = RewriteLower(sql, session_->engine.get());
    ASSERT_TRUE(instead.has_value()) << sql;
    EXPECT_EQ(instead->find("lower("), std::string::npos) << *instead;
    ASSERT_NO_FATAL_FAILURE(CompareAs(sql, *instead));
  }
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

TEST_P(SqlBesideSqliteTest, AggregatesAreThoseOfPlainSqlite) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill());
  for (int i = Statements(500); i > 0; --i) {
    if (random_.OneIn(60)) SplitOne();
    session_->most_gathered_groups = random_.OneIn(4) ? random_.Uniform(20) : 1000;
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
