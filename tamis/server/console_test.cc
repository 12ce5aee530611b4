// The console's files, its events and its operations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "tamis/server/console_page.h"
#include "tamis/server/event_streams.h"
#include "tamis/server/tamis_server.h"
#include "tamis/server/testing/http_client.h"

namespace tamis::server {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class ConsoleTest : public testing::Test {
 protected:
  ConsoleTest()
      : directory_(testing::TempDir() + "/console_" +
                   testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(directory_);
    OpenedStore::Options options;
    options.servers = 2;
    store_ = *OpenedStore::Open(directory_, options);
    EXPECT_TRUE(store_
                    ->Define("cities", {"name text", "people int64", "area int64", "key (name)",
                                        "index people (people)"})
                    .ok());
  }
  ~ConsoleTest() override {
    server_.reset();
    store_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Start(bool may_write = true, TamisServer::Options options = {}) {
    options.sql.may_write = may_write;
    server_.reset();
    server_ = *TamisServer::Start(store_, options);
  }
  HttpClient::Answer Ask(const std::string& method, const std::string& target,
                         const std::string& body = "",
                         const std::map<std::string, std::string>& headers = {}) {
    return HttpClient(server_->port()).Ask(method, target, body, headers);
  }
  int Post(const std::string& target, const std::string& body = "{}",
           const std::map<std::string, std::string>& headers = {}) {
    return Ask("POST", target, body, headers).status;
  }
  void InsertCities() {
    const std::string rows =
        "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c WHERE x < 1000) "
        "INSERT INTO cities SELECT printf('city %04d', x), x, x FROM c";
    ASSERT_EQ(Post("/v1/sql", json({{"sql", rows}}).dump()), 200);
  }
  json Regions() { return json::parse(Ask("GET", "/v1/tables/cities/regions").body)["regions"]; }
  void Split() {
    ASSERT_EQ(Post("/v1/regions/" + Regions()[0]["id"].get<std::string>() + "/split"), 200);
  }

  const std::string directory_;
  std::shared_ptr<OpenedStore> store_;
  std::unique_ptr<TamisServer> server_;
};

TEST_F(ConsoleTest, FilesAreSmallAndLoadNothingFromElsewhere) {
  TamisServer::Options options;
  options.token = "0123456789abcdef";
  Start(false, options);
  const auto page = Ask("GET", "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.at("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.body, HasSubstr("<!doctype html>"));
  size_t bytes = 0;
  for (const auto& [name, content] : ConsoleFiles()) {
    const auto file = Ask("GET", "/console/" + std::string(name));
    EXPECT_EQ(file.body, content);
    EXPECT_EQ(file.status, 200) << name;
    bytes += file.body.size();
    const std::string& policy = file.headers.at("Content-Security-Policy");
    EXPECT_THAT(policy, HasSubstr("default-src 'none'; script-src 'self'; style-src 'self'"));
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
    EXPECT_EQ(file.headers.at("X-Content-Type-Options"), "nosniff");
    // The name of a language, which nothing is loaded from.
    const std::string content_without_svg =
        std::regex_replace(file.body, std::regex("http://www\\.w3\\.org/2000/svg"), "");
    // The policy would refuse them; a page that has none works without a warning, too.
    for (const char* wrong : {"://", "innerHTML", "eval(", " style=", " onclick=", "<style"}) {
      EXPECT_THAT(content_without_svg, Not(HasSubstr(wrong))) << name;
    }
  }
  EXPECT_LT(bytes, 200'000);
  EXPECT_EQ(Ask("GET", "/console/none.js").status, 404);
  EXPECT_EQ(Ask("GET", "/v1/events").status, 401);
  EXPECT_EQ(Post("/v1/servers/rs1/kill"), 401);
}

TEST_F(ConsoleTest, EventsBeginWithTheStoreAndTellItsChanges) {
  Start();
  InsertCities();
  HttpClient console(server_->port());
  console.Send("GET", "/v1/events");
  const std::string begin = console.ReceiveUntil("event: totals");
  EXPECT_THAT(begin, HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(begin, HasSubstr("event: hello\ndata: {\"store\":"));
  EXPECT_THAT(begin, HasSubstr("\"can_operate\":true"));
  EXPECT_THAT(
      begin,
      HasSubstr("{\"tables\":[{\"name\":\"cities\",\"columns\":[\"name\",\"people\",\"area\"],"
                "\"key\":[\"name\"],\"indexes\":[\"people\"]}]}"));
  EXPECT_THAT(begin, HasSubstr("event: regions\ndata: {\"table\":\"cities\",\"put\":[["));
  EXPECT_THAT(begin, HasSubstr("{\"name\":\"rs1\",\"state\":\"live\""));

  Split();
  EXPECT_THAT(console.ReceiveUntil("('city 0"), HasSubstr("('city 0"));  // a start in the middle
  EXPECT_EQ(Post("/v1/servers/rs1/kill"), 200);
  EXPECT_THAT(console.ReceiveUntil("\"state\":\"dead\""), HasSubstr("\"state\":\"dead\""));
  EXPECT_EQ(Post("/v1/servers/rs1/resume"), 200);
  ASSERT_TRUE(store_->Define("later", {"a int64", "key (a)"}).ok());
  EXPECT_THAT(console.ReceiveUntil("\"name\":\"later\""), HasSubstr("\"name\":\"later\""));
  EXPECT_EQ(Post("/v1/sql", R"({"sql": "SELECT * FROM cities WHERE people = 5"})"), 200);
  EXPECT_THAT(console.ReceiveUntil("{\"searches\":1,"), HasSubstr("{\"searches\":1,"));
}

TEST_F(ConsoleTest, StreamsOfEventsAreLimitedAndEndWithTheServer) {
  TamisServer::Options options;
  options.events.max_streams = 1;
  Start(false, options);
  HttpClient console(server_->port());
  console.Send("GET", "/v1/events");
  console.ReceiveUntil("event: totals");
  EXPECT_THAT(Ask("GET", "/metrics").body, HasSubstr("\ntamis_event_streams 1\n"));
  const auto refused = Ask("GET", "/v1/events");
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("streams of events already"));
  console.Close();
  while (Ask("GET", "/metrics").body.find("\ntamis_event_streams 0\n") == std::string::npos) {
  }
  HttpClient next(server_->port());
  next.Send("GET", "/v1/events");
  next.ReceiveUntil("event: totals");
  server_->Stop(std::chrono::seconds(60));  // does not wait for the stream to end by itself
  EXPECT_TRUE(next.ReceiveUntil("\r\n0\r\n\r\n").ends_with("\r\n0\r\n\r\n"));  // the last chunk
}

TEST_F(ConsoleTest, HeadOfTheEventsEnds) {
  Start();
  HttpClient client(server_->port());
  const auto head = client.Ask("HEAD", "/v1/events");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("Content-Type"), "text/event-stream");
  EXPECT_EQ(client.Get("/healthz").status, 200);  // the connection is used again
}

// A client that has taken nothing since its stream began.
class StuckExchange final : public Exchange {
 public:
  const Request& request() const override { return request_; }
  void Send(Response) override {}
  void Begin(Response) override {}
  void Write(std::string, std::function<void(bool)> sent) override { sent_ = std::move(sent); }
  void End() override {}
  void Abort() override { aborted = true; }
  void OnDisconnect(std::function<void()>) override {}

  // The stream holds the exchange, and the callback the stream.
  void ForgetCallback() { sent_ = nullptr; }

  std::atomic<bool> aborted = false;

 private:
  Request request_;
  std::function<void(bool)> sent_;
};

TEST_F(ConsoleTest, AStreamWhoseClientTakesNothingIsCut) {
  std::atomic<int> searches = 0;
  EventStreams streams(store_,
                       {.hello = [] { return std::string("{}"); },
                        .totals = [&] { return std::to_string(++searches); }},
                       {.max_pending_bytes = 100, .pause = std::chrono::milliseconds(0)});
  const auto stuck = std::make_shared<StuckExchange>();
  streams.Answer(stuck);
  while (!stuck->aborted) std::this_thread::yield();
  while (streams.open() > 0) std::this_thread::yield();
  stuck->ForgetCallback();
}

TEST_F(ConsoleTest, OperationsNeedTheRightToWrite) {
  Start(/*may_write=*/false);
  EXPECT_EQ(Post("/v1/servers/rs1/kill"), 403);
  EXPECT_EQ(Post("/v1/regions/1/split"), 403);
  Start();
  EXPECT_EQ(Post("/v1/servers/rs1/kill", "{}", {{"Origin", "http://elsewhere"}}), 403);
  EXPECT_EQ(Post("/v1/servers/nobody/kill"), 404);
  EXPECT_EQ(Post("/v1/regions/x/split"), 400);
  EXPECT_EQ(Post("/v1/regions/999999/split"), 404);
  EXPECT_EQ(Post("/v1/regions/1/move"), 400);
  EXPECT_EQ(Ask("GET", "/v1/servers/rs1/kill").status, 405);
}

TEST_F(ConsoleTest, ServersAndRegionsAreOperated) {
  Start();
  InsertCities();
  Split();
  const json regions = Regions();
  ASSERT_EQ(regions.size(), 2);
  const std::string other = regions[0]["server"] == "rs1" ? "rs2" : "rs1";
  const std::string region = "/v1/regions/" + regions[0]["id"].get<std::string>();
  EXPECT_EQ(Post(region + "/move", json({{"server", other}}).dump()), 200);
  EXPECT_EQ(Regions()[0]["server"], other);
  EXPECT_EQ(Post("/v1/servers/" + other + "/pause"), 200);
  EXPECT_THAT(Ask("GET", "/v1/servers").body, HasSubstr("\"paused\""));
  EXPECT_EQ(Post("/v1/servers/" + other + "/resume"), 200);
  EXPECT_THAT(Ask("GET", "/v1/servers").body, Not(HasSubstr("\"paused\"")));
}

TEST_F(ConsoleTest, AStatementTellsItsOutcomeInEachRegion) {
  Start();
  InsertCities();
  Split();
  // Until it has heard of the split, the coordinator is complete for the region of before.
  while (store_->engine().knowledge().regions != 2) std::this_thread::yield();
  ASSERT_TRUE(store_->engine().WaitUntilRouted(**store_->engine().Table("cities"),
                                               std::chrono::minutes(1)));
  const json regions = Regions();
  const auto outcomes = [&](const std::string& condition) {
    const auto answer =
        Ask("POST", "/v1/sql",
            json({{"sql", "SELECT * FROM cities WHERE " + condition}, {"explain_regions", true}})
                .dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    const json document = json::parse(answer.body);
    EXPECT_THAT(document["explain"].get<std::string>(), HasSubstr("regions asked"));
    return document["searches"][0]["regions"];
  };
  const std::string low = regions[0]["id"];
  const std::string high = regions[1]["id"];
  EXPECT_EQ(outcomes("people = 1"), json({{"hit", {low}}, {"range", {high}}}));
  EXPECT_EQ(outcomes("name = 'city 0001'"), json({{"hit", {low}}, {"key", {high}}}));
  EXPECT_EQ(outcomes("area = 1"), json({{"hit", {low}}, {"in_vain", {high}}}));
  const json counted = json::parse(
      Ask("POST", "/v1/sql",
          R"({"sql": "SELECT count(*) FROM cities WHERE people = 1", "explain_regions": true})")
          .body);
  EXPECT_EQ(counted["searches"][0]["regions"]["hit"], json({low}));
  EXPECT_THAT(Ask("POST", "/v1/sql", R"({"sql": "SELECT 1", "explain": true})").body,
              HasSubstr("no table of the store was searched"));
}

}  // namespace
}  // namespace tamis::server
