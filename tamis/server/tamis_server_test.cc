#include "tamis/server/tamis_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <tuple>

#include "tamis/remote/messages.h"
#include "tamis/server/testing/http_client.h"

namespace tamis::server {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class TamisServerTest : public testing::Test {
 protected:
  TamisServerTest() : directory_(testing::TempDir() + "/" + UnitName()) {
    std::filesystem::remove_all(directory_);
    OpenedStore::Options options;
    options.servers = 2;
    store_ = *OpenedStore::Open(directory_, options);
    const auto table =
        store_->Define("cities", {"name text", "people int64", "area double", "flag bytes",
                                  "key (name)", "index people (people)"});
    EXPECT_TRUE(table.ok()) << table.status();
  }
  ~TamisServerTest() override {
    server_.reset();
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  static std::string UnitName() {
    return testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  void Start(TamisServer::Options options = Writable()) {
    server_.reset();
    auto server = TamisServer::Start(store_, options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  static TamisServer::Options Writable() {
    TamisServer::Options options;
    options.sql.may_write = true;
    return options;
  }
  HttpClient::Answer Ask(const std::string& method, const std::string& target,
                         const std::string& body = "",
                         const std::map<std::string, std::string>& headers = {}) {
    return HttpClient(server_->port()).Ask(method, target, body, headers);
  }
  HttpClient::Answer Sql(const json& request, const std::string& accept = "*/*") {
    return Ask("POST", "/v1/sql", request.dump(), {{"Accept", accept}});
  }
  json Rows(const std::string& sql, const json& parameters = json::array()) {
    const auto answer = Sql({{"sql", sql}, {"parameters", parameters}});
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body)["rows"];
  }
  std::string Refusal(const std::string& sql) {
    const auto answer = Sql({{"sql", sql}});
    EXPECT_EQ(answer.status, 400) << sql << ": " << answer.body;
    return json::parse(answer.body).value("detail", "");
  }
  // Rows of 1 to `count`, made by SQLite.
  static std::string Count(const std::string& count) {
    return "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c WHERE x < " + count +
           ") SELECT x FROM c";
  }
  static constexpr const char* kEndless =
      "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
  static constexpr const char* kStream = "application/x-ndjson";

  // Waits until so many statements run.
  void AwaitStatements(int count) {
    const std::string line = "\ntamis_statements_running " + std::to_string(count) + "\n";
    while (Ask("GET", "/metrics").body.find(line) == std::string::npos) std::this_thread::yield();
  }

  const std::string directory_;
  std::shared_ptr<OpenedStore> store_;
  std::unique_ptr<TamisServer> server_;
};

TEST_F(TamisServerTest, StatementsReadAndWriteWithParameters) {
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

TEST_F(TamisServerTest, BytesInfiniteNumbersAndOtherTextsAreExactWhereTheRequestAsks) {
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

TEST_F(TamisServerTest, AStatementIsRefusedWhereATableWasMadeAnewSinceTheClientKnowsIt) {
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

TEST_F(TamisServerTest, AStreamEndsWithARecordThatSaysSo) {
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
TEST_F(TamisServerTest, AStreamThatFailsEndsWithTheErrorAndIsCut) {
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

TEST_F(TamisServerTest, RowsAreLimitedAndTheAnswerSaysSo) {
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

TEST_F(TamisServerTest, DocumentsAreBoundedAndStreamsAreNot) {
  auto options = Writable();
  options.sql.max_document_bytes = 1000;
  Start(options);
  EXPECT_THAT(Refusal(Count("1000")), HasSubstr("longer than 1000 bytes; ask for a stream"));
  EXPECT_THAT(Sql({{"sql", Count("1000")}}, kStream).body, HasSubstr("\"row_count\":1000"));
}

TEST_F(TamisServerTest, RowOfAStreamIsBounded) {
  auto options = Writable();
  options.sql.max_document_bytes = 1000;
  Start(options);
  const auto answer = Sql({{"sql", "SELECT zeroblob(400), zeroblob(400)"}}, kStream);
  EXPECT_THAT(answer.body, HasSubstr("a row is longer than 1000 bytes"));
  EXPECT_THAT(answer.body, Not(HasSubstr("0x00")));
}

TEST_F(TamisServerTest, SearchesOfAJoinAreSummedAfterAThousand) {
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

TEST_F(TamisServerTest, RequestsThatAreWrongAreRefusedWithAReason) {
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
  EXPECT_THAT(refusal(R"({"sql": "SELECT ?"})"), HasSubstr("has 1 parameters"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT 1", "parameters": [1]})"), HasSubstr("has 0 parameters"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT 1; SELECT 2"})"), HasSubstr("more than one statement"));
  EXPECT_THAT(refusal(R"({"sql": " ; "})"), HasSubstr("has no statement"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT 1\u0000"})"), HasSubstr("NUL"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT other FROM cities"})"), HasSubstr("no such column"));
  EXPECT_THAT(refusal(R"({"sql": "SELECT \"other\" FROM cities"})"), HasSubstr("no such column"));
  EXPECT_EQ(Sql({{"sql", "SELECT 1; -- the end"}}).status, 200);
}

// A library that copies JSON by recursion would end the process.
TEST_F(TamisServerTest, JsonOfManyLevelsIsRefused) {
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

TEST_F(TamisServerTest, TheSandboxRefusesAllThatIsNotATableOfTheStore) {
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

TEST_F(TamisServerTest, ReadOnlyServerChangesNothing) {
  Start({});
  EXPECT_THAT(Refusal("INSERT INTO cities(name) VALUES ('a')"), HasSubstr("without --write"));
  EXPECT_THAT(Refusal("DELETE FROM cities"), HasSubstr("without --write"));
  for (const auto& [method, target] :
       std::vector<std::pair<std::string, std::string>>{{"PUT", "/v1/tables/cities/rows/a"},
                                                        {"DELETE", "/v1/tables/cities/rows/a"},
                                                        {"POST", "/v1/tables/cities/rows"}}) {
    EXPECT_EQ(Ask(method, target, "{}").status, 403);
  }
}

TEST_F(TamisServerTest, ATableThatWasMadeSinceIsSeen) {
  Start();
  EXPECT_EQ(Rows("SELECT count(*) FROM cities"), json({{0}}));  // the database is kept
  ASSERT_TRUE(store_->Define("later", {"a int64", "key (a)"}).ok());
  EXPECT_EQ(Rows("SELECT count(*) FROM later"), json({{0}}));
  EXPECT_THAT(Refusal("SELECT * FROM never"), HasSubstr("no such table"));
}

TEST_F(TamisServerTest, RowIsWrittenToATableThatWasMadeSince) {
  Start();
  EXPECT_EQ(Rows("SELECT count(*) FROM cities"), json({{0}}));  // the database is kept
  ASSERT_TRUE(store_->Define("later", {"a int64", "key (a)"}).ok());
  EXPECT_EQ(Ask("PUT", "/v1/tables/later/rows/1", "{}").body, "{\"written\":1}\n");
}

TEST_F(TamisServerTest, ColumnThatWasAddedSinceIsSeen) {
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

TEST_F(TamisServerTest, PatternsAreShort) {
  Start();
  const std::string longest(200, '%');
  EXPECT_EQ(Rows("SELECT 'a' LIKE ?, 'a' GLOB ?", {longest, std::string(200, '*')}),
            json({{1, 1}}));
  EXPECT_THAT(Refusal("SELECT 'a' LIKE '" + longest + "%'"), HasSubstr("pattern too complex"));
}

TEST_F(TamisServerTest, StatementsEndAfterTheirTime) {
  Start();
  const auto answer = Sql({{"sql", kEndless}, {"timeout_ms", 20}});
  EXPECT_EQ(answer.status, 504);
  EXPECT_THAT(answer.body, HasSubstr("ended after 20 ms"));
  EXPECT_EQ(Rows("SELECT 1"), json({{1}}));
}

TEST_F(TamisServerTest, ChangeThatIsCutOffMayHaveBeenMade) {
  Start();
  for (const char* name : {"rs1", "rs2"}) {
    const Status paused = AwaitStatus(&store_->engine().executor(), {}, [&](auto done) {
      store_->admin().PauseServer(name, std::move(done));
    });
    ASSERT_TRUE(paused.ok()) << paused;
  }
  const auto changed =
      Sql({{"sql", "INSERT INTO cities VALUES ('new', 1, 2.0, x'00')"}, {"timeout_ms", 100}});
  EXPECT_EQ(changed.status, 504) << changed.body;
  EXPECT_THAT(changed.body, HasSubstr("may"));
  EXPECT_FALSE(changed.headers.contains("Retry-After"));
  // A query changed nothing, and says so by its own time.
  const auto asked = Sql({{"sql", "SELECT * FROM cities"}, {"timeout_ms", 100}});
  EXPECT_EQ(asked.status, 504) << asked.body;
  EXPECT_THAT(asked.body, HasSubstr("timeout_ms"));
}

TEST_F(TamisServerTest, ADisconnectEndsTheStatement) {
  Start();
  HttpClient client(server_->port());
  client.Send("POST", "/v1/sql", json({{"sql", kEndless}}).dump());
  AwaitStatements(1);
  client.Close();
  AwaitStatements(0);
  EXPECT_THAT(Ask("GET", "/metrics").body,
              HasSubstr("tamis_statements_total{outcome=\"cancelled\"} 1"));
}

// A client that does not read holds neither the only thread nor, after the idle time, a statement.
TEST_F(TamisServerTest, AClientThatTakesNothingHoldsNoThread) {
  auto options = Writable();
  options.threads = 1;
  options.http.idle_time = std::chrono::seconds(2);
  Start(options);
  HttpClient slow(server_->port());
  slow.Send("POST", "/v1/sql", json({{"sql", Count("1000000000")}}).dump(), {{"Accept", kStream}});
  EXPECT_EQ(Rows("SELECT 1"), json({{1}}));
  AwaitStatements(0);
}

TEST_F(TamisServerTest, MoreStatementsThanPermittedAreRefused) {
  auto options = Writable();
  options.sql.max_statements = 1;
  Start(options);
  HttpClient client(server_->port());
  client.Send("POST", "/v1/sql", json({{"sql", kEndless}}).dump());
  AwaitStatements(1);
  const auto refused = Sql({{"sql", "SELECT 1"}});
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("Retry-After"), "1");
  client.Close();
  AwaitStatements(0);
  EXPECT_EQ(Rows("SELECT 1"), json({{1}}));
}

TEST_F(TamisServerTest, StopCancelsWhatRuns) {
  Start();
  HttpClient client(server_->port());
  client.Send("POST", "/v1/sql", json({{"sql", kEndless}}).dump());
  AwaitStatements(1);
  server_->Stop(std::chrono::milliseconds(1));
  const auto answer = client.Receive();
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("the server is stopping"));
}

// Each route whose region servers are silent ends with its client, its time and the server.
class SilentServersTest : public TamisServerTest {
 protected:
  static constexpr const char* kRow = "/v1/tables/cities/rows/a";

  void StartSilent(TamisServer::Options options = Writable()) {
    options.may_administer = true;
    Start(options);
    Each([&](const char* server, auto done) { store_->admin().PauseServer(server, done); });
  }
  void TearDown() override {
    Each([&](const char* server, auto done) { store_->admin().ResumeServer(server, done); });
  }
  template <class Change>
  void Each(Change change) {
    for (const char* server : {"rs1", "rs2"}) {
      EXPECT_EQ(Await<Status>(&store_->engine().executor(),
                              [&](auto done) { change(server, std::move(done)); }),
                Status());
    }
  }
  static std::string Split(RegionId region) {
    pb::ClusterCall call;
    call.mutable_split_region()->set_region(region.number());
    return call.SerializeAsString();
  }
  RegionId Region() {
    return Await<Result<std::vector<RegionInfo>>>(
               &store_->engine().executor(),
               [&](auto done) { store_->engine().cluster().ListRegions("cities", {}, done); })
        ->front()
        .id;
  }
};

TEST_F(SilentServersTest, TimeEndsARead) {
  auto options = Writable();
  options.sql.max_time = std::chrono::milliseconds(100);
  StartSilent(options);
  const auto answer = Ask("GET", kRow);
  EXPECT_EQ(answer.status, 504);
  EXPECT_THAT(answer.body, HasSubstr("ended after 100 ms"));
}

TEST_F(SilentServersTest, TimeEndsAClusterCallWhoseCallbackIsLate) {
  auto options = Writable();
  options.sql.max_time = std::chrono::milliseconds(100);
  const RegionId region = Region();
  StartSilent(options);
  const auto answer = Ask("POST", "/v1/cluster", Split(region));
  EXPECT_EQ(answer.status, 504);
  EXPECT_THAT(answer.body, HasSubstr("a change may have been made"));
}

TEST_F(SilentServersTest, DisconnectsEndCalls) {
  const RegionId region = Region();
  StartSilent();
  const std::vector<std::tuple<std::string, std::string, std::string>> calls = {
      {"GET", kRow, ""},
      {"PUT", kRow, R"({"people": 1})"},
      {"POST", "/v1/tables/cities/rows", R"([{"name": "a"}])"},
      {"POST", "/v1/cluster", Split(region)}};
  for (const auto& [method, target, body] : calls) {
    HttpClient client(server_->port());
    client.Send(method, target, body);
    AwaitStatements(1);
    client.Close();
    AwaitStatements(0);
  }
}

TEST_F(SilentServersTest, StopEndsCalls) {
  const RegionId region = Region();
  StartSilent();
  HttpClient read(server_->port());
  HttpClient write(server_->port());
  HttpClient split(server_->port());
  read.Send("GET", kRow);
  write.Send("PUT", kRow, R"({"people": 1})");
  split.Send("POST", "/v1/cluster", Split(region));
  AwaitStatements(3);
  server_->Stop(std::chrono::milliseconds(1));
  EXPECT_EQ(read.Receive().status, 503);
  // 503: no worker had begun it, so it changed nothing.
  EXPECT_THAT(write.Receive().status, AnyOf(503, 504));
  EXPECT_THAT(split.Receive().status, AnyOf(503, 504));
}

TEST_F(SilentServersTest, CallsCountAmongTheStatements) {
  auto options = Writable();
  options.sql.max_statements = 1;
  StartSilent(options);
  HttpClient first(server_->port());
  first.Send("GET", kRow);
  AwaitStatements(1);
  EXPECT_EQ(Ask("GET", "/v1/tables").status, 503);
  EXPECT_EQ(Sql({{"sql", "SELECT 1"}}).status, 503);
  first.Close();
  AwaitStatements(0);
}

// A wait for filters holds no thread.
TEST_F(TamisServerTest, WaitsForFiltersLeaveTheWorkersToOthers) {
  auto options = Writable();
  options.threads = 1;
  Start(options);
  pb::ClusterCall call;
  call.mutable_await_routed()->set_table("cities");
  call.mutable_await_routed()->set_timeout_ns(1'000'000'000);
  pb::ClusterAnswer answer;
  ASSERT_TRUE(answer.ParseFromString(Ask("POST", "/v1/cluster", call.SerializeAsString()).body));
  EXPECT_TRUE(answer.routed());
}

// The rest of a request may come while the server stops.
TEST_F(TamisServerTest, RequestsThatEndWhileTheServerStopsDoNoHarm) {
  for (int round = 0; round < 5; ++round) {
    Start();
    std::vector<std::unique_ptr<HttpClient>> clients;
    for (int i = 0; i < 32; ++i) {
      clients.push_back(std::make_unique<HttpClient>(server_->port()));
      clients.back()->SendRaw(
          "POST /v1/tables/cities/rows HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n[");
    }
    std::thread stop([&] { server_->Stop(std::chrono::milliseconds(round)); });
    for (const auto& client : clients) client->SendRaw("]");
    stop.join();
    for (const auto& client : clients) {
      EXPECT_THAT(client->Receive().status, testing::AnyOf(0, 200, 503));
    }
  }
}

TEST_F(TamisServerTest, RowsAreWrittenReadAndDeletedByTheirKeys) {
  Start();
  EXPECT_EQ(Ask("PUT", "/v1/tables/cities/rows/a%2Cb", R"({"people": 5})").body,
            "{\"written\":1}\n");
  EXPECT_EQ(json::parse(Ask("GET", "/v1/tables/cities/rows/a%2Cb").body),
            json({{"name", "a,b"}, {"people", 5}, {"area", nullptr}, {"flag", nullptr}}));
  EXPECT_EQ(
      Ask("POST", "/v1/tables/cities/rows", R"([{"name": "c"}, {"name": "d", "area": 1.5}])").body,
      "{\"written\":2}\n");
  EXPECT_EQ(Ask("DELETE", "/v1/tables/cities/rows/c").status, 200);
  EXPECT_EQ(Ask("DELETE", "/v1/tables/cities/rows/c").status, 404);
  EXPECT_EQ(Ask("GET", "/v1/tables/cities/rows/c").status, 404);
  EXPECT_EQ(Rows("SELECT name FROM cities ORDER BY 1"), json({{"a,b"}, {"d"}}));

  const auto problem = [&](const std::string& method, const std::string& target,
                           const std::string& body, int status) {
    const auto answer = Ask(method, target, body);
    EXPECT_EQ(answer.status, status) << answer.body;
    return json::parse(answer.body).value("detail", "");
  };
  EXPECT_THAT(problem("GET", "/v1/tables/cities/rows/a,b", "", 400),
              HasSubstr("the path has 2 values"));
  EXPECT_THAT(problem("GET", "/v1/tables/none/rows/a", "", 404), HasSubstr("none"));
  EXPECT_THAT(problem("PUT", "/v1/tables/cities/rows/a", "{", 400), HasSubstr("no JSON"));
  EXPECT_THAT(problem("PUT", "/v1/tables/cities/rows/a", R"({"name": "b"})", 400),
              HasSubstr("is \"b\" in the body and \"a\" in the path"));
  EXPECT_THAT(problem("PUT", "/v1/tables/cities/rows/a", R"({"peple": 1})", 400),
              HasSubstr("no column \"peple\""));
  EXPECT_THAT(problem("POST", "/v1/tables/cities/rows", R"([{"name": "x"}, 5])", 400),
              HasSubstr("the 1 rows before it were written"));
}

TEST_F(TamisServerTest, RowIsChangedOnlyAsLongAsItHasTheTagOfIfMatch) {
  Start();
  const std::string row = "/v1/tables/cities/rows/a";
  const auto ask = [&](const std::string& method, const std::string& header,
                       const std::string& value, const std::string& body = "") {
    return Ask(method, row, body, {{header, value}});
  };
  EXPECT_EQ(ask("PUT", "If-Match", "*", "{}").status, 412);  // there is none
  EXPECT_EQ(ask("DELETE", "If-Match", "*").status, 412);
  const auto made = ask("PUT", "If-None-Match", "*", R"({"people": 5, "area": 1.5})");
  ASSERT_EQ(made.status, 200) << made.body;
  const std::string first = made.headers.at("ETag");
  EXPECT_EQ(Ask("GET", row).headers.at("ETag"), first);
  const auto again = ask("PUT", "If-None-Match", "*", "{}");
  EXPECT_EQ(again.status, 412);
  EXPECT_THAT(json::parse(again.body).value("detail", ""),
              HasSubstr("does not meet If-None-Match"));

  const auto changed = ask("PUT", "If-Match", "\"x\", " + first, R"({"people": 6})");
  ASSERT_EQ(changed.status, 200) << changed.body;
  const std::string second = changed.headers.at("ETag");
  EXPECT_NE(second, first);
  EXPECT_EQ(Ask("GET", row).headers.at("ETag"), second);
  EXPECT_EQ(ask("PUT", "If-Match", first, "{}").status, 412);
  EXPECT_EQ(ask("PUT", "If-Match", "W/" + second, "{}").status, 412);  // a weak tag matches none
  EXPECT_EQ(ask("DELETE", "If-Match", first).status, 412);
  EXPECT_EQ(ask("DELETE", "If-None-Match", second).status, 412);
  EXPECT_EQ(Rows("SELECT * FROM cities"), json({{"a", 6, nullptr, nullptr}}));

  EXPECT_EQ(ask("GET", "If-None-Match", "W/" + second).status, 304);
  EXPECT_EQ(ask("GET", "If-None-Match", first).status, 200);
  EXPECT_EQ(ask("GET", "If-Match", first).status, 412);
  EXPECT_EQ(ask("HEAD", "If-Match", second).headers.at("ETag"), second);
  for (const char* wrong : {"1", "\"a\" \"b\"", "\"a", "\"a\","}) {
    const auto refused = ask("PUT", "If-Match", wrong, "{}");
    EXPECT_EQ(refused.status, 400) << wrong;
    EXPECT_THAT(refused.body, HasSubstr("in double quotes"));
  }
  EXPECT_EQ(ask("PUT", "If-Unmodified-Since", "Thu, 01 Jan 2026 00:00:00 GMT", "{}").status, 400);
  EXPECT_EQ(ask("DELETE", "If-Match", second).status, 200);
  EXPECT_EQ(Ask("GET", row).status, 404);
}

// Each client adds 1 to what it read, and reads again when somebody else was first.
TEST_F(TamisServerTest, NoChangeUnderIfMatchIsLost) {
  Start();
  constexpr int kClients = 4;
  constexpr int kChanges = 25;
  ASSERT_EQ(Ask("PUT", "/v1/tables/cities/rows/a", R"({"people": 0})").status, 200);
  std::vector<std::thread> clients;
  std::atomic<int> refused = 0;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      HttpClient client(server_->port());
      for (int done = 0; done < kChanges;) {
        const auto read = client.Get("/v1/tables/cities/rows/a");
        json row = json::parse(read.body);
        row["people"] = row["people"].get<int>() + 1;
        const auto written = client.Ask("PUT", "/v1/tables/cities/rows/a", row.dump(),
                                        {{"If-Match", read.headers.at("ETag")}});
        EXPECT_THAT(written.status, testing::AnyOf(200, 412)) << written.body;
        written.status == 200 ? ++done : ++refused;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(Rows("SELECT people FROM cities"), json({{kClients * kChanges}}));
  RecordProperty("refused", refused);
}

TEST_F(TamisServerTest, RowsOfABatchHaveConditionsOfTheirOwn) {
  Start();
  const std::string rows = "/v1/tables/cities/rows";
  const auto post = [&](const json& body, const std::map<std::string, std::string>& headers = {}) {
    return Ask("POST", rows, body.dump(), headers);
  };
  const json both = {{{"name", "a"}, {"people", 1}}, {{"name", "b"}, {"people", 2}}};
  EXPECT_EQ(post(both, {{"If-None-Match", "*"}}).status, 200);
  const auto there = post(both, {{"If-None-Match", "*"}});
  EXPECT_EQ(there.status, 412);
  EXPECT_THAT(there.body, HasSubstr("row 0 of the array; the 0 rows before it were written"));
  const std::string a = Ask("GET", rows + "/a").headers.at("ETag");
  const json change = {{{"name", "a"}, {"people", 3}}, {{"name", "b"}, {"people", 4}}};
  const auto half = post({{"rows", change}, {"if_match", {a, "\"other\""}}});
  EXPECT_EQ(half.status, 412);
  EXPECT_THAT(half.body, HasSubstr("row 1 of the array; the 1 rows before it were written"));
  EXPECT_EQ(Rows("SELECT name, people FROM cities ORDER BY 1"), json::array({{"a", 3}, {"b", 2}}));
  EXPECT_EQ(post({{"rows", change}, {"if_match", {nullptr, "*"}}}).status, 200);
  EXPECT_EQ(Rows("SELECT name, people FROM cities ORDER BY 1"), json::array({{"a", 3}, {"b", 4}}));
  EXPECT_THAT(post(change, {{"If-Match", a}}).body, HasSubstr("a condition on several rows"));
  EXPECT_THAT(post({{"rows", change}, {"if_match", {a}}}).body, HasSubstr("each of the 2 rows"));
  EXPECT_THAT(post({{"rows", change}, {"if_match", {a, a}}}, {{"If-Match", "*"}}).body,
              HasSubstr("not both"));
  EXPECT_THAT(post({{"lines", change}}).body, HasSubstr("as \\\"rows\\\""));
}

TEST_F(TamisServerTest, TablesIndexesRegionsAndServersAreDescribed) {
  Start();
  ASSERT_TRUE(store_->engine().WaitUntilRouted(**store_->engine().Table("cities"),
                                               std::chrono::minutes(1)));
  json table = json::parse(Ask("GET", "/v1/tables/cities").body);
  EXPECT_EQ(table["key"], json({"name"}));
  EXPECT_EQ(table["columns"][1], json({{"name", "people"}, {"type", "int64"}, {"nullable", true}}));
  EXPECT_GT(table["estimated_rows"], 0);
  table.erase("estimated_rows");
  EXPECT_EQ(json::parse(Ask("GET", "/v1/tables").body)["tables"], json({table}));
  const json index = json::parse(Ask("GET", "/v1/tables/cities/indexes").body)["indexes"][0];
  EXPECT_EQ(index["columns"], json({"people"}));
  EXPECT_EQ(index["regions_complete"], 1);
  EXPECT_EQ(json::parse(Ask("GET", "/v1/tables/cities/regions").body)["regions"].size(), 1);
  EXPECT_EQ(json::parse(Ask("GET", "/v1/servers").body)["servers"].size(), 2);
  EXPECT_EQ(Ask("GET", "/v1/tables/none").status, 404);
}

TEST_F(TamisServerTest, TheDescriptionOfTheInterfaceNamesEveryRoute) {
  Start();
  const json document = json::parse(Ask("GET", "/v1/openapi.json").body);
  EXPECT_EQ(document["openapi"], "3.1.0");
  EXPECT_TRUE(document["paths"]["/v1/sql"].contains("post"));
  const json& row = document["paths"]["/v1/tables/{table}/rows/{key}"];
  EXPECT_EQ(row.size(), 3);
  EXPECT_EQ(row["get"]["parameters"].size(), 4);
  EXPECT_TRUE(row["put"]["responses"].contains("412"));
  const auto wrong = Ask("PATCH", "/v1/tables/cities/rows/a");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.at("Allow"), "GET, PUT, DELETE");
  EXPECT_EQ(Ask("GET", "/v1/nothing").status, 404);
}

TEST_F(TamisServerTest, RequestsNeedTheTokenAndTheServersName) {
  auto options = Writable();
  options.token = "0123456789abcdef";
  options.host_names = {"tamis.example"};
  Start(options);
  const auto status = [&](const std::map<std::string, std::string>& headers,
                          const std::string& target = "/v1/tables") {
    return Ask("GET", target, "", headers).status;
  };
  const std::string good = "Bearer 0123456789abcdef";
  EXPECT_EQ(status({}), 401);
  EXPECT_EQ(status({{"Authorization", "Bearer 0123456789abcdeg"}}), 401);
  EXPECT_EQ(status({{"Authorization", "Basic 0123456789abcdef"}}), 401);
  EXPECT_EQ(status({{"Authorization", good}}), 200);
  EXPECT_EQ(status({}, "/healthz"), 200);
  EXPECT_EQ(status({}, "/metrics"), 401);
  EXPECT_EQ(status({{"Authorization", good}, {"Host", "evil.example"}}), 421);
  EXPECT_EQ(status({{"Authorization", good}, {"Host", "TAMIS.example:443"}}), 200);
  EXPECT_EQ(status({{"Authorization", good}, {"Origin", "http://evil.example"}}), 403);
  EXPECT_EQ(status({{"Authorization", good}, {"Origin", "http://localhost"}}), 200);
  EXPECT_EQ(status({{"Authorization", good}, {"Host", ""}}), 421);
}

TEST_F(TamisServerTest, MetricsCountSearchesAndStatements) {
  Start();
  Rows("SELECT * FROM cities WHERE people = 5");
  Refusal("SELECT nothing");
  AwaitStatements(0);
  const std::string text = Ask("GET", "/metrics").body;
  for (const char* line : {"tamis_searches_total 1\n", "tamis_search_regions_total_total 1\n",
                           "tamis_statements_total{outcome=\"complete\"} 1\n",
                           "tamis_statements_total{outcome=\"failed\"} 1\n",
                           "tamis_http_requests_total{route=\"POST /v1/sql\",status=\"400\"} 1\n",
                           "tamis_search_routing_seconds_count 1\n",
                           "tamis_search_routing_seconds_bucket{le=\"+Inf\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_TRUE(text.ends_with("# EOF\n"));
}

}  // namespace
}  // namespace tamis::server
