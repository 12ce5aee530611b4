// Rows by their keys: written, read, deleted, and changed under conditions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tamis/server/testing/tamis_server_test_case.h"

namespace tamis::server {
namespace {

using testing::HasSubstr;

class ServerRowsTest : public TamisServerTest {};

TEST_F(ServerRowsTest, RowsAreWrittenReadAndDeletedByTheirKeys) {
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

TEST_F(ServerRowsTest, RowIsChangedOnlyAsLongAsItHasTheTagOfIfMatch) {
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
TEST_F(ServerRowsTest, NoChangeUnderIfMatchIsLost) {
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

TEST_F(ServerRowsTest, RowsOfABatchHaveConditionsOfTheirOwn) {
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

TEST_F(ServerRowsTest, RowIsWrittenToATableThatWasMadeSince) {
  Start();
  EXPECT_EQ(Rows("SELECT count(*) FROM cities"), json({{0}}));  // the database is kept
  ASSERT_TRUE(store_->Define("later", {"a int64", "key (a)"}).ok());
  EXPECT_EQ(Ask("PUT", "/v1/tables/later/rows/1", "{}").body, "{\"written\":1}\n");
}

}  // namespace
}  // namespace tamis::server
