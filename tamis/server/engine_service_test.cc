#include "tamis/server/engine_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "tamis/remote/messages.h"
#include "tamis/server/cluster_calls.h"
#include "tamis/server/tamis_server.h"
#include "tamis/server/testing/http_client.h"

namespace tamis::server {
namespace {

using testing::HasSubstr;

class EngineServiceTest : public testing::Test {
 protected:
  EngineServiceTest()
      : directory_(testing::TempDir() + "/engine_service_test." + std::to_string(getpid())) {
    std::filesystem::remove_all(directory_);
    store_ = *OpenedStore::Open(directory_, {.servers = 2});
    table_ = *store_->Define("t", {"k int64", "v text", "n int64", "key (k)", "index v (v)"});
  }
  ~EngineServiceTest() override {
    server_.reset();
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  void Start(const TamisServer::Options& options) {
    server_.reset();
    server_ = *TamisServer::Start(store_, options);
  }
  static TamisServer::Options Writable() {
    TamisServer::Options options;
    options.sql.may_write = true;
    return options;
  }
  HttpClient::Answer Post(const std::string& path, const std::string& body) {
    return HttpClient(server_->port()).Ask("POST", path, body);
  }
  HttpClient::Answer Post(const std::string& path, const google::protobuf::MessageLite& message) {
    return Post(path, message.SerializeAsString());
  }
  pb::WriteNumberState Withdraw(const pb::WithdrawWrite& message) {
    pb::WriteNumberState state;
    EXPECT_TRUE(state.ParseFromString(Post("/v1/writes/withdraw", message).body));
    return state;
  }
  static std::string Detail(const HttpClient::Answer& answer) {
    return nlohmann::json::parse(answer.body).value("detail", answer.body);
  }
  Write Put(int64_t key, const std::string& v) const {
    return {.row = {Value::Int64(key), Value::Text(v), Value::Int64(key % 10)}};
  }
  void Fill(int64_t rows) {
    std::vector<Write> writes;
    for (int64_t i = 0; i < rows; ++i) writes.push_back(Put(i, "v" + std::to_string(i % 7)));
    for (const Status& status : store_->engine().Apply(table_, std::move(writes))) {
      ASSERT_EQ(status, Status());
    }
  }
  pb::TableWrites Writes(const std::vector<Write>& writes, uint64_t number) const {
    pb::TableWrites message;
    message.set_table_id(table_->id);
    message.set_schema_version(table_->version);
    message.set_client(7);
    message.set_number(number);
    for (const Write& write : writes) {
      EXPECT_EQ(ToMessage(*table_, write, message.add_mutations()), Status());
    }
    return message;
  }
  template <class Part>
  static std::vector<Part> PartsOf(const std::string& body) {
    StreamParts stream;
    stream.Append(body);
    std::vector<Part> parts(1);
    while (*stream.Next(&parts.back())) parts.emplace_back();
    parts.pop_back();
    return parts;
  }

  const std::string directory_;
  std::shared_ptr<OpenedStore> store_;
  SchemaPtr table_;
  std::unique_ptr<TamisServer> server_;
};

TEST_F(EngineServiceTest, ASearchIsAStreamOfRowsWhoseLastPartSaysThatItIsComplete) {
  Fill(5000);
  Start({});
  SearchOptions options;
  options.predicate = Predicate::Compare(1, Predicate::Op::kEq, Value::Text("v3"));
  const auto answer = Post("/v1/tables/t/search", ToMessage(*table_, options));
  ASSERT_EQ(answer.status, 200) << answer.body;
  int64_t rows = 0;
  const auto parts = PartsOf<pb::TableSearchPart>(answer.body);
  for (const pb::TableSearchPart& part : parts) {
    for (const pb::FoundRow& found : part.rows()) {
      const auto group = FromMessage(*table_, {}, found);
      ASSERT_TRUE(group.ok()) << group.status();
      EXPECT_EQ(group->row, Put(group->row[0].int64(), "v3").row);
      ++rows;
    }
    EXPECT_EQ(part.complete(), &part == &parts.back());
  }
  EXPECT_EQ(rows, 5000 / 7);
  const Explain explain = FromMessage(parts.back().explain());
  EXPECT_EQ(explain.index, "v");
  EXPECT_EQ(explain.rows_returned, 5000 / 7);
}

TEST_F(EngineServiceTest, AggregatesAreMergedByTheServer) {
  Fill(1000);
  Start({});
  const AggregateOptions options{.by = {1}, .totals = {2}};
  const auto answer = Post("/v1/tables/t/aggregate", ToMessage(*table_, options));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto parts = PartsOf<pb::TableAggregatePart>(answer.body);
  ASSERT_EQ(parts.size(), 1);
  ASSERT_EQ(parts[0].groups_size(), 7);
  EXPECT_TRUE(parts[0].complete());
  const auto wanted = *store_->engine().Aggregate(table_, options);
  for (int i = 0; i < 7; ++i) {
    const auto group = FromMessage(*table_, options, parts[0].groups(i));
    ASSERT_TRUE(group.ok()) << group.status();
    EXPECT_EQ(group->by, wanted.groups[i].by);
    EXPECT_EQ(group->count, wanted.groups[i].count);
    EXPECT_EQ(group->totals[0].sum, wanted.groups[i].totals[0].sum);
    EXPECT_EQ(group->totals[0].least, wanted.groups[i].totals[0].least);
    EXPECT_EQ(group->totals[0].greatest, wanted.groups[i].totals[0].greatest);
  }
}

TEST_F(EngineServiceTest, SearchThatEndsEarlyIsCounted) {
  Fill(100);
  Start({});
  pb::TableSearch search = ToMessage(*table_, SearchOptions{});
  search.set_timeout_ns(1);
  EXPECT_EQ(Post("/v1/tables/t/search", search).status, 504);
  EXPECT_THAT(HttpClient(server_->port()).Get("/metrics").body,
              HasSubstr("\ntamis_searches_total 1\n"));
}

TEST_F(EngineServiceTest, EachWriteHasAStatus) {
  Fill(1);
  Start(Writable());
  Write insert = Put(0, "again");
  insert.kind = Write::Kind::kInsert;
  Write update = Put(1, "new");
  update.kind = Write::Kind::kUpdate;
  update.columns = {1};
  Write conditional = Put(0, "changed");
  conditional.condition = Predicate::Compare(1, Predicate::Op::kEq, Value::Text("v0"));
  const auto answer =
      Post("/v1/tables/t/write", Writes({insert, update, conditional, Put(2, "v2")}, 1));
  ASSERT_EQ(answer.status, 200) << answer.body;
  pb::TableWriteResults results;
  ASSERT_TRUE(results.ParseFromString(answer.body));
  std::vector<pb::Error::Code> codes;
  for (const pb::Outcome& result : results.results()) codes.push_back(result.code());
  EXPECT_THAT(codes, testing::ElementsAre(pb::Error::ALREADY_EXISTS, pb::Error::NOT_FOUND,
                                          pb::Error::OK, pb::Error::OK));
  EXPECT_EQ(*store_->engine().Get(table_, Put(0, "").row), Put(0, "changed").row);
}

TEST_F(EngineServiceTest, ARequestToWriteThatComesTwiceIsNotCarriedOutAgain) {
  Start(Writable());
  EXPECT_EQ(Post("/v1/tables/t/write", Writes({Put(1, "first")}, 5)).status, 200);
  EXPECT_EQ(Post("/v1/tables/t/write", Writes({Put(1, "second")}, 6)).status, 200);
  const auto again = Post("/v1/tables/t/write", Writes({Put(1, "first")}, 5));
  EXPECT_EQ(again.status, 504);
  EXPECT_THAT(Detail(again), HasSubstr("may have been carried out"));
  EXPECT_EQ(*store_->engine().Get(table_, Put(1, "").row), Put(1, "second").row);
}

TEST_F(EngineServiceTest, WriteThatIsForAnotherProcessIsRefused) {
  Start(Writable());
  const uint64_t process = Withdraw({}).process();
  ASSERT_NE(process, 0);
  pb::TableWrites writes = Writes({Put(1, "v")}, 1);
  writes.set_process(process + 1);
  const auto refused = Post("/v1/tables/t/write", writes);
  EXPECT_EQ(refused.status, 421);
  EXPECT_THAT(Detail(refused), HasSubstr("another server"));
  EXPECT_EQ(std::stoull(nlohmann::json::parse(refused.body).value("process", ""), nullptr, 16),
            process);
  EXPECT_EQ(*store_->engine().Get(table_, Put(1, "").row), std::nullopt);
  writes.set_process(process);
  EXPECT_EQ(Post("/v1/tables/t/write", writes).status, 200);
  Start(Writable());
  EXPECT_NE(Withdraw({}).process(), process);
}

TEST_F(EngineServiceTest, WriteThatWasWithdrawnIsNotCarriedOut) {
  Start(Writable());
  pb::WithdrawWrite withdraw;
  withdraw.set_process(Withdraw({}).process());
  withdraw.set_client(7);
  withdraw.set_number(1);
  EXPECT_TRUE(Withdraw(withdraw).withdrawn());
  EXPECT_TRUE(Withdraw(withdraw).withdrawn());  // it may be repeated
  EXPECT_EQ(Post("/v1/tables/t/write", Writes({Put(1, "v")}, 1)).status, 504);
  EXPECT_EQ(*store_->engine().Get(table_, Put(1, "").row), std::nullopt);
  EXPECT_EQ(Post("/v1/tables/t/write", Writes({Put(1, "v")}, 2)).status, 200);
  withdraw.set_number(2);
  EXPECT_FALSE(Withdraw(withdraw).withdrawn());
  withdraw.set_number(3);
  withdraw.set_process(withdraw.process() + 1);  // the number is another server's
  EXPECT_FALSE(Withdraw(withdraw).withdrawn());
  EXPECT_EQ(Post("/v1/tables/t/write", Writes({Put(1, "v")}, 3)).status, 200);
}

TEST_F(EngineServiceTest, ServerThatRefusesAWriteNamesItselfAndNeverCarriesItOut) {
  Start(Writable());
  const uint64_t process = Withdraw({}).process();
  const auto named = [](const HttpClient::Answer& answer) {
    return std::stoull("0" + nlohmann::json::parse(answer.body).value("process", ""), nullptr, 16);
  };
  pb::TableWrites damaged = Writes({Put(1, "v")}, 1);
  damaged.mutable_mutations(0)->set_key("x");
  const auto refused = Post("/v1/tables/t/write", damaged);
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(Detail(refused), HasSubstr("key"));
  EXPECT_EQ(named(refused), process);
  EXPECT_EQ(Post("/v1/tables/t/write", Writes({Put(1, "v")}, 1)).status, 504);
  EXPECT_EQ(Post("/v1/tables/t/write", Writes({Put(1, "v")}, 2)).status, 200);

  TamisServer::Options busy = Writable();
  busy.sql.max_statements = 0;
  Start(busy);
  pb::WithdrawWrite number;
  number.set_process(Withdraw({}).process());
  number.set_client(7);
  number.set_number(3);
  const auto later = Post("/v1/tables/t/write", Writes({Put(2, "v")}, 3));
  EXPECT_EQ(later.status, 503);
  EXPECT_EQ(named(later), number.process());
  EXPECT_TRUE(Withdraw(number).withdrawn());
}

// The server would drop the values of columns that it does not know.
TEST_F(EngineServiceTest, WriteOfANewerSchemaIsRefused) {
  Start(Writable());
  pb::TableWrites writes = Writes({Put(1, "v")}, 1);
  writes.set_schema_version(table_->version + 5);
  const auto refused = Post("/v1/tables/t/write", writes);
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(Detail(refused), HasSubstr("nothing was written"));
  EXPECT_EQ(*store_->engine().Get(table_, Put(1, "").row), std::nullopt);
}

TEST_F(EngineServiceTest, ListsOfARequestAreBounded) {
  Start(Writable());
  pb::TableSearch search = ToMessage(*table_, SearchOptions{});
  search.set_all_columns(false);
  for (int i = 0; i < 4; ++i) search.add_columns(0);
  EXPECT_THAT(Detail(Post("/v1/tables/t/search", search)), HasSubstr("names 4 columns"));
  search.clear_columns();
  search.add_columns(2);
  search.set_groups(pb::TableSearch::WHOLE);
  for (int i = 0; i < 1000; ++i) search.add_totals(2);
  EXPECT_THAT(Detail(Post("/v1/tables/t/search", search)), HasSubstr("names 1000 columns"));
  pb::TableAggregate aggregate = ToMessage(*table_, AggregateOptions{.by = {1}, .totals = {2}});
  for (int i = 0; i < 1000; ++i) aggregate.add_totals(2);
  EXPECT_THAT(Detail(Post("/v1/tables/t/aggregate", aggregate)), HasSubstr("names 1001 columns"));
  aggregate.clear_totals();
  for (int i = 0; i < 1000; ++i) aggregate.add_by(2);
  EXPECT_THAT(Detail(Post("/v1/tables/t/aggregate", aggregate)), HasSubstr("names 1001 columns"));

  pb::TableSearch ordered = ToMessage(*table_, SearchOptions{});
  for (int i = 0; i < 1000; ++i) ordered.add_order()->set_column(i % 2);
  EXPECT_EQ(FromMessage(*table_, ordered)->order.size(), 2);

  pb::TableWrites writes = Writes({}, 1);
  for (int i = 0; i <= kMostMutations; ++i) writes.add_mutations();
  EXPECT_THAT(Detail(Post("/v1/tables/t/write", writes)), HasSubstr("300001 rows at once"));
  pb::TableWrites update = Writes({Put(1, "v")}, 2);
  for (int i = 0; i < 1000; ++i) update.mutable_mutations(0)->add_columns(table_->columns[1].id);
  EXPECT_THAT(Detail(Post("/v1/tables/t/write", update)), HasSubstr("more columns than it has"));
}

TEST_F(EngineServiceTest, ReadOnlyServerRefusesWritesAndAdministration) {
  Start({});
  const auto write = Post("/v1/tables/t/write", Writes({Put(1, "v")}, 1));
  EXPECT_EQ(write.status, 403);
  EXPECT_THAT(Detail(write), HasSubstr("--write"));
  Start(Writable());
  pb::ClusterCall drop;
  drop.mutable_drop_table()->set_table("t");
  const auto change = Post("/v1/cluster", drop);
  EXPECT_EQ(change.status, 403);
  EXPECT_THAT(Detail(change), HasSubstr("--admin"));
  EXPECT_TRUE(store_->engine().Table("t").ok());
}

// Servers of an embedded store do not know users and hosts.
TEST(WithoutIdentities, KeepsTheLagAndTheLeaseOfEachCoordinator) {
  const CoordinatorStatus known = {.coordinator = 1,
                                   .events_behind = 2,
                                   .lease_left = std::chrono::milliseconds(3),
                                   .user = "alice",
                                   .host = "10.0.0.1"};
  const ServerStatus status =
      WithoutIdentities({.info = {.name = "rs1"}, .searches = 4, .coordinators = {known, known}});
  EXPECT_EQ(status.info.name, "rs1");
  EXPECT_EQ(status.searches, 4u);
  ASSERT_EQ(status.coordinators.size(), 2u);
  for (const CoordinatorStatus& coordinator : status.coordinators) {
    EXPECT_EQ(coordinator.coordinator, 0u);
    EXPECT_EQ(coordinator.events_behind, 2u);
    EXPECT_EQ(coordinator.lease_left, std::chrono::milliseconds(3));
    EXPECT_EQ(coordinator.user, "");
    EXPECT_EQ(coordinator.host, "");
  }
}

TEST_F(EngineServiceTest, StatusNamesCoordinatorsOnlyToAdministrators) {
  ASSERT_TRUE(store_->engine().WaitUntilRouted(*table_, std::chrono::seconds(60)));
  for (const bool may_administer : {false, true}) {
    TamisServer::Options options;
    options.may_administer = may_administer;
    Start(options);
    pb::ClusterCall call;
    call.mutable_status();
    pb::ClusterAnswer answer;
    ASSERT_TRUE(answer.ParseFromString(Post("/v1/cluster", call).body));
    ASSERT_EQ(answer.servers_size(), 2);
    for (const pb::ServerState& server : answer.servers()) {
      ASSERT_EQ(server.coordinators_size(), 1);
      EXPECT_EQ(server.coordinators(0).coordinator() != 0, may_administer);
    }
  }
}

TEST_F(EngineServiceTest, ARequestForATableThatWasMadeAnewIsNotFound) {
  Start({});
  pb::TableSearch search = ToMessage(*table_, SearchOptions{});
  search.set_table_id(table_->id + 1);
  EXPECT_EQ(Post("/v1/tables/t/search", search).status, 404);
  search.set_table_id(table_->id);
  search.set_schema_version(table_->version +
                            5);  // the version that a client with a newer schema names
  EXPECT_EQ(Post("/v1/tables/t/search", search).status, 200);
}

TEST_F(EngineServiceTest, BodiesThatAreNoMessagesAreRefused) {
  Fill(10);
  TamisServer::Options options = Writable();
  options.may_administer = true;
  Start(options);
  const uint64_t seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  SearchOptions search;
  search.predicate = Predicate::And(
      {Predicate::Compare(1, Predicate::Op::kEq, Value::Text("v3")), Predicate::NotNull(2)});
  search.order = {{.column = 1}};
  const std::map<std::string, std::string> bodies = {
      {"/v1/tables/t/search", ToMessage(*table_, search).SerializeAsString()},
      {"/v1/tables/t/aggregate",
       ToMessage(*table_, AggregateOptions{.by = {1}, .totals = {2}}).SerializeAsString()},
      {"/v1/tables/t/write", Writes({Put(1, "v")}, 1).SerializeAsString()},
      {"/v1/cluster", [] {
         pb::ClusterCall call;
         call.mutable_list_regions()->set_table("t");
         return call.SerializeAsString();
       }()}};
  for (const auto& [path, body] : bodies) {
    for (int i = 0; i < 300; ++i) {
      std::string damaged = body;
      for (uint64_t n = 1 + random() % 3; n > 0; --n) {
        damaged[random() % damaged.size()] = static_cast<char>(random());
      }
      if (random() % 4 == 0) damaged.resize(random() % damaged.size());
      const int status = Post(path, damaged).status;
      EXPECT_TRUE(status == 200 || (status >= 400 && status <= 507))
          << path << ": " << status << ", seed " << seed;
    }
  }
  for (const char* path :
       {"/v1/tables/t/search", "/v1/tables/t/aggregate", "/v1/tables/t/write", "/v1/cluster"}) {
    EXPECT_EQ(Post(path, std::string("\xff\xff\xff\xff")).status, 400) << path;
  }
  pb::TableSearch wrong = ToMessage(*table_, SearchOptions{});
  wrong.set_all_columns(false);
  wrong.add_columns(3);
  EXPECT_THAT(Detail(Post("/v1/tables/t/search", wrong)), HasSubstr("it has no column 3"));
}

TEST(WriteNumbersTest, ANumberIsNewOnce) {
  WriteNumbers numbers;
  EXPECT_TRUE(numbers.Take(1, 5));
  EXPECT_FALSE(numbers.Take(1, 5));
  EXPECT_TRUE(numbers.Take(2, 5));
  EXPECT_TRUE(numbers.Take(1, 3));
  for (uint64_t n = 6; n < 6 + 2 * WriteNumbers::kMostNumbers; ++n) {
    EXPECT_TRUE(numbers.Take(1, n));
  }
  EXPECT_FALSE(numbers.Take(1, 4));  // it is too old to tell
  EXPECT_FALSE(numbers.Take(1, 3));
}

}  // namespace
}  // namespace tamis::server
