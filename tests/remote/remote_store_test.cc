// A store behind a server, as a program of this project uses it: with a network that cuts answers,
// with servers that end and begin, and beside the same store in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "tamis/cluster/await_index.h"
#include "tamis/remote/messages.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/rocks/store.h"
#include "tamis/server/store_view.h"
#include "tamis/server/tamis_server.h"
#include "tamis/store/opened_store.h"
#include "tests/remote/cutting_proxy.h"

namespace tamis {
namespace {

using testing::HasSubstr;

constexpr const char* kSearch = "/v1/tables/t/search";
constexpr const char* kWrite = "/v1/tables/t/write";

class RemoteStoreTest : public testing::Test {
 protected:
  RemoteStoreTest()
      : directory_(testing::TempDir() + "/remote_store_test." + std::to_string(getpid())) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    local_ = *OpenedStore::Open(directory_ + "/store", {.servers = 2});
    table_ = *local_->Define("t", {"k int64", "v text", "n decimal", "key (k)", "index v (v)"});
    options_.sql.may_write = true;
    options_.may_administer = true;
    Start();
  }
  ~RemoteStoreTest() override {
    server_.reset();
    local_.reset();
    std::filesystem::remove_all(directory_);
  }

  // Begins, or ends and begins at the same address.
  void Start() {
    server_.reset();
    auto server = server::TamisServer::Start(local_, options_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    options_.http.port = server_->port();
  }
  std::shared_ptr<OpenedStore> Open(const std::string& name) {
    auto store = OpenedStore::Open(name, {});
    EXPECT_TRUE(store.ok()) << store.status();
    return *store;
  }

  static Row RowOf(int64_t key) {
    return {Value::Int64(key), Value::Text("v" + std::to_string(key % 7)),
            *Value::Parse(Type::kDecimal, std::to_string(key) + ".25")};
  }
  void Fill(int64_t rows) {
    std::vector<Write> writes;
    for (int64_t i = 0; i < rows; ++i) writes.push_back({.row = RowOf(i)});
    for (const Status& status : local_->engine().Apply(table_, std::move(writes))) {
      ASSERT_EQ(status, Status());
    }
  }
  struct Found {
    std::vector<Row> rows;
    Status end;
    Explain explain;
  };
  Found Search(OpenedStore* store, const SearchOptions& options) {
    RowStream stream = store->engine().Search(table_, options);
    Found found;
    while (true) {
      auto row = stream.Next();
      if (!row.ok()) found.end = row.status();
      if (!row.ok() || !row->has_value()) break;
      found.rows.push_back(**std::move(row));
    }
    found.explain = stream.explain();
    return found;
  }
  static Predicate IsV(const std::string& v) {
    return Predicate::Compare(1, Predicate::Op::kEq, Value::Text(v));
  }

  const std::string directory_;
  std::shared_ptr<OpenedStore> local_;
  SchemaPtr table_;
  server::TamisServer::Options options_;
  std::unique_ptr<server::TamisServer> server_;
};

// Many programs may start at once, and each opens the store.
TEST_F(RemoteStoreTest, OpeningWaitsForABusyServer) {
  options_.sql.max_statements = 1;
  Start();
  const std::string running = "\ntamis_statements_running 1\n";
  auto statement = std::make_unique<server::HttpClient>(server_->port());
  const std::string endless =
      "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x FROM c) SELECT count(*) FROM c";
  statement->Send("POST", "/v1/sql", R"({"sql": ")" + endless + R"("})");
  while (server::HttpClient(server_->port()).Get("/metrics").body.find(running) ==
         std::string::npos) {
    std::this_thread::yield();
  }
  CuttingProxy proxy(server_->port());
  std::thread opening([&] { Open(proxy.url()); });
  while (proxy.Count("/v1/cluster") < 2) std::this_thread::yield();  // the first was refused
  statement.reset();
  opening.join();
}

// A server whose own store lies behind the proxy, which sees what the server passes on.
TEST_F(RemoteStoreTest, TraceContextOfARequestIsPassedOn) {
  Fill(10);
  CuttingProxy proxy(server_->port());
  server::TamisServer::Options options;
  options.sql.may_write = true;
  const auto outer = server::TamisServer::Start(Open(proxy.url()), options);
  ASSERT_TRUE(outer.ok()) << outer.status();
  const auto ask = [&](const std::string& method, const std::string& path, const std::string& body,
                       char parent) {
    const std::string trace =
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b" + std::string(1, parent) + "-01";
    const auto answer =
        server::HttpClient((*outer)->port()).Ask(method, path, body, {{"traceparent", trace}});
    EXPECT_EQ(answer.status / 100, 2) << answer.body;
    return trace;
  };
  const std::string sql =
      ask("POST", "/v1/sql", R"({"sql": "SELECT * FROM t WHERE v = 'v3'"})", '1');
  const std::string get = ask("GET", "/v1/tables/t/rows/3", "", '2');
  const std::string search =
      ask("POST", kSearch, ToMessage(*table_, SearchOptions{}).SerializeAsString(), '3');
  EXPECT_THAT(proxy.Traces(kSearch), testing::ElementsAre(sql, get, search));
  const std::string put = ask("PUT", "/v1/tables/t/rows/3", R"({"v": "new"})", '4');
  EXPECT_THAT(proxy.Traces(kWrite), testing::ElementsAre(put));
  server::HttpClient((*outer)->port()).Get("/v1/tables/t/rows/3");
  EXPECT_EQ(proxy.Traces(kSearch).back(), "");
}

TEST_F(RemoteStoreTest, SearchesAnswerAndExplainAsInTheServer) {
  Fill(3000);
  ASSERT_TRUE(local_->engine().WaitUntilRouted(*table_, std::chrono::seconds(60)));
  const auto remote = Open(server_->address());
  EXPECT_EQ(SerializeSchema(**remote->engine().Table("t")), SerializeSchema(*table_));
  EXPECT_TRUE(remote->engine().WaitUntilRouted(*table_, std::chrono::seconds(60)));
  EXPECT_EQ(remote->engine().knowledge().regions, local_->engine().knowledge().regions);
  std::vector<SearchOptions> searches(6);
  searches[0].predicate = IsV("v3");
  searches[1].predicate = IsV("nobody");
  searches[2].key_order = true;
  searches[3].order = {{.column = 1, .descending = true}};
  searches[3].limit = 10;
  searches[4].columns = {1};
  searches[4].explained_regions = 10;
  searches[5].predicate = Predicate::Or({IsV("v1"), Predicate::IsNull(2)});
  searches[5].use_indexes = false;
  for (const SearchOptions& options : searches) {
    const Found wanted = Search(local_.get(), options);
    const Found found = Search(remote.get(), options);
    EXPECT_EQ(found.end, Status());
    EXPECT_THAT(found.rows, testing::UnorderedElementsAreArray(wanted.rows));
    if (options.key_order) {
      EXPECT_EQ(found.rows, wanted.rows);
    }
    EXPECT_EQ(found.explain.reason, wanted.explain.reason);
    EXPECT_EQ(found.explain.index, wanted.explain.index);
    EXPECT_EQ(found.explain.regions_asked, wanted.explain.regions_asked);
    EXPECT_EQ(found.explain.regions_excluded_by_filter, wanted.explain.regions_excluded_by_filter);
    EXPECT_EQ(found.explain.rows_returned, wanted.explain.rows_returned);
    EXPECT_EQ(found.explain.regions.size(), wanted.explain.regions.size());
  }
  const AggregateOptions totals{.by = {1}, .totals = {2, 0}};
  const auto wanted = *local_->engine().Aggregate(table_, totals);
  const auto found = remote->engine().Aggregate(table_, totals);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->groups.size(), wanted.groups.size());
  for (size_t i = 0; i < wanted.groups.size(); ++i) {
    EXPECT_EQ(found->groups[i].by, wanted.groups[i].by);
    for (size_t k = 0; k < 2; ++k) {
      EXPECT_EQ(found->groups[i].totals[k].sum, wanted.groups[i].totals[k].sum);
      EXPECT_EQ(found->groups[i].totals[k].greatest, wanted.groups[i].totals[k].greatest);
    }
  }
}

TEST_F(RemoteStoreTest, TablesAndIndexesAreMadeThroughTheServer) {
  const auto remote = Open(server_->address());
  const auto made = remote->Define("cities", {"city text", "people int64", "key (city)"});
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(remote->engine().Apply(*made, {{.row = {Value::Text("Rom"), Value::Int64(3)}}})[0],
            Status());
  const auto again = remote->Define(
      "cities", {"city text", "people int64", "key (city)", "index people (people)"});
  EXPECT_EQ(again.status().code(), StatusCode::kAlreadyExists) << again.status();
  const Wait wait{.deadline = remote->engine().executor().Now() + std::chrono::seconds(60)};
  Executor* const executor = &remote->engine().executor();
  const auto indexed = AwaitResult<TableSchema>(executor, wait, [&](auto done) {
    remote->admin().CreateIndex("cities", {.name = "people", .columns = {1}}, done);
  });
  ASSERT_TRUE(indexed.ok()) << indexed.status();
  const auto wider = AwaitResult<TableSchema>(executor, wait, [&](auto done) {
    remote->admin().AddColumn("cities", {.name = "area", .type = Type::kDouble}, done);
  });
  ASSERT_TRUE(wider.ok()) << wider.status();
  EXPECT_EQ(SerializeSchema(**local_->engine().Table("cities")), SerializeSchema(*wider));
  const auto computed = AwaitResult<TableSchema>(executor, wait, [&](auto done) {
    remote->admin().AddColumn("cities",
                              {.name = "small",
                               .type = Type::kText,
                               .expression = Expression{.function = Expression::Function::kLower}},
                              done);
  });
  ASSERT_TRUE(computed.ok()) << computed.status();
  const auto drop = [&](const std::string& column) {
    return AwaitResult<TableSchema>(
        executor, wait, [&](auto done) { remote->admin().DropColumn("cities", column, done); });
  };
  const auto dropped = drop("small");
  ASSERT_TRUE(dropped.ok()) << dropped.status();
  EXPECT_EQ(dropped->FindColumn("small"), std::nullopt);
  EXPECT_EQ(drop("small").status().code(), StatusCode::kNotFound);
  const Status refused = drop("area").status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("only computed columns can be dropped"));
  const auto found = remote->engine().Get(*made, {Value::Text("Rom"), {}});  // by the old schema
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((**found)[1], Value::Int64(3));
  EXPECT_EQ(AwaitStatus(executor, wait,
                        [&](auto done) { remote->admin().DropTable("cities", {}, done); }),
            Status());
  EXPECT_EQ(remote->engine()
                .Get(std::make_shared<TableSchema>(*wider), {Value::Text("Rom"), {}})
                .status()
                .code(),
            StatusCode::kNotFound);
}

TEST_F(RemoteStoreTest, TableThatIsMadeAnewMeanwhileIsNotChanged) {
  CuttingProxy proxy(server_->port());
  const auto remote = Open(proxy.url());
  Executor* const executor = &local_->engine().executor();
  for (const bool is_index : {true, false}) {
    // The client reads the description, and then sends the change.
    proxy.SetCut([&](const std::string&, int number, size_t) {
      if (number == 1) {
        EXPECT_EQ(
            AwaitStatus(executor, {}, [&](auto done) { local_->admin().DropTable("t", {}, done); }),
            Status());
        EXPECT_TRUE(local_->Define("t", {"k int64", "v text", "key (k)"}).ok());
      }
      return CuttingProxy::kAll;
    });
    const auto changed = AwaitResult<TableSchema>(executor, {}, [&](auto done) {
      if (is_index) return remote->admin().CreateIndex("t", {.name = "n", .columns = {1}}, done);
      remote->admin().AddColumn("t", {.name = "n", .type = Type::kInt64}, done);
    });
    EXPECT_EQ(changed.status().code(), StatusCode::kNotFound) << changed.status();
    EXPECT_THAT(changed.status().message(), HasSubstr("created again"));
    local_->engine().ForgetTable("t");
    EXPECT_EQ((*local_->engine().Table("t"))->columns.size(), 2);
    EXPECT_TRUE((*local_->engine().Table("t"))->indexes.empty());
  }
}

TEST_F(RemoteStoreTest, ViewTellsAChangeOnceAlthoughALaterStepFails) {
  Fill(3000);
  CuttingProxy proxy(server_->port());
  const auto remote = Open(proxy.url() + "?timeout=1");
  const std::atomic<bool> cancelled = false;
  server::StoreView view(remote.get(), &cancelled, 1000);
  EXPECT_THAT(view.Look(), HasSubstr("event: regions"));
  Executor* const executor = &local_->engine().executor();
  const auto regions = *AwaitResult<std::vector<RegionInfo>>(
      executor, {}, [&](auto done) { local_->engine().cluster().ListRegions("t", {}, done); });
  ASSERT_EQ(AwaitStatus(executor, {},
                        [&](auto done) { local_->admin().SplitRegion(regions[0].id, "", done); }),
            Status());
  const auto look = [&] {
    // Tables, regions, and then the state of the servers, which does not come.
    proxy.SetCut(
        [](const std::string&, int number, size_t) { return number > 2 ? 0 : CuttingProxy::kAll; });
    return view.Look();
  };
  const std::string first = look();
  EXPECT_THAT(first, HasSubstr("event: regions"));
  EXPECT_THAT(first, HasSubstr("event: trouble"));
  EXPECT_EQ(look(), "");
}

TEST_F(RemoteStoreTest, AnAnswerThatIsCutAtAnyByteIsAskedForAgain) {
  Fill(40);
  CuttingProxy proxy(server_->port());
  const auto remote = Open(proxy.url());
  SearchOptions options;
  options.predicate = IsV("v3");
  const Found whole = Search(remote.get(), options);
  ASSERT_EQ(whole.rows.size(), 6);
  size_t size = 0;
  for (size_t cut = 0; cut == 0 || cut < size; ++cut) {
    proxy.SetCut([&](const std::string& path, int number, size_t bytes) {
      if (path != kSearch || number > 1) return CuttingProxy::kAll;
      size = bytes;
      return cut;
    });
    const Found found = Search(remote.get(), options);
    if (!found.end.ok()) {
      // A server that takes long sends the first rows in a part of their own. Once they are given
      // out, the search cannot be repeated.
      EXPECT_EQ(found.end.code(), StatusCode::kUnavailable) << cut;
      EXPECT_GT(found.rows.size(), 0u) << cut;
      EXPECT_LT(found.rows.size(), whole.rows.size()) << cut;
      EXPECT_EQ(proxy.Count(kSearch), 1) << cut;
      continue;
    }
    // Behind the last part nothing more is wanted: the end of the stream is not waited for.
    EXPECT_THAT(found.rows, testing::UnorderedElementsAreArray(whole.rows)) << cut;
    EXPECT_EQ(found.end, Status()) << cut;
    EXPECT_EQ(proxy.Count(kSearch), cut + 7 >= size ? 1 : 2) << cut << " of " << size;
  }
}

TEST_F(RemoteStoreTest, NoRowIsGivenTwiceAndACutStreamIsAnError) {
  Fill(20'000);  // several parts
  CuttingProxy proxy(server_->port());
  const auto remote = Open(proxy.url());
  SearchOptions options;
  options.key_order = true;
  const Found whole = Search(remote.get(), options);
  ASSERT_EQ(whole.rows.size(), 20'000);
  bool some_failed = false;
  for (size_t share = 0; share <= 20; ++share) {
    proxy.SetCut([&](const std::string& path, int number, size_t bytes) {
      return path != kSearch || number > 1 ? CuttingProxy::kAll : (bytes - 20) * share / 20;
    });
    const Found found = Search(remote.get(), options);
    if (found.end.ok()) {
      EXPECT_EQ(found.rows, whole.rows) << share;
      continue;
    }
    some_failed = true;
    EXPECT_EQ(found.end.code(), StatusCode::kUnavailable) << found.end;
    EXPECT_THAT(found.end.message(), HasSubstr("before all rows had come"));
    ASSERT_LE(found.rows.size(), whole.rows.size());
    EXPECT_TRUE(std::equal(found.rows.begin(), found.rows.end(), whole.rows.begin())) << share;
    EXPECT_EQ(proxy.Count(kSearch), 1);
  }
  EXPECT_TRUE(some_failed);
}

// On a new connection and on one that was kept.
TEST_F(RemoteStoreTest, AWriteWhoseAnswerIsCutIsNotSentAgain) {
  CuttingProxy proxy(server_->port());
  const auto remote = Open(proxy.url());
  for (const bool kept : {false, true}) {
    for (const size_t cut : {size_t{0}, size_t{10}, size_t{50}}) {
      proxy.SetCut([&](const std::string& path, int number, size_t) {
        return path == kWrite && number == (kept ? 2 : 1) ? cut : CuttingProxy::kAll;
      });
      if (kept) {
        ASSERT_EQ(remote->engine().Apply(table_, {{.row = RowOf(1)}})[0], Status());
      }
      Write insert{.kind = Write::Kind::kInsert, .row = RowOf(100)};
      const Status status = remote->engine().Apply(table_, {insert})[0];
      EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
      EXPECT_THAT(status.message(), HasSubstr("may have been carried out"));
      EXPECT_EQ(proxy.Count(kWrite), kept ? 2 : 1);
      Write erase{.kind = Write::Kind::kDelete, .row = RowOf(100)};
      ASSERT_EQ(local_->engine().Apply(table_, {erase})[0], Status());
    }
  }
}

// Two or three servers of one store behind a balancer.
class BalancedStoreTest : public RemoteStoreTest {
 protected:
  BalancedStoreTest() : proxy_(server_->port()) {
    options_.http.port = 0;
    for (auto* server : {&second_, &third_}) {
      *server = *server::TamisServer::Start(local_, options_);
    }
    ports_ = {server_->port(), second_->port(), third_->port()};
  }
  ~BalancedStoreTest() override {
    third_.reset();
    second_.reset();
  }

  static Write Insert(int64_t key) { return {.kind = Write::Kind::kInsert, .row = RowOf(key)}; }
  bool Has(int64_t key) { return (*local_->engine().Get(table_, RowOf(key))).has_value(); }

  std::unique_ptr<server::TamisServer> second_;
  std::unique_ptr<server::TamisServer> third_;
  std::vector<uint16_t> ports_;
  CuttingProxy proxy_;
};

TEST_F(BalancedStoreTest, WriteThatIsRepeatedAtAnotherServerIsMadeOnce) {
  const auto remote = Open(proxy_.url());
  proxy_.SetRoute([&](const std::string& path, int) {
    return path == kWrite ? std::vector{ports_[0], ports_[1]} : std::vector{ports_[0]};
  });
  Write change{.row = RowOf(1)};
  change.row[1] = Value::Text("second");
  change.condition = IsV("first");
  Write first{.row = RowOf(1)};
  first.row[1] = Value::Text("first");
  ASSERT_EQ(local_->engine().Apply(table_, {first})[0], Status());
  // A second server that carries it out, too, finds the condition false.
  const Status status = remote->engine().Apply(table_, {change})[0];
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(status.message(), HasSubstr("may have been carried out"));
  EXPECT_EQ((*local_->engine().Get(table_, RowOf(1)))->at(1), Value::Text("second"));
}

TEST_F(BalancedStoreTest, WriteThatReachesTheSecondServerFirstIsMadeOnce) {
  const auto remote = Open(proxy_.url());
  for (const std::vector<uint16_t>& both :
       {std::vector{ports_[1], ports_[0]}, std::vector{ports_[0], ports_[0]}}) {
    proxy_.SetRoute([&](const std::string& path, int) {
      return path == kWrite ? both : std::vector{ports_[0]};
    });
    // The last answer is that of the named server: the one that carried it out, or knows it.
    const Status status = remote->engine().Apply(table_, {Insert(1)})[0];
    EXPECT_EQ(status.code(), both[0] == both[1] ? StatusCode::kDeadlineExceeded : StatusCode::kOk)
        << status;
    EXPECT_TRUE(Has(1));
    ASSERT_EQ(local_->engine().Apply(table_, {{.kind = Write::Kind::kDelete, .row = RowOf(1)}})[0],
              Status());
  }
}

TEST_F(BalancedStoreTest, ServersThatTakeTurnsCarryOutEachWriteOnce) {
  for (const size_t servers : {size_t{2}, size_t{3}}) {
    std::atomic<size_t> turn = 0;
    proxy_.SetRoute(
        [&, servers](const std::string&, int) { return std::vector{ports_[turn++ % servers]}; });
    const auto remote = Open(proxy_.url());
    for (int64_t key = 0; key < 30; ++key) {
      ASSERT_EQ(remote->engine().Apply(table_, {Insert(key + 1000 * servers)})[0], Status());
    }
    EXPECT_EQ(Search(remote.get(), {}).end, Status());
  }
}

TEST_F(BalancedStoreTest, OutcomeIsUnknownWhenTheNamedServerIsGone) {
  const auto remote = Open(proxy_.url());
  ASSERT_EQ(remote->engine().Apply(table_, {Insert(1)})[0], Status());
  proxy_.SetRoute([&](const std::string&, int) { return std::vector{ports_[1]}; });
  const Status status = remote->engine().Apply(table_, {Insert(2)})[0];
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
  EXPECT_FALSE(Has(2));
  // The connection was kept, and the client still takes the first server to be behind it.
  proxy_.SetRoute([&](const std::string&, int) { return std::vector{ports_[0]}; });
  EXPECT_EQ(remote->engine().Apply(table_, {Insert(3)})[0], Status());
}

// It has refused the number: nothing is asked of it once it is gone.
TEST_F(BalancedStoreTest, WriteThatABusyServerRefusedIsCarriedOutByAnother) {
  options_.sql.max_statements = 0;
  third_ = *server::TamisServer::Start(local_, options_);
  const auto remote = Open(proxy_.url());
  std::atomic<bool> has_refused = false;
  proxy_.SetRoute([&](const std::string& path, int) {
    const bool to_busy = path == kWrite ? !has_refused.exchange(true) : !has_refused.load();
    return std::vector{to_busy && path != "/v1/cluster" ? third_->port() : ports_[0]};
  });
  EXPECT_EQ(remote->engine().Apply(table_, {Insert(1)})[0], Status());
  EXPECT_EQ(proxy_.Count(kWrite), 2);
  EXPECT_EQ(proxy_.Count("/v1/writes/withdraw"), 2);  // both ask for the process only
}

// Requests go to random servers, some to several, and some answers are lost.
TEST_F(BalancedStoreTest, RandomBalancerNeverMakesAWriteTwice) {
  const uint64_t seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::mutex mutex;
  const auto draw = [&](uint64_t below) {
    const std::lock_guard lock(mutex);
    return random() % below;
  };
  proxy_.SetRoute([&](const std::string&, int) {
    std::vector<uint16_t> servers;
    for (uint64_t i = draw(4) == 0 ? 2 : 1; i > 0; --i) servers.push_back(ports_[draw(3)]);
    return servers;
  });
  proxy_.SetCut([&](const std::string&, int, size_t bytes) {
    return draw(10) == 0 ? draw(bytes) : CuttingProxy::kAll;
  });
  std::vector<std::thread> clients;
  std::atomic<int> made = 0;
  for (int64_t client = 0; client < 3; ++client) {
    clients.emplace_back([&, client] {
      std::shared_ptr<OpenedStore> remote;
      while (remote == nullptr) {
        if (auto opened = OpenedStore::Open(proxy_.url(), {}); opened.ok()) remote = *opened;
      }
      for (int64_t key = client * 1000; key < client * 1000 + 50; ++key) {
        const Status status = remote->engine().Apply(table_, {Insert(key)})[0];
        // A write that was made twice finds its own row.
        EXPECT_TRUE(status.ok() || status.code() == StatusCode::kDeadlineExceeded) << status;
        if (status.ok()) {
          EXPECT_TRUE(Has(key));
          ++made;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_GT(made, 20);
}

TEST_F(RemoteStoreTest, ARestartedServerIsAskedAgain) {
  Fill(100);
  const auto remote = Open(server_->address());
  for (int i = 0; i < 3; ++i) {
    server_.reset();
    std::thread starts([this] { Start(); });
    EXPECT_EQ(Search(remote.get(), {}).rows.size(), 100);
    EXPECT_EQ(remote->engine().Apply(table_, {{.row = RowOf(1)}})[0], Status());
    starts.join();
  }
}

// The new process is another one than that which the client knows.
TEST_F(RemoteStoreTest, FirstWriteAfterARestartIsCarriedOut) {
  const auto remote = Open(server_->address());
  for (int64_t i = 0; i < 5; ++i) {
    Start();
    Write insert{.kind = Write::Kind::kInsert, .row = RowOf(i)};
    EXPECT_EQ(remote->engine().Apply(table_, {insert})[0], Status());
  }
}

TEST_F(RemoteStoreTest, AStatementOfAServerThatStopsIsAskedOfTheNextOne) {
  Fill(100);
  const auto remote = Open(server_->address());
  for (int i = 0; i < 5; ++i) {
    std::atomic<bool> restarted = false;
    std::thread restarts([&] {
      Start();
      restarted = true;
    });
    while (!restarted) {
      const Found found = Search(remote.get(), {});
      EXPECT_TRUE(found.end.ok() ? found.rows.size() == 100 : !found.rows.empty()) << found.end;
    }
    restarts.join();
  }
}

TEST_F(RemoteStoreTest, AServerThatIsGoneIsAnError) {
  const auto remote = Open(server_->address() + "?timeout=1");
  const std::string address = server_->address();
  server_.reset();
  SearchOptions options;
  options.timeout = std::chrono::milliseconds(200);
  const Found found = Search(remote.get(), options);
  EXPECT_EQ(found.end.code(), StatusCode::kUnavailable) << found.end;
  EXPECT_THAT(found.end.message(), HasSubstr(address));
  EXPECT_EQ(remote->engine().Apply(table_, {{.row = RowOf(1)}})[0].code(),
            StatusCode::kUnavailable);
  const auto opened = OpenedStore::Open(address, {});
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.status().message(), HasSubstr("cannot open store \"" + address));
}

TEST_F(RemoteStoreTest, TheTokenOfTheServerIsReadFromAFile) {
  options_.token = "a token of the server";
  Start();
  const std::string right = directory_ + "/right";
  const std::string wrong = directory_ + "/wrong";
  std::ofstream(right) << "secret-token-of-the-server\n";
  std::ofstream(wrong) << "another\n";
  options_.token = "secret-token-of-the-server";
  Start();
  for (const std::string& name :
       {server_->address(), server_->address() + "?token-file=" + wrong}) {
    const auto opened = OpenedStore::Open(name, {});
    ASSERT_FALSE(opened.ok());
    EXPECT_THAT(opened.status().message(), HasSubstr("token-file"));
  }
  EXPECT_EQ(Search(Open(server_->address() + "?token-file=" + right).get(), {}).end, Status());
}

TEST_F(RemoteStoreTest, FailureOfARegionEndsTheWaitForItsIndex) {
  Fill(20);
  const auto listed = AwaitResult<std::vector<RegionInfo>>(
      &local_->engine().executor(), {},
      [&](auto done) { local_->engine().cluster().ListRegions("t", {}, done); });
  ASSERT_TRUE(listed.ok()) << listed.status();
  const uint64_t region = listed->front().id.number();
  server_.reset();
  local_.reset();
  {
    const auto store = Store::Open({.directory = directory_ + "/store"});
    ASSERT_TRUE(store.ok()) << store.status();
    rocksdb::WriteBatch batch;
    batch.Put((*store)->index(), IndexPrefix(region, table_->indexes[0].id) + "\x7fnonsense", "");
    ASSERT_TRUE((*store)->Write(&batch).ok());
  }
  local_ = *OpenedStore::Open(directory_ + "/store", {.servers = 2});
  Start();
  const auto remote = Open(server_->address());
  const auto progress = AwaitIndex(&remote->admin(), &remote->engine().executor(), {}, "t", "v");
  EXPECT_EQ(progress.status().code(), StatusCode::kDataLoss) << progress.status();
  EXPECT_THAT(progress.status().message(), HasSubstr("0 of 1 regions ready; region " +
                                                     std::to_string(region) + " on server rs"));
  EXPECT_THAT(progress.status().message(), HasSubstr("an index entry cannot be read"));
  EXPECT_THAT(server::HttpClient(server_->port()).Get("/v1/tables/t/indexes").body,
              HasSubstr("an index entry cannot be read"));
}

TEST_F(RemoteStoreTest, ReadOnlyServerRefusesChanges) {
  options_.sql.may_write = options_.may_administer = false;
  Start();
  const auto remote = Open(server_->address());
  const Status written = remote->engine().Apply(table_, {{.row = RowOf(1)}})[0];
  EXPECT_EQ(written.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(written.message(), HasSubstr("--write"));
  const auto made = remote->Define("other", {"k int64", "key (k)"});
  EXPECT_THAT(made.status().message(), HasSubstr("--admin"));
}

}  // namespace
}  // namespace tamis
