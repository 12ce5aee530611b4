// The fixture of tests of a whole server: a store of two servers with a table of cities.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tamis/server/tamis_server.h"
#include "tamis/server/testing/http_client.h"

namespace tamis::server {

using nlohmann::json;

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

}  // namespace tamis::server
