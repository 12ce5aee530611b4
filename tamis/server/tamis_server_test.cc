#include "tamis/server/tamis_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tamis/server/testing/tamis_server_test_case.h"

namespace tamis::server {
namespace {

using testing::HasSubstr;

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
  EXPECT_EQ(status({{"Authorization", good}, {"Content-Encoding", "gzip"}}), 415);
  EXPECT_EQ(status({{"Authorization", good}, {"Content-Encoding", "identity"}}), 200);
  EXPECT_EQ(status({{"Authorization", good}}, "http://localhost/v1/tables"), 200);
  EXPECT_EQ(status({{"Authorization", good}}, "http://evil.example/v1/tables"), 421);
  HttpClient twice(server_->port());
  twice.SendRaw("GET /healthz HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(twice.Receive().status, 421);
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
