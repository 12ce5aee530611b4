// Statements by POST /v1/sql: their parameters, answers, refusals, and the sandbox.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tamis/server/testing/tamis_server_test_case.h"

namespace tamis::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ServerStatementsTest : public TamisServerTest {};

TEST_F(ServerStatementsTest, StatementsReadAndWriteWithParameters) {
  Start();
  const auto written =
      Sql({{"sql", "INSERT INTO cities VALUES (?, ?, ?, x'00ff'), ('Rom', -1, 9e999, NULL)"},
           {"parameters", {"O\"slo\n", 700000, 454.5}}});
  EXPECT_EQ(json::parse(written.body), json({{"columns", json::array()},
                                             {"types", json::array()},
                                             {"rows", json::array()},
                                             {"complete", true},
                                             {"row_count", 0},
                                             {"changes", 2}}));
  const auto answer =
      Sql({{"sql", "SELECT *, 1.5 AS x FROM cities ORDER BY name"}, {"explain", true}});
  const json document = json::parse(answer.body);
  EXPECT_EQ(document["columns"], json({"name", "people", "area", "flag", "x"}));
  EXPECT_EQ(document["types"], json({"TEXT", "INTEGER", "REAL", "BLOB", nullptr}));
  EXPECT_EQ(document["rows"],
            json({{"O\"slo\n", 700000, 454.5, "0x00ff", 1.5}, {"Rom", -1, "Inf", nullptr, 1.5}}));
  EXPECT_EQ(document["searches"][0]["table"], "cities");
  EXPECT_EQ(Rows("SELECT name FROM cities WHERE people = ?", {-1}), json({{"Rom"}}));
}

TEST_F(ServerStatementsTest, BytesInfiniteNumbersAndOtherTextsAreExactWhereTheRequestAsks) {
  Start();
  const json values =
      json::parse(R"([{"bytes": "0x00ff"}, {"real": "Inf"}, {"real": "-Inf"}, {"really": "1.5"}])");
  EXPECT_EQ(Rows("SELECT typeof(?1), hex(?1), ?2, ?3, ?4", values),
            json::parse(R"([["blob", "00FF", "Inf", "-Inf", "{\"really\":\"1.5\"}"]])"));
  const std::string sql = "SELECT CAST(x'61ff' AS TEXT), 'a' || char(0) || 'b'";
  EXPECT_EQ(Rows(sql), json::parse(R"([["a\uFFFD", "a\u0000b"]])"));
  const json exact = json::parse(Sql({{"sql", sql}, {"exact_texts", true}}).body);
  EXPECT_EQ(exact["rows"], json::parse(R"([[{"text": "0x61ff"}, "a\u0000b"]])"));
  EXPECT_EQ(exact["texts_not_utf8"], 1);
}

TEST_F(ServerStatementsTest, AStatementIsRefusedWhereATableWasMadeAnewSinceTheClientKnowsIt) {
  Start();
  const json id = json::parse(Ask("GET", "/v1/tables/cities").body)["id"];
  json request = {{"sql", "SELECT name FROM cities"}, {"tables", {{"cities", id}}}};
  EXPECT_EQ(Sql(request).status, 200);
  request["tables"]["cities"] = id.get<uint64_t>() + 1;
  const auto refused = Sql(request);
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr("was dropped and created again"));
  request["tables"] = {{"none", 1}};
  EXPECT_EQ(Sql(request).status, 404);
  request["tables"] = {{"cities", "x"}};
  EXPECT_EQ(Sql(request).status, 400);
}

TEST_F(ServerStatementsTest, AStreamEndsWithARecordThatSaysSo) {
  Start();
  const auto answer = Sql({{"sql", Count("100000")}}, kStream);
  EXPECT_EQ(answer.headers.at("Content-Type"), kStream);
  std::istringstream lines(answer.body);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(json::parse(line), json({{"columns", {"x"}}, {"types", {nullptr}}}));
  for (int i = 1; i <= 100000; ++i) {
    std::getline(lines, line);
    ASSERT_EQ(line, "[" + std::to_string(i) + "]");
  }
  std::getline(lines, line);
  EXPECT_EQ(json::parse(line), json({{"complete", true}, {"row_count", 100000}}));
  EXPECT_FALSE(std::getline(lines, line));
}

// The rows before the failing one have been sent with status 200.
TEST_F(ServerStatementsTest, AStreamThatFailsEndsWithTheErrorAndIsCut) {
  Start();
  const std::string sql =
      "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c WHERE x < 30000)"
      " SELECT CASE WHEN x = 30000 THEN abs(-9223372036854775807 - 1) ELSE x END FROM c";
  const auto answer = Sql({{"sql", sql}}, kStream);
  EXPECT_EQ(answer.status, 0);
  EXPECT_THAT(answer.body, AllOf(HasSubstr("[29999]\n{\"error\":{"), HasSubstr("integer overflow"),
                                 Not(HasSubstr("complete"))));
  const auto document = Sql({{"sql", sql}});
  EXPECT_EQ(document.status, 400);
  EXPECT_EQ(document.headers.at("Content-Type"), "application/problem+json");
}

TEST_F(ServerStatementsTest, RowsAreLimitedAndTheAnswerSaysSo) {
  Start();
  const auto limited = [&](const std::string& accept) {
    return Sql({{"sql", Count("10")}, {"max_rows", 3}}, accept).body;
  };
  EXPECT_THAT(limited("*/*"),
              HasSubstr("[[1],[2],[3]],\"complete\":true,\"row_count\":3,\"more_rows\":true"));
  EXPECT_THAT(limited(kStream),
              HasSubstr("[3]\n{\"complete\":true,\"row_count\":3,\"more_rows\":true"));
  EXPECT_THAT(Sql({{"sql", Count("3")}, {"max_rows", 3}}).body, Not(HasSubstr("more_rows")));
}

TEST_F(ServerStatementsTest, DocumentsAreBoundedAndStreamsAreNot) {
  auto options = Writable();
  options.sql.max_document_bytes = 1000;
  Start(options);
  EXPECT_THAT(Refusal(Count("1000")), HasSubstr("longer than 1000 bytes; ask for a stream"));
  EXPECT_THAT(Sql({{"sql", Count("1000")}}, kStream).body, HasSubstr("\"row_count\":1000"));
}

TEST_F(ServerStatementsTest, RowOfAStreamIsBounded) {
  auto options = Writable();
  options.sql.max_document_bytes = 1000;
  Start(options);
  const auto answer = Sql({{"sql", "SELECT zeroblob(400), zeroblob(400)"}}, kStream);
  EXPECT_THAT(answer.body, HasSubstr("a row is longer than 1000 bytes"));
  EXPECT_THAT(answer.body, Not(HasSubstr("0x00")));
}

TEST_F(ServerStatementsTest, SearchesOfAJoinAreSummedAfterAThousand) {
  Start();
  const std::string join =
      "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c WHERE x < 1500)"
      " SELECT count(*) FROM c CROSS JOIN cities WHERE people = x";
  const json answer = json::parse(Sql({{"sql", join}, {"explain", true}}).body);
  EXPECT_EQ(answer["rows"], json({{0}}));
  ASSERT_EQ(answer["searches"].size(), 1000);
  EXPECT_EQ(answer["searches"][998]["regions_total"], 1);
  EXPECT_EQ(answer["searches"][999]["regions_total"], 501);
  EXPECT_THAT(answer["searches"][999].value("reason", ""), HasSubstr("sums of 501 searches"));
  EXPECT_THAT(answer.value("explain", ""), HasSubstr("1500 searches"));
  AwaitStatements(0);
  EXPECT_THAT(Ask("GET", "/metrics").body, HasSubstr("\ntamis_searches_total 1500\n"));
}

TEST_F(ServerStatementsTest, RequestsThatAreWrongAreRefusedWithAReason) {
  Start();
  const auto refusal = [&](const std::string& body) {
    const auto answer = Ask("POST", "/v1/sql", body);
    EXPECT_EQ(answer.status, 400) << body;
    return json::parse(answer.body).value("detail", "");
  };
  EXPECT_THAT(refusal(""), HasSubstr("the body of the request is no JSON"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT 1",})"), HasSubstr("is no JSON: see its byte 20"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT 1", "sql": "SELECT 2"})"),
              HasSubstr("has the member \"sql\" twice"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT ?", "parameters": [{"a": {"b": 1, "c": 2, "b": 3}}]})"),
              HasSubstr("has the member \"b\" twice"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT ?", "parameters": [1e400]})"), HasSubstr("too large"));
  for (const char* bytes : {"00ff", "0xzz", ""}) {
    EXPECT_THAT(refusal(json({{"sql", "SELECT ?"}, {"parameters", {{{"bytes", bytes}}}}}).dump()),
                HasSubstr("is a value with \"0x\" and hexadecimal digits"))
        << bytes;
  }
  EXPECT_THAT(refusal(R"({"sql": "SELECT ?", "parameters": [{"real": "1.5"}]})"),
              HasSubstr("is a value with \"Inf\" or \"-Inf\""));
  EXPECT_THAT(refusal("[1]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("\"sql\" is missing"));
  EXPECT_THAT(refusal(R"({"sql": ""})"), HasSubstr("\"sql\" is empty"));
  EXPECT_THAT(refusal(R"({"sql": 1})"), HasSubstr("\"sql\" must be text"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT 1", "parameter": []})"),
              HasSubstr("\"parameter\" is no member"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT 1", "timeout_ms": -1})"), HasSubstr("milliseconds"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT ?"})"), HasSubstr("has 1 parameter, "));
  EXPECT_THAT(refusal(R"({"sql": "SELECT 1", "parameters": [1]})"), HasSubstr("has 0 parameters"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT 1; SELECT 2"})"), HasSubstr("more than one statement"));
  EXPECT_THAT(refusal(R"({"sql": " ; "})"), HasSubstr("has no statement"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT 1\u0000"})"), HasSubstr("NUL"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT other FROM cities"})"), HasSubstr("no such column"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT \"other\" FROM cities"})"), HasSubstr("no such column"));
  EXPECT_EQ(Sql({{"sql", "SELECT 1; -- the end"}}).status, 200);
}

// A library that copies JSON by recursion would end the process.
TEST_F(ServerStatementsTest, JsonOfManyLevelsIsRefused) {
  Start();
  const auto nested = [](size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  const auto detail = [](const HttpClient::Answer& answer) {
    EXPECT_EQ(answer.status, 400);
    return json::parse(answer.body).value("detail", "");
  };
  const auto sql = [&](const std::string& value) {
    return Ask("POST", "/v1/sql", R"({"sql": "SELECT ?", "parameters": [)" + value + "]}");
  };
  EXPECT_EQ(sql(nested(62)).status, 200);
  EXPECT_THAT(detail(sql(nested(63))), HasSubstr("more than 64 levels"));
  const std::string deep = nested(300'000);
  EXPECT_THAT(detail(sql(deep)), HasSubstr("more than 64 levels"));
  const std::string row = "{\"people\": " + deep + "}";
  EXPECT_THAT(detail(Ask("PUT", "/v1/tables/cities/rows/a", row)), HasSubstr("64 levels"));
  EXPECT_THAT(detail(Ask("POST", "/v1/tables/cities/rows", "[" + row + "]")),
              HasSubstr("64 levels"));
  EXPECT_THAT(detail(Ask("POST", "/v1/regions/1/move", deep)), HasSubstr("64 levels"));
}

TEST_F(ServerStatementsTest, TheSandboxRefusesAllThatIsNotATableOfTheStore) {
  Start();
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"SELECT tamis_open('/tmp/other')", "function tamis_open()"},
      {"SELECT load_extension('/tmp/x')", "load_extension"},
      {"SELECT sqlite_version()", "function sqlite_version()"},
      {"ATTACH '/tmp/x' AS x", "ATTACH"},
      {"ATTACH ':memory:' AS x", "ATTACH"},
      {"DETACH temp", "DETACH"},
      {"VACUUM INTO '/tmp/x'", "ATTACH"},
      {"CREATE TABLE x(a)", "definitions"},
      {"CREATE TEMP TABLE x(a)", "definitions"},
      {"CREATE VIRTUAL TABLE temp.x USING tamis(a, key (a))", "definitions"},
      {"CREATE VIRTUAL TABLE temp.x USING csv('/etc/passwd')", ""},
      {"CREATE TEMP TRIGGER x INSERT ON cities BEGIN SELECT 1; END", ""},
      {"CREATE TEMP VIEW x AS SELECT 1", "definitions"},
      {"DROP TABLE cities", ""},
      {"ALTER TABLE cities RENAME TO x", ""},
      {"PRAGMA writable_schema = 1", "PRAGMA writable_schema"},
      {"PRAGMA hard_heap_limit = 0", "PRAGMA hard_heap_limit"},
      {"PRAGMA temp_store_directory = '/tmp'", "PRAGMA temp_store_directory"},
      {"BEGIN", "transactions"},
      {"SAVEPOINT x", "transactions"},
      {"ANALYZE", ""},
      {"SELECT count(*) FROM tamis_explain('SELECT 1')", "tamis_explain is not permitted"},
      {"WITH x AS (SELECT * FROM tamis_explain('SELECT 1')) SELECT 1 FROM x", "tamis_explain"},
      {"INSERT INTO sqlite_schema VALUES (1,1,1,1,1)", ""},
      {"UPDATE sqlite_temp_schema SET sql = ''", ""}};
  for (const auto& [sql, why] : refused) {
    EXPECT_THAT(Refusal(sql), AllOf(HasSubstr(why), Not(testing::IsEmpty()))) << sql;
  }
  EXPECT_EQ(Rows("SELECT upper('a'), json_extract('[7]', '$[0]'), max(1, 2), date(0, 'unixepoch')"),
            json({{"A", 7, 2, "1970-01-01"}}));
  EXPECT_EQ(Rows("SELECT count(*) FROM tamis_servers"), json({{2}}));
  EXPECT_EQ(Rows("SELECT name FROM pragma_table_info('cities') LIMIT 1"), json({{"name"}}));
  EXPECT_EQ(Rows("SELECT count(*) FROM cities"), json({{0}}));
}

TEST_F(ServerStatementsTest, ATableThatWasMadeSinceIsSeen) {
  Start();
  EXPECT_EQ(Rows("SELECT count(*) FROM cities"), json({{0}}));  // the database is kept
  ASSERT_TRUE(store_->Define("later", {"a int64", "key (a)"}).ok());
  EXPECT_EQ(Rows("SELECT count(*) FROM later"), json({{0}}));
  EXPECT_THAT(Refusal("SELECT * FROM never"), HasSubstr("no such table"));
}

TEST_F(ServerStatementsTest, ColumnThatWasAddedSinceIsSeen) {
  Start();
  EXPECT_EQ(Ask("PUT", "/v1/tables/cities/rows/a", "{}").status, 200);
  const auto added = AwaitResult<TableSchema>(&store_->engine().executor(), {}, [&](auto done) {
    store_->admin().AddColumn("cities", {.name = "mayor", .type = Type::kText, .nullable = true},
                              std::move(done));
  });
  ASSERT_TRUE(added.ok()) << added.status();
  // Another program has added it: a kept database does not know it yet, and a statement looks
  // again.
  EXPECT_EQ(Sql({{"sql", "UPDATE cities SET mayor = 'kim'"}}).status, 200);
  // All kept databases are replaced once the engine has heard of the new version.
  while ((*store_->engine().Table("cities"))->columns.size() < 5) std::this_thread::yield();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Rows("SELECT * FROM cities"), json({{"a", nullptr, nullptr, nullptr, "kim"}}));
    EXPECT_EQ(json::parse(Ask("GET", "/v1/tables/cities/rows/a").body).value("mayor", ""), "kim");
  }
  EXPECT_EQ(Ask("PUT", "/v1/tables/cities/rows/a", R"({"mayor": "lee"})").status, 200);
  EXPECT_EQ(Rows("SELECT mayor FROM cities"), json({{"lee"}}));
}

TEST_F(ServerStatementsTest, ColumnThatWasDroppedSinceIsNotShown) {
  Start();
  const auto change = [&](auto call) {
    const auto changed = AwaitResult<TableSchema>(&store_->engine().executor(), {}, call);
    ASSERT_TRUE(changed.ok()) << changed.status();
    store_->engine().ForgetTable("cities");
  };
  change([&](auto done) {
    store_->admin().AddColumn("cities",
                              {.name = "small",
                               .type = Type::kText,
                               .expression = Expression{.function = Expression::Function::kLower}},
                              std::move(done));
  });
  EXPECT_EQ(Ask("PUT", "/v1/tables/cities/rows/A", "{}").status, 200);
  EXPECT_EQ(Rows("SELECT small FROM cities"), json({{"a"}}));
  EXPECT_EQ(json::parse(Ask("GET", "/v1/tables/cities/rows/A").body).value("small", ""), "a");
  const size_t columns = json::parse(Ask("GET", "/v1/tables/cities").body)["columns"].size();
  change([&](auto done) { store_->admin().DropColumn("cities", "small", std::move(done)); });
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Refusal("SELECT small FROM cities"), HasSubstr("no such column: small"));
    EXPECT_THAT(Ask("GET", "/v1/tables/cities/rows/A").body, Not(HasSubstr("dropped")));
  }
  const std::string table = Ask("GET", "/v1/tables/cities").body;
  EXPECT_EQ(json::parse(table)["columns"].size(), columns - 1);
  EXPECT_THAT(table, Not(HasSubstr("dropped")));
  EXPECT_EQ(Ask("PUT", "/v1/tables/cities/rows/A", R"({"small": "a"})").status, 400);
  EXPECT_EQ(Ask("PUT", "/v1/tables/cities/rows/A", "{}").status, 200);
}

TEST_F(ServerStatementsTest, PatternsAreShort) {
  Start();
  const std::string longest(200, '%');
  EXPECT_EQ(Rows("SELECT 'a' LIKE ?, 'a' GLOB ?", {longest, std::string(200, '*')}),
            json({{1, 1}}));
  EXPECT_THAT(Refusal("SELECT 'a' LIKE '" + longest + "%'"), HasSubstr("pattern too complex"));
}

}  // namespace
}  // namespace tamis::server
