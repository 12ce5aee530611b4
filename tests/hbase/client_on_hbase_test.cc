// The client against a real HBase: every kind of call, and every way in which a cluster fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tamis/base/coding.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase/site_file.h"
#include "tests/hbase/local_hbase.h"

namespace tamis::hbase {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Key(int i) {
  std::string digits = std::to_string(i);
  return "r" + std::string(4 - digits.size(), '0') + digits;
}

// Any master or region server is asked where HBase is; security is as the cluster has it.
ClientOptions Options() {
  const std::string addresses = LocalHBase::Get().addresses();
  const auto site = SiteFile::Read(LocalHBase::Directory() + "/client/hbase-site.xml");
  EXPECT_TRUE(site.ok()) << site.status();
  auto options = site->Complete({.addresses = addresses});
  EXPECT_TRUE(options.ok()) << options.status();
  return *std::move(options);
}

class ClientOnHBaseTest : public testing::Test {
 protected:
  void SetUp() override {
    auto client = Client::Open(Options());
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    table_ = testing::UnitTest::GetInstance()->current_test_info()->name();
    ASSERT_TRUE(client_->SwitchBalancer(false).ok());
  }

  void TearDown() override {
    // Free the cluster for the next test; the logs are enough to examine a failure.
    (void)client_->DisableTable(table_);
    (void)client_->DeleteTable(table_);
  }

  void Create(std::vector<std::string> split_keys = {}) {
    ASSERT_EQ(
        client_->CreateTable({.name = table_, .families = {{.name = "f"}}}, std::move(split_keys)),
        Status());
  }

  Status Put(const std::string& row, const std::string& value, WriteOptions options = {}) {
    return client_->Mutate(table_, Mutation::Put(row).Set("f", "q", value), std::move(options))
        .status();
  }

  // Writes rows r0000, r0001, ... with their numbers as values.
  void Fill(int rows) {
    std::vector<Mutation> puts;
    for (int i = 0; i < rows; ++i) {
      puts.push_back(Mutation::Put(Key(i)).Set("f", "q", std::to_string(i)));
    }
    for (const auto& result : client_->Mutate(table_, std::move(puts), WriteOptions())) {
      ASSERT_TRUE(result.ok()) << result.status();
    }
  }

  std::string Value(const std::string& row) {
    const auto got = client_->Get(table_, {.row = row});
    EXPECT_TRUE(got.ok()) << got.status();
    return got.ok() ? std::string(got->Find("f", "q").value_or("absent")) : "failed";
  }

  Result<std::vector<std::string>> Keys(Scan scan) {
    const auto stream = client_->Scan(table_, std::move(scan));
    std::vector<std::string> keys;
    while (true) {
      const auto rows = stream->Next();
      if (!rows.ok()) return rows.status();
      if (rows->empty()) return keys;
      for (const Row& row : *rows) keys.emplace_back(row.key());
    }
  }

  std::vector<RegionPtr> Regions() {
    auto regions = client_->Regions(table_);
    EXPECT_TRUE(regions.ok()) << regions.status();
    return regions.ok() ? *regions : std::vector<RegionPtr>();
  }

  // Returns a server that does not have the region.
  ServerName Other(const Region& region) {
    const auto cluster = client_->Cluster();
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    for (const auto& server : cluster->servers) {
      if (server.name != region.server) return server.name;
    }
    ADD_FAILURE() << "there is one server only";
    return {};
  }

  std::unique_ptr<Client> client_;
  std::string table_;
};

TEST_F(ClientOnHBaseTest, WritesAreReadBack) {
  Create();
  EXPECT_EQ(Put("a", "1"), Status());
  EXPECT_EQ(Value("a"), "1");
  EXPECT_EQ(Value("b"), "absent");
  EXPECT_EQ(Put("a", "2"), Status());
  EXPECT_EQ(Value("a"), "2");
  EXPECT_TRUE(client_->Mutate(table_, Mutation::Delete("a")).ok());
  EXPECT_EQ(Value("a"), "absent");

  const std::string bytes("\0\xff\r\n", 4);
  EXPECT_TRUE(client_->Mutate(table_, Mutation::Put(bytes).Set("f", bytes, bytes, 7)).ok());
  const auto row = client_->Get(table_, {.row = bytes});
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_THAT(row->cells(), ElementsAre(Cell{.family = "f",
                                             .qualifier = bytes,
                                             .timestamp = 7,
                                             .type = CellType::kPut,
                                             .value = bytes}));
}

TEST_F(ClientOnHBaseTest, GetSelectsColumnsVersionsTimesAndFilters) {
  ASSERT_EQ(client_->CreateTable(
                {.name = table_,
                 .families = {{.name = "f", .attributes = {{"VERSIONS", "3"}}}, {.name = "g"}}}),
            Status());
  Mutation put = Mutation::Put("a");
  put.Set("f", "x", "1", 10).Set("f", "x", "2", 20).Set("f", "y", "3", 30).Set("g", "x", "4", 40);
  ASSERT_TRUE(client_->Mutate(table_, put).ok());
  const auto values = [&](Get get) {
    get.row = "a";
    const auto row = client_->Get(table_, std::move(get));
    EXPECT_TRUE(row.ok()) << row.status();
    std::string all;
    for (const Cell& cell : row->cells()) all += cell.value;
    return all;
  };
  EXPECT_EQ(values({}), "234");
  EXPECT_EQ(values({.columns = {{"f", {}}}}), "23");
  EXPECT_EQ(values({.columns = {{"f", "y"}, {"g", "x"}}}), "34");
  EXPECT_EQ(values({.columns = {{"f", "x"}}, .max_versions = 3}), "21");
  EXPECT_EQ(values({.time_range = TimeRange{.from = 15, .to = 31}}), "23");
  EXPECT_EQ(values({.filter = Filter::Qualifiers("y", "")}), "3");
  EXPECT_EQ(values({.filter = Filter::All({Filter::Qualifiers("x", "y"), Filter::KeysOnly()})}),
            "");

  Mutation remove = Mutation::Delete("a");
  remove.DeleteVersion("f", "x", 20).DeleteColumn("f", "y").DeleteFamily("g");
  ASSERT_TRUE(client_->Mutate(table_, remove).ok());
  EXPECT_EQ(values({}), "1");
}

TEST_F(ClientOnHBaseTest, IncrementAndAppendReturnTheNewValue) {
  Create();
  for (int64_t i = 1; i <= 3; ++i) {
    const auto result = client_->Mutate(table_, Mutation::Increment("a").Add("f", "n", 5));
    ASSERT_TRUE(result.ok()) << result.status();
    std::string expected;
    PutBig64(&expected, static_cast<uint64_t>(5 * i));
    EXPECT_EQ(result->row.Find("f", "n"), expected);
  }
  ASSERT_TRUE(client_->Mutate(table_, Mutation::Append("a").Set("f", "t", "x")).ok());
  const auto result = client_->Mutate(table_, Mutation::Append("a").Set("f", "t", "y"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->row.Find("f", "t"), "xy");
}

TEST_F(ClientOnHBaseTest, ConditionsAndAtomicRowChangesWork) {
  Create();
  const auto put_if = [&](const std::string& value, Condition condition) {
    const auto result = client_->Mutate(table_, Mutation::Put("a").Set("f", "q", value),
                                        {.condition = std::move(condition)});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() && result->applied;
  };
  EXPECT_TRUE(put_if("1", Condition::Absent("f", "q")));
  EXPECT_FALSE(put_if("2", Condition::Absent("f", "q")));
  EXPECT_FALSE(put_if("2", Condition::Value("f", "q", Compare::kEqual, "x")));
  EXPECT_TRUE(put_if("2", Condition::Value("f", "q", Compare::kLessOrEqual, "1")));
  EXPECT_EQ(Value("a"), "2");
  EXPECT_TRUE(put_if(
      "3", {.filter = Filter::Value({.family = "f", .qualifier = "q"}, Compare::kEqual, "2")}));
  EXPECT_EQ(Value("a"), "3");

  const auto together = [&](Condition condition) {
    const auto result = client_->MutateRow(
        table_,
        {Mutation::Put("a").Set("f", "p", "new"), Mutation::Delete("a").DeleteColumn("f", "q")},
        {.condition = std::move(condition)});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() && result->applied;
  };
  EXPECT_FALSE(together(Condition::Value("f", "q", Compare::kEqual, "2")));
  EXPECT_EQ(Value("a"), "3");
  EXPECT_TRUE(together(Condition::Value("f", "q", Compare::kEqual, "3")));
  EXPECT_EQ(Value("a"), "absent");
  EXPECT_EQ(client_
                ->MutateRow(table_, {Mutation::Put("a").Set("f", "p", ""),
                                     Mutation::Put("b").Set("f", "p", "")})
                .status()
                .code(),
            StatusCode::kInvalidArgument);
}

TEST_F(ClientOnHBaseTest, BatchOverManyRegionsReturnsAResultForEach) {
  Create({"r0020", "r0040", "r0060", "r0080"});
  Fill(100);
  std::vector<Get> gets;
  for (int i = 0; i < 120; ++i) gets.push_back({.row = Key((i * 37) % 120)});
  gets[5].columns = {{"nothing", {}}};
  const auto rows = client_->Get(table_, gets);
  ASSERT_EQ(rows.size(), gets.size());
  for (int i = 0; i < 120; ++i) {
    if (i == 5) {
      EXPECT_EQ(rows[i].status().code(), StatusCode::kNotFound) << rows[i].status();
      EXPECT_THAT(rows[i].status().message(), HasSubstr("NoSuchColumnFamily"));
      continue;
    }
    ASSERT_TRUE(rows[i].ok()) << rows[i].status();
    const int number = (i * 37) % 120;
    EXPECT_EQ(rows[i]->Find("f", "q").value_or("absent"),
              number < 100 ? std::to_string(number) : "absent");
  }
  std::vector<Mutation> increments(7, Mutation::Increment("n").Add("f", "n", 1));
  for (const auto& result : client_->Mutate(table_, increments, WriteOptions())) {
    EXPECT_TRUE(result.ok()) << result.status();
  }
  std::string seven;
  PutBig64(&seven, 7);
  EXPECT_EQ(client_->Get(table_, {.row = "n"})->Find("f", "n"), seven);
}

TEST_F(ClientOnHBaseTest, ScansCrossRegionsInBothDirections) {
  Create({"r0020", "r0040", "r0060"});
  Fill(80);
  std::vector<std::string> all;
  for (int i = 0; i < 80; ++i) all.push_back(Key(i));
  EXPECT_EQ(*Keys({}), all);
  EXPECT_EQ(*Keys({.rows_per_call = 7}), all);
  EXPECT_EQ(*Keys({.reversed = true, .rows_per_call = 7}),
            std::vector<std::string>(all.rbegin(), all.rend()));
  EXPECT_THAT(*Keys({.start_row = "r0038", .stop_row = "r0042"}),
              ElementsAre("r0038", "r0039", "r0040", "r0041"));
  EXPECT_THAT(*Keys({.start_row = "r0038",
                     .stop_row = "r0040",
                     .include_start = false,
                     .include_stop = true}),
              ElementsAre("r0039", "r0040"));
  EXPECT_THAT(*Keys({.start_row = "r0041", .stop_row = "r0038", .reversed = true}),
              ElementsAre("r0041", "r0040", "r0039"));
  EXPECT_THAT(
      *Keys({.start_row = "r0040", .stop_row = "r0040", .include_stop = true, .reversed = true}),
      ElementsAre("r0040"));
  EXPECT_EQ(Keys({.limit = 50})->size(), 50u);
  EXPECT_EQ(Keys({.limit = 50, .rows_per_call = 7})->back(), "r0049");
  EXPECT_EQ(Keys({.reversed = true, .limit = 45})->back(), "r0035");
}

TEST_F(ClientOnHBaseTest, ScanAppliesFilters) {
  Create({"r0010"});
  Fill(20);
  ASSERT_TRUE(client_->Mutate(table_, Mutation::Put("x").Set("f", "other", "")).ok());
  const Filter::Column q{.family = "f", .qualifier = "q"};
  EXPECT_THAT(*Keys({.filter = Filter::Value(q, Compare::kEqual, "7")}), ElementsAre("r0007"));
  EXPECT_THAT(*Keys({.filter = Filter::Value({"f", "q", true}, Compare::kEqual, "7")}),
              ElementsAre("r0007", "x"));
  EXPECT_THAT(*Keys({.filter = Filter::RowPrefix("r001")}), testing::SizeIs(10));
  EXPECT_THAT(*Keys({.filter = Filter::RowKey(Compare::kLess, "r0002")}),
              ElementsAre("r0000", "r0001"));
  EXPECT_THAT(*Keys({.filter = Filter::RowRanges({{"r0003", "r0004"}, {"r0019", ""}})}),
              ElementsAre("r0003", "r0019", "x"));
  EXPECT_THAT(*Keys({.filter = Filter::Any({Filter::RowPrefix("x"),
                                            Filter::Value({"f", "q"}, Compare::kEqual, "3")})}),
              testing::Contains("x"));
  EXPECT_THAT(*Keys({.filter = Filter::All({Filter::FirstKeyOnly(), Filter::Page(2)})}),
              ElementsAre("r0000", "r0001", "r0010", "r0011"));  // two rows of each region
}

TEST_F(ClientOnHBaseTest, JoinsARowThatArrivesInParts) {
  Create();
  for (const std::string row : {"a", "b"}) {
    Mutation put = Mutation::Put(row);
    for (int i = 100; i < 150; ++i) put.Set("f", std::to_string(i), std::string(100, 'v'));
    ASSERT_TRUE(client_->Mutate(table_, put).ok());
  }
  const auto stream = client_->Scan(table_, {.bytes_per_call = 2000});
  std::vector<std::string> keys;
  while (true) {
    const auto rows = stream->Next();
    ASSERT_TRUE(rows.ok()) << rows.status();
    if (rows->empty()) break;
    for (const Row& row : *rows) {
      keys.emplace_back(row.key());
      EXPECT_EQ(row.cells().size(), 50u);
    }
  }
  EXPECT_THAT(keys, ElementsAre("a", "b"));
  const auto bounded = Keys({.bytes_per_call = 2000, .max_row_bytes = 5000});
  EXPECT_EQ(bounded.status().code(), StatusCode::kResourceExhausted) << bounded.status();
}

TEST_F(ClientOnHBaseTest, ManagesTablesAndNamespaces) {
  const std::string space = "space_of_tests";
  ASSERT_EQ(client_->CreateNamespace(space), Status());
  EXPECT_EQ(client_->CreateNamespace(space).code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(*client_->Namespaces(), testing::Contains(space));
  const std::string name = space + ":t";
  ASSERT_EQ(client_->CreateTable(
                {.name = name, .attributes = {{"ours", "1"}}, .families = {{.name = "f"}}}, {"m"}),
            Status());
  EXPECT_EQ(client_->CreateTable({.name = name, .families = {{.name = "f"}}}).code(),
            StatusCode::kAlreadyExists);
  const auto tables = client_->Tables(space);
  ASSERT_TRUE(tables.ok()) << tables.status();
  ASSERT_EQ(tables->size(), 1u);
  EXPECT_EQ(tables->front().name, name);
  EXPECT_EQ(tables->front().attributes.at("ours"), "1");
  EXPECT_EQ(client_->Regions(name)->size(), 2u);

  TableDescription changed = tables->front();
  changed.attributes["ours"] = "2";
  changed.families.push_back({.name = "g"});
  ASSERT_EQ(client_->ModifyTable(changed), Status());
  const auto table = client_->Table(name);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->attributes.at("ours"), "2");
  EXPECT_EQ(table->families.size(), 2u);
  EXPECT_TRUE(client_->Mutate(name, Mutation::Put("a").Set("g", "q", "")).ok());

  EXPECT_EQ(client_->DeleteTable(name).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(*client_->StateOfTable(name), TableState::kEnabled);
  ASSERT_EQ(client_->DisableTable(name), Status());
  EXPECT_EQ(*client_->StateOfTable(name), TableState::kDisabled);
  ASSERT_EQ(client_->EnableTable(name), Status());
  EXPECT_TRUE(client_->Get(name, {.row = "a"}).ok());
  ASSERT_EQ(client_->DisableTable(name), Status());
  ASSERT_EQ(client_->DeleteTable(name), Status());
  EXPECT_EQ(client_->Table(name).status().code(), StatusCode::kNotFound);
  ASSERT_EQ(client_->DeleteNamespace(space), Status());
}

TEST_F(ClientOnHBaseTest, ReportsTheStateOfTheCluster) {
  const auto cluster = client_->Cluster();
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->servers.size(), 3u);
  EXPECT_THAT(cluster->version, testing::StartsWith(LocalHBase::Version()));
  EXPECT_EQ(cluster->cluster_id.size(), 36u);
  EXPECT_FALSE(cluster->balancer_on);
  EXPECT_TRUE(client_->Balance().ok());
}

TEST_F(ClientOnHBaseTest, ExampleRunsOrSaysThatItNeedsKerberos) {
  const std::string command =
      std::string(TAMIS_EXAMPLE) + " " + LocalHBase::Get().addresses() + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  for (int c; (c = std::fgetc(pipe)) != EOF;) output += static_cast<char>(c);
  const int status = pclose(pipe);
  if (Options().kerberos) {  // the example has no options for it
    EXPECT_NE(status, 0) << output;
    EXPECT_THAT(output, testing::HasSubstr("Kerberos"));
    return;
  }
  EXPECT_EQ(status, 0) << output;
  EXPECT_THAT(output,
              testing::StartsWith("fig has 3 letters\nfive: apple\nfive: grape\n[, f) is on "));
}

// ---- Faults.

TEST_F(ClientOnHBaseTest, FollowsRegionsThroughSplitMoveMergeAndKill) {
  Create({"r0050", "r0075"});
  Fill(100);
  ASSERT_EQ(Regions().size(), 3u);
  const auto read_all = [&] {
    for (int i = 0; i < 100; i += 7) EXPECT_EQ(Value(Key(i)), std::to_string(i));
  };
  read_all();

  ASSERT_EQ(client_->SplitRegion(*Regions()[0], "r0025"), Status());
  read_all();
  auto regions = Regions();
  ASSERT_EQ(regions.size(), 4u);
  EXPECT_EQ(regions[1]->start, "r0025");

  const ServerName to = Other(*regions[1]);
  ASSERT_EQ(client_->MoveRegion(*regions[1], to), Status());
  const auto before = client_->counts();
  read_all();
  auto after = client_->counts();
  EXPECT_EQ(after.hints_taken, before.hints_taken + 1);
  EXPECT_EQ(after.meta_lookups, before.meta_lookups);  // the old server named the new one
  EXPECT_EQ(Regions()[1]->server, to);

  ASSERT_EQ(client_->MergeRegions({*regions[2], *regions[3]}), Status());
  read_all();
  EXPECT_EQ(Regions().size(), 3u);

  const std::string role = LocalHBase::Get().RoleOf(Regions()[0]->server.address.port);
  const uint64_t scans = client_->counts().meta_table_scans;
  LocalHBase::Get().Run("kill " + role);
  read_all();
  LocalHBase::Get().Run("start " + role);
  read_all();
  // single keys were read, never the whole table
  EXPECT_EQ(client_->counts().meta_table_scans, scans);
}

TEST_F(ClientOnHBaseTest, SurvivesAServerKilledDuringCalls) {
  Create({"r0050"});
  Fill(100);
  const ServerName server = Regions()[0]->server;
  const std::string role = LocalHBase::Get().RoleOf(server.address.port);
  LocalHBase::Get().Run("pause " + role);

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Status> gets;
  std::map<int, Status> puts;
  Result<MutateResult> increment = Cancelled("not yet");
  size_t left = 0;
  const auto ended = [&](const auto& record) {
    std::lock_guard lock(mutex);
    record();
    --left;
    changed.notify_all();
  };
  left = 50 + 20 + 1;
  for (int i = 0; i < 50; ++i) {
    client_->Get(table_, {.row = Key(i)}, [&, i](const Result<Row>& row) {
      const bool right = row.ok() && row->Find("f", "q") == std::to_string(i);
      ended([&] {
        gets.push_back(right ? Status() : row.ok() ? Internal("wrong") : row.status());
      });
    });
  }
  for (int i = 0; i < 20; ++i) {
    client_->Mutate(
        table_, Mutation::Put("p" + Key(i)).Set("f", "q", "new"), {.repeat = i % 2 == 0},
        [&, i](const Result<MutateResult>& r) { ended([&] { puts[i] = r.status(); }); });
  }
  client_->Mutate(table_, Mutation::Increment("p").Add("f", "n", 1), {},
                  [&](const Result<MutateResult>& r) { ended([&] { increment = r; }); });
  {
    // The calls have been sent when they are in the buffers of the paused server's machine; that
    // takes one more turn of the client's thread.
    client_->counts();
    LocalHBase::Get().Run("kill " + role);
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return left == 0; });
  }
  for (const Status& status : gets) EXPECT_EQ(status, Status());
  for (const auto& [i, status] : puts) {
    if (i % 2 == 0) {
      EXPECT_EQ(status, Status());
    } else if (!status.ok()) {
      EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
      EXPECT_THAT(status.message(), HasSubstr("may have been carried out"));
    }
    if (status.ok()) {
      EXPECT_EQ(Value("p" + Key(i)), "new");
    }
  }
  if (!increment.ok()) {
    EXPECT_EQ(increment.status().code(), StatusCode::kDeadlineExceeded) << increment.status();
  }
  LocalHBase::Get().Run("start " + role);
}

TEST_F(ClientOnHBaseTest, ScanSurvivesASplitAndAMove) {
  Create({"r0050"});
  Fill(100);
  for (const bool reversed : {false, true}) {
    const auto stream = client_->Scan(table_, {.reversed = reversed, .rows_per_call = 5});
    std::vector<std::string> keys;
    for (int calls = 0;; ++calls) {
      const auto rows = stream->Next();
      ASSERT_TRUE(rows.ok()) << rows.status();
      if (rows->empty()) break;
      for (const Row& row : *rows) keys.emplace_back(row.key());
      const auto regions = Regions();
      if (calls == 1) {
        const RegionPtr here = reversed ? regions.back() : regions.front();
        ASSERT_EQ(client_->SplitRegion(*here, reversed ? "r0075" : "r0025"), Status());
      } else if (calls == 3) {
        for (const RegionPtr& region : regions) {
          if (region->Holds(keys.back())) {
            ASSERT_EQ(client_->MoveRegion(*region, Other(*region)), Status());
          }
        }
      }
    }
    if (reversed) std::reverse(keys.begin(), keys.end());
    ASSERT_EQ(keys.size(), 100u);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(keys[i], Key(i));
  }
}

TEST_F(ClientOnHBaseTest, ScanContinuesAfterItsLeaseExpired) {
  Create();
  Fill(100);
  const auto stream = client_->Scan(table_, {.rows_per_call = 60});
  ASSERT_EQ(stream->Next()->size(), 60u);
  // The lease is two seconds, and only time ends it.
  std::this_thread::sleep_for(std::chrono::seconds(4));
  const auto rows = stream->Next();
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_FALSE(rows->empty());
  EXPECT_EQ(rows->front().key(), "r0060");
}

TEST_F(ClientOnHBaseTest, SurvivesMoreCallsThanTheQueueHolds) {
  Create();
  Fill(10);
  // The window does not limit these calls; the server's queue holds a hundred.
  ClientOptions options = Options();
  options.window = 5000;
  auto eager = Client::Open(options);
  ASSERT_TRUE(eager.ok());
  std::mutex mutex;
  std::condition_variable changed;
  int left = 5000;
  int failed = 0;
  for (int i = 0; i < 5000; ++i) {
    (*eager)->Get(table_, {.row = Key(i % 10)}, [&](const Result<Row>& row) {
      std::lock_guard lock(mutex);
      if (!row.ok() || row->empty()) ++failed;
      if (--left == 0) changed.notify_all();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return left == 0; });
  EXPECT_EQ(failed, 0);
}

TEST_F(ClientOnHBaseTest, TooLargeRequestIsRefused) {
  Create();
  const Status refused = Put("a", std::string(5 << 20, 'v'));  // the server allows 4 MiB here
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("RequestTooBig"));
  ClientOptions options = Options();
  options.max_request_bytes = 1 << 20;
  auto careful = Client::Open(options);
  const auto unsent =
      (*careful)->Mutate(table_, Mutation::Put("a").Set("f", "q", std::string(2 << 20, 'v')));
  EXPECT_EQ(unsent.status().code(), StatusCode::kInvalidArgument) << unsent.status();
  EXPECT_THAT(unsent.status().message(), HasSubstr("send less at once"));
  EXPECT_EQ(Put("a", "small"), Status());
  EXPECT_EQ(Value("a"), "small");
}

TEST_F(ClientOnHBaseTest, WithoutAMasterRowsWorkAndTableChangesWait) {
  Create();
  Fill(10);
  LocalHBase::Get().Run("kill master");
  EXPECT_EQ(Value("r0003"), "3");
  EXPECT_EQ(Put("r0003", "new"), Status());
  // A new client does not need the master, either.
  auto fresh = Client::Open(Options());
  EXPECT_TRUE((*fresh)->Get(table_, {.row = "r0003"}).ok());
  Status split = Cancelled("not yet");
  const RegionPtr region = Regions()[0];
  std::thread waits([&] { split = client_->SplitRegion(*region, "r0005"); });
  LocalHBase::Get().Run("start master");
  waits.join();
  EXPECT_EQ(split, Status());
  EXPECT_EQ(Regions().size(), 2u);
}

TEST_F(ClientOnHBaseTest, WrongTableFamilyOrRowIsAnError) {
  Create();
  const auto no_table = client_->Get("no_such_table", {.row = "a"});
  EXPECT_EQ(no_table.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(no_table.status().message(), HasSubstr("there is no table \"no_such_table\""));
  EXPECT_EQ(client_->Table("no such name").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(client_->Regions("no_such_table").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(client_->DisableTable("no_such_table").code(), StatusCode::kNotFound);
  EXPECT_EQ(client_->Mutate(table_, Mutation::Put("a").Set("g", "q", "v")).status().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(client_->Get(table_, {.row = "a", .columns = {{"g", {}}}}).status().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(Keys({.columns = {{"g", {}}}}).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Put("", "v").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Put(std::string(40000, 'r'), "v").code(), StatusCode::kInvalidArgument);
}

TEST_F(ClientOnHBaseTest, MissingServiceIsAnError) {
  Create();
  const ServiceCall call{.service = "tamis.pb.Nothing", .method = "Ask", .request = "?"};
  const auto of_region = client_->Exec(table_, "a", call);
  EXPECT_EQ(of_region.status().code(), StatusCode::kFailedPrecondition) << of_region.status();
  EXPECT_THAT(of_region.status().message(), HasSubstr("No registered coprocessor service"));
  const RegionPtr region = Regions()[0];
  EXPECT_EQ(client_->ExecAt(*region, call).answer.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(client_->ExecServer(region->server, call).answer.status().code(),
            StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tamis::hbase
