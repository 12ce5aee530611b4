// Calls that end early: by their time, by their client, by the stop of the server, or for want of
// room.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tamis/remote/messages.h"
#include "tamis/server/testing/tamis_server_test_case.h"

namespace tamis::server {
namespace {

using testing::HasSubstr;

class ServerCallsEndTest : public TamisServerTest {};

TEST_F(ServerCallsEndTest, StatementsEndAfterTheirTime) {
  Start();
  const auto answer = Sql({{"sql", kEndless}, {"timeout_ms", 20}});
  EXPECT_EQ(answer.status, 504);
  EXPECT_THAT(answer.body, HasSubstr("ended after 20 ms"));
  EXPECT_EQ(Rows("SELECT 1"), json({{1}}));
}

TEST_F(ServerCallsEndTest, ChangeThatIsCutOffMayHaveBeenMade) {
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

TEST_F(ServerCallsEndTest, ADisconnectEndsTheStatement) {
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
TEST_F(ServerCallsEndTest, AClientThatTakesNothingHoldsNoThread) {
  auto options = Writable();
  options.threads = 1;
  options.http.idle_time = std::chrono::seconds(2);
  Start(options);
  HttpClient slow(server_->port());
  slow.Send("POST", "/v1/sql", json({{"sql", Count("1000000000")}}).dump(), {{"Accept", kStream}});
  EXPECT_EQ(Rows("SELECT 1"), json({{1}}));
  AwaitStatements(0);
}

TEST_F(ServerCallsEndTest, MoreStatementsThanPermittedAreRefused) {
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

TEST_F(ServerCallsEndTest, StopCancelsWhatRuns) {
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
  EXPECT_THAT(write.Receive().status, testing::AnyOf(503, 504));
  EXPECT_THAT(split.Receive().status, testing::AnyOf(503, 504));
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
TEST_F(ServerCallsEndTest, WaitsForFiltersLeaveTheWorkersToOthers) {
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
TEST_F(ServerCallsEndTest, RequestsThatEndWhileTheServerStopsDoNoHarm) {
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

}  // namespace
}  // namespace tamis::server
