// The client against scripted servers: which servers it calls, how often, and which calls it never
// repeats.
#include "tamis/hbase/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <set>

#include "tamis/hbase/testing/scripted_cluster.h"

namespace tamis::hbase {
namespace {

using testing::HasSubstr;

class ClientTest : public testing::Test {
 protected:
  std::unique_ptr<Client> Open(ClientOptions options = {}) {
    // Any server can be the entry point; this one does not serve hbase:meta.
    if (options.addresses.empty()) options.addresses = cluster_.server(2).address().ToString();
    return *Client::Open(std::move(options));
  }

  void AnswerGets(size_t server, const std::string& value) {
    cluster_.server(server).On("Get", [value](const auto& request, const auto& peer) {
      ScriptedCluster::AnswerGet(request, peer, value);
    });
  }

  static std::string Value(const Result<Row>& row) {
    return row.ok() ? std::string(row->Find("f", "q").value_or("absent")) : row.status().ToString();
  }

  ScriptedCluster cluster_{3};
};

TEST_F(ClientTest, LooksUpARegionOnce) {
  cluster_.SetRegion("", "m", 1);
  cluster_.SetRegion("m", "", 2);
  AnswerGets(1, "one");
  AnswerGets(2, "two");
  const auto client = Open();
  for (const char* row : {"a", "b", "l"}) EXPECT_EQ(Value(client->Get("t", {.row = row})), "one");
  for (const char* row : {"m", "z"}) EXPECT_EQ(Value(client->Get("t", {.row = row})), "two");
  EXPECT_EQ(client->counts().meta_lookups, 2u);
  EXPECT_EQ(client->counts().registry_lookups, 1u);
}

TEST_F(ClientTest, ConcurrentMissesShareOneLookup) {
  cluster_.SetRegion("", "", 1);
  AnswerGets(1, "v");
  const auto client = Open();
  std::mutex mutex;
  std::condition_variable changed;
  int left = 200;
  for (int i = 0; i < 200; ++i) {
    client->Get("t", {.row = "r" + std::to_string(i)}, [&](const Result<Row>& row) {
      EXPECT_EQ(Value(row), "v");
      std::lock_guard lock(mutex);
      if (--left == 0) changed.notify_all();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return left == 0; });
  EXPECT_EQ(client->counts().meta_lookups, 1u);
}

TEST_F(ClientTest, UsesTheMovedHintUnlessItIsOutdated) {
  cluster_.SetRegion("", "", 1, 5);
  AnswerGets(2, "there");
  const auto hint = [&](int64_t sequence) {
    cluster_.server(1).On("Get", [this, sequence](const auto& request, const auto& peer) {
      peer->Throw(request.call_id, "exceptions.RegionMovedException",
                  "Region moved to: hostname=127.0.0.1 port=" +
                      std::to_string(cluster_.server(2).address().port) +
                      " startCode=1. As of locationSeqNum=" + std::to_string(sequence) + ".");
    });
  };
  hint(5);
  const auto client = Open();
  EXPECT_EQ(Value(client->Get("t", {.row = "a"})), "there");
  EXPECT_EQ(client->counts().hints_taken, 1u);
  EXPECT_EQ(client->counts().meta_lookups, 1u);

  // An outdated hint is ignored: the client reads the new location from hbase:meta.
  hint(4);
  const auto other = Open();
  std::thread moves([&] {
    while (cluster_.server(1).calls("Get") < 2) std::this_thread::yield();
    cluster_.SetRegion("", "", 2, 8);
  });
  EXPECT_EQ(Value(other->Get("t", {.row = "a"})), "there");
  moves.join();
  EXPECT_EQ(other->counts().hints_taken, 0u);
  EXPECT_GE(other->counts().meta_lookups, 2u);
}

TEST_F(ClientTest, SkipsRegionsThatCannotHoldRows) {
  cluster_.SetRegion("", "c", 1);
  cluster_.SetRegion("c", "m", 1);
  cluster_.SetRegion("m", "z", 1);
  cluster_.SetRegion("p", "b", 1);
  cluster_.SetRegion("q", "q", 1);
  AnswerGets(1, "v");
  const auto client = Open();
  for (int i = 0; i < 2; ++i) {
    const auto regions = client->Regions("t");
    ASSERT_TRUE(regions.ok()) << regions.status();
    std::string starts;
    for (const RegionPtr& region : *regions) starts += region->start + " ";
    EXPECT_EQ(starts, " c m ");
  }
  for (const char* row : {"a", "d", "q"}) EXPECT_EQ(Value(client->Get("t", {.row = row})), "v");
  EXPECT_EQ(client->counts().meta_lookups, 0u);
}

TEST_F(ClientTest, AllCallersShareThePausesBetweenMetaLookups) {
  cluster_.SetRegion("", "", 1);
  cluster_.server(1).On("Get", [](const auto& request, const auto& peer) {
    peer->Throw(request.call_id, "NotServingRegionException");
  });
  const auto client = Open({.operation_timeout = std::chrono::milliseconds(1000)});
  std::mutex mutex;
  std::condition_variable changed;
  int left = 100;
  for (int i = 0; i < 100; ++i) {
    client->Get("t", {.row = "r"}, [&](const Result<Row>& row) {
      // Most calls were waiting for the next read of hbase:meta; some may have been sent to the
      // server.
      EXPECT_TRUE(row.status().code() == StatusCode::kUnavailable ||
                  row.status().code() == StatusCode::kDeadlineExceeded)
          << row.status();
      std::lock_guard lock(mutex);
      if (--left == 0) changed.notify_all();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return left == 0; });
  // Pauses of at least 7.5, 15, 30, ... ms fit into the second; without pauses there are thousands
  // of look-ups.
  EXPECT_LE(client->counts().meta_lookups, 12u);
}

TEST_F(ClientTest, DoesNotRepeatAChangeThatMayHaveRun) {
  cluster_.SetRegion("", "", 1);
  cluster_.server(1).On("Mutate", [](const auto&, const auto& peer) { peer->Close(); });
  const auto client = Open();
  const auto put = client->Mutate("t", Mutation::Put("a").Set("f", "q", "v"));
  EXPECT_EQ(put.status().code(), StatusCode::kDeadlineExceeded) << put.status();
  EXPECT_THAT(put.status().message(), HasSubstr("may have been carried out"));
  EXPECT_EQ(cluster_.server(1).calls("Mutate"), 1);
  const auto conditional =
      client->Mutate("t", Mutation::Put("a").Set("f", "q", "v"),
                     {.condition = Condition::Absent("f", "q"), .repeat = true});
  EXPECT_EQ(conditional.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(cluster_.server(1).calls("Mutate"), 2);
  cluster_.server(1).On("ExecService", [](const auto&, const auto& peer) { peer->Close(); });
  EXPECT_EQ(client->Exec("t", "a", {.service = "s", .method = "m"}).status().code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_EQ(cluster_.server(1).calls("ExecService"), 1);
}

TEST_F(ClientTest, RepeatsAPutIfTheOptionAllowsIt) {
  cluster_.SetRegion("", "", 1);
  std::atomic<int> tries = 0;
  cluster_.server(1).On("Mutate", [&](const auto& request, const auto& peer) {
    if (++tries < 3) return peer->Close();
    pb::MutateResponse answer;
    answer.set_processed(true);
    peer->Answer(request.call_id, answer);
  });
  const auto client = Open();
  EXPECT_TRUE(client->Mutate("t", Mutation::Put("a").Set("f", "q", "v"), {.repeat = true}).ok());
  EXPECT_EQ(tries, 3);
}

TEST_F(ClientTest, RepeatsAnIncrementOnlyAtTheServerThatKnowsItsNonce) {
  cluster_.SetRegion("", "", 1);
  std::mutex mutex;
  std::set<uint64_t> nonces;
  std::atomic<int> tries = 0;
  cluster_.server(1).On("Mutate", [&](const auto& request, const auto& peer) {
    const auto mutate = request.template Parsed<pb::MutateRequest>();
    {
      std::lock_guard lock(mutex);
      nonces.insert(mutate.mutation().nonce());
    }
    EXPECT_NE(mutate.nonce_group(), 0u);
    if (++tries < 3) return peer->Close();
    peer->Answer(request.call_id, pb::MutateResponse());
  });
  const auto client = Open();
  const auto increment = [&] {
    return client->Mutate("t", Mutation::Increment("a").Add("f", "n", 1)).status();
  };
  EXPECT_EQ(increment(), Status());
  EXPECT_EQ(tries, 3);
  EXPECT_EQ(nonces.size(), 1u);
  EXPECT_FALSE(nonces.contains(0));

  // The region moves after the first try: the new server does not know the nonce.
  cluster_.server(1).On("Mutate", [&](const auto&, const auto& peer) {
    cluster_.SetRegion("", "", 2, 10);
    peer->Close();
  });
  const Status moved = increment();
  EXPECT_EQ(moved.code(), StatusCode::kDeadlineExceeded) << moved;
  EXPECT_EQ(cluster_.server(2).calls("Mutate"), 0);
}

// The answer to a later try does not prove that an earlier, unanswered try failed.
TEST_F(ClientTest, UnknownOutcomeStaysUnknownAfterRetry) {
  cluster_.SetRegion("", "", 1);
  for (const char* method : {"Mutate", "Multi"}) {
    for (const char* second : {"SomethingNew", "regionserver.NoSuchColumnFamilyException"}) {
      std::atomic<int> tries = 0;
      cluster_.server(1).On(method, [&](const auto& request, const auto& peer) {
        if (++tries == 1) return peer->Close();
        peer->Throw(request.call_id, second, "as it is");
      });
      const auto client = Open();
      const auto increment = Mutation::Increment("a").Add("f", "n", 1);
      const Status status =
          method == std::string("Mutate")
              ? client->Mutate("t", increment).status()
              : client->Mutate("t", std::vector{increment}, WriteOptions()).front().status();
      EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
      EXPECT_THAT(status.message(), HasSubstr("may have been carried out"));
      EXPECT_THAT(status.message(), HasSubstr("as it is"));
      EXPECT_EQ(tries, 2);
    }
  }
}

TEST_F(ClientTest, RepeatedChangesEndAsUnknownIfNoTryIsAnswered) {
  const auto close_and_drop = [&](const auto&, const auto& peer) {
    cluster_.RemoveRegion("");
    peer->Close();
  };
  for (const char* method : {"Mutate", "Multi", "Get"}) {
    cluster_.server(1).On(method, close_and_drop);
  }
  const auto put = Mutation::Put("a").Set("f", "q", "v");
  const auto client = Open();
  cluster_.SetRegion("", "", 1);
  const Status one = client->Mutate("t", put, {.repeat = true}).status();
  EXPECT_EQ(one.code(), StatusCode::kDeadlineExceeded) << one;
  EXPECT_THAT(one.message(), HasSubstr("may have been carried out"));
  cluster_.SetRegion("", "", 1);
  const Status of_batch =
      client->Mutate("t", std::vector{put}, WriteOptions{.repeat = true}).front().status();
  EXPECT_EQ(of_batch.code(), StatusCode::kDeadlineExceeded) << of_batch;
  EXPECT_THAT(of_batch.message(), HasSubstr("may have been carried out"));
  // A Get changes nothing, so its outcome is not in doubt.
  cluster_.SetRegion("", "", 1);
  EXPECT_EQ(client->Get("t", {.row = "a"}).status().code(), StatusCode::kNotFound);
}

// HBase wraps exceptions of coprocessors in a plain DoNotRetryIOException, whether they are thrown
// before or after the write.
TEST_F(ClientTest, ChangeMayHaveRunAfterAnInconclusiveException) {
  cluster_.SetRegion("", "", 1);
  const auto client = Open();
  const auto put = Mutation::Put("a").Set("f", "q", "v");
  const auto code_after = [&](const std::string& exception, bool do_not_retry) {
    const auto fails = [=](const auto& request, const auto& peer) {
      peer->Throw(request.call_id, exception, "the write may stand", do_not_retry);
    };
    cluster_.server(1).On("Mutate", fails);
    cluster_.server(1).On("Multi", fails);
    const StatusCode one = client->Mutate("t", put).status().code();
    EXPECT_EQ(client->Mutate("t", std::vector{put}, WriteOptions()).front().status().code(), one);
    EXPECT_EQ(client->MutateRow("t", {put}).status().code(), one);
    return one;
  };
  EXPECT_EQ(code_after("DoNotRetryIOException", true), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(code_after("SomethingNew", true), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(code_after("SomethingNew", false), StatusCode::kDeadlineExceeded);
  // HBase throws these before it changes anything.
  EXPECT_EQ(code_after("regionserver.NoSuchColumnFamilyException", true), StatusCode::kNotFound);
  EXPECT_EQ(code_after("TableNotFoundException", true), StatusCode::kNotFound);
}

TEST_F(ClientTest, ChangeMayHaveRunIfItsAnswerIsUnreadable) {
  cluster_.SetRegion("", "", 1);
  const auto client = Open();
  const auto put = Mutation::Put("a").Set("f", "q", "v");
  pb::Result more;  // announces more cells than there are
  more.set_associated_cell_count(7);
  cluster_.server(1).On("Mutate", [&](const auto& request, const auto& peer) {
    pb::MutateResponse answer;
    *answer.mutable_result() = more;
    peer->Answer(request.call_id, answer);
  });
  cluster_.server(1).On("Multi", [&](const auto& request, const auto& peer) {
    pb::MultiResponse answer;
    *answer.add_regionactionresult()->add_resultorexception()->mutable_result() = more;
    peer->Answer(request.call_id, answer);
  });
  for (const Status& status :
       {client->Mutate("t", put).status(), client->MutateRow("t", {put}).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(status.message(), HasSubstr("may have been carried out"));
  }
}

TEST_F(ClientTest, BatchRepeatsOnlyActionsThatDidNotRun) {
  cluster_.SetRegion("", "m", 1);
  cluster_.SetRegion("m", "", 2);
  const auto answer_all = [](const auto& request, const auto& peer) {
    const auto multi = request.template Parsed<pb::MultiRequest>();
    pb::MultiResponse answer;
    for (const auto& of_region : multi.regionaction()) {
      auto& result = *answer.add_regionactionresult();
      // The results come in another order than the actions.
      for (int i = of_region.action_size(); i-- > 0;) {
        auto& one = *result.add_resultorexception();
        one.set_index(of_region.action(i).index());
        one.mutable_result();
      }
    }
    peer->Answer(request.call_id, answer);
  };
  std::atomic<int> tries = 0;
  cluster_.server(1).On("Multi", [&](const auto& request, const auto& peer) {
    if (++tries > 1) return answer_all(request, peer);
    const auto multi = request.template Parsed<pb::MultiRequest>();
    EXPECT_EQ(multi.regionaction(0).action_size(), 3);
    pb::MultiResponse answer;
    auto& result = *answer.add_regionactionresult();
    auto& busy = *result.add_resultorexception();
    busy.set_index(2);
    busy.mutable_exception()->set_name("org.apache.hadoop.hbase.RegionTooBusyException");
    auto& done = *result.add_resultorexception();
    done.set_index(0);
    auto& wrong = *result.add_resultorexception();
    wrong.set_index(1);
    wrong.mutable_exception()->set_name("a.b.NoSuchColumnFamilyException");
    wrong.mutable_exception()->set_value("a.b.NoSuchColumnFamilyException: no g\n\tat x");
    peer->Answer(request.call_id, answer);
  });
  cluster_.server(2).On("Multi", [](const auto&, const auto& peer) { peer->Close(); });
  const auto client = Open();
  std::vector<Mutation> puts;
  for (const char* row : {"a", "b", "c", "x"}) {
    puts.push_back(Mutation::Put(row).Set("f", "q", "v"));
  }
  const auto results = client->Mutate("t", puts, WriteOptions());
  ASSERT_EQ(results.size(), 4u);
  EXPECT_TRUE(results[0].ok()) << results[0].status();
  EXPECT_EQ(results[1].status().code(), StatusCode::kNotFound);
  EXPECT_THAT(results[1].status().message(), HasSubstr("no g"));
  EXPECT_TRUE(results[2].ok()) << results[2].status();
  EXPECT_EQ(results[3].status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(cluster_.server(2).calls("Multi"), 1);
}

TEST_F(ClientTest, DamagedResultInvalidatesLaterResultsWithCells) {
  cluster_.SetRegion("", "", 1);
  cluster_.server(1).On("Multi", [](const auto& request, const auto& peer) {
    pb::MultiResponse answer;
    auto& result = *answer.add_regionactionresult();
    std::string cells;
    for (const uint32_t i : {0u, 1u, 2u}) {
      auto& one = *result.add_resultorexception();
      one.set_index(i);
      if (i == 2) continue;
      // The first result announces more cells than there are, the others one each.
      one.mutable_result()->set_associated_cell_count(i == 0 ? 100 : 1);
      AppendCell("b", {.family = "f", .qualifier = "q", .timestamp = 1, .value = "v"}, &cells);
    }
    peer->Answer(request.call_id, answer, cells);
  });
  const auto client = Open();
  const auto rows = client->Get("t", std::vector<Get>{{.row = "a"}, {.row = "b"}, {.row = "c"}});
  EXPECT_EQ(rows[0].status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(rows[1].status().code(), StatusCode::kDataLoss);
  EXPECT_TRUE(rows[2].ok() && rows[2]->empty()) << rows[2].status();
}

TEST_F(ClientTest, RejectsAnAnswerWithAnotherRow) {
  cluster_.SetRegion("", "", 1);
  pb::Result one_cell;
  one_cell.set_associated_cell_count(1);
  std::string foreign;
  AppendCell("b", {.family = "f", .qualifier = "q", .timestamp = 1, .value = "v"}, &foreign);
  cluster_.server(1).On("Get", [&](const auto& request, const auto& peer) {
    pb::GetResponse answer;
    *answer.mutable_result() = one_cell;
    peer->Answer(request.call_id, answer, foreign);
  });
  cluster_.server(1).On("Multi", [&](const auto& request, const auto& peer) {
    pb::MultiResponse answer;
    *answer.add_regionactionresult()->add_resultorexception()->mutable_result() = one_cell;
    peer->Answer(request.call_id, answer, foreign);
  });
  const auto client = Open();
  const Status one = client->Get("t", {.row = "a"}).status();
  EXPECT_EQ(one.code(), StatusCode::kDataLoss) << one;
  const Status of_batch = client->Get("t", std::vector<Get>{{.row = "a"}}).front().status();
  EXPECT_EQ(of_batch.code(), StatusCode::kDataLoss) << of_batch;
  // The server applied the append, although its answer is invalid.
  const Status append = client->MutateRow("t", {Mutation::Append("a").Set("f", "q", "v")}).status();
  EXPECT_EQ(append.code(), StatusCode::kDeadlineExceeded) << append;
}

TEST_F(ClientTest, RetriesReadsAFewTimesAfterAnUnknownException) {
  cluster_.SetRegion("", "", 1);
  const auto fails = [](const auto& request, const auto& peer) {
    peer->Throw(request.call_id, "SomethingNew", "never seen");
  };
  cluster_.server(1).On("Get", fails);
  cluster_.server(1).On("Mutate", fails);
  const auto client = Open();
  const auto get = client->Get("t", {.row = "a"});
  EXPECT_EQ(get.status().code(), StatusCode::kInternal);
  EXPECT_THAT(get.status().message(), HasSubstr("SomethingNew: never seen"));
  EXPECT_EQ(cluster_.server(1).calls("Get"), 3);
  EXPECT_FALSE(client->Mutate("t", Mutation::Put("a").Set("f", "q", "v")).ok());
  EXPECT_EQ(cluster_.server(1).calls("Mutate"), 1);
}

// The server aborts during its calls, and the region opens on another server.
TEST_F(ClientTest, ReadsAgainElsewhereAfterAnInternalServerError) {
  const auto fails = [&](const auto& request, const auto& peer) {
    // Fails more often than the client repeats a call after an unknown exception.
    if (cluster_.server(1).calls(request.method) > 3) cluster_.SetRegion("", "", 2);
    peer->Throw(request.call_id, "java.lang.NullPointerException", "\"this.in\" is null");
  };
  for (const char* method : {"Get", "Multi", "Scan", "Mutate"}) {
    cluster_.server(1).On(method, fails);
  }
  AnswerGets(2, "v");
  cluster_.server(2).On("Multi", [](const auto& request, const auto& peer) {
    pb::MultiResponse answer;
    pb::ResultOrException* got = answer.add_regionactionresult()->add_resultorexception();
    got->set_index(0);
    got->mutable_result()->set_associated_cell_count(0);
    peer->Answer(request.call_id, answer);
  });
  cluster_.server(2).On("Scan", [](const auto& request, const auto& peer) {
    pb::ScanResponse answer;
    answer.set_more_results(false);
    peer->Answer(request.call_id, answer);
  });
  cluster_.SetRegion("", "", 1);
  EXPECT_EQ(Value(Open()->Get("t", {.row = "a"})), "v");
  cluster_.SetRegion("", "", 1);
  const auto batch = Open()->Get("t", std::vector<Get>{{.row = "a"}});
  EXPECT_TRUE(batch.front().ok()) << batch.front().status();
  cluster_.SetRegion("", "", 1);
  const auto client = Open();
  const auto rows = client->Scan("t", {})->Next();
  EXPECT_TRUE(rows.ok()) << rows.status();
  cluster_.SetRegion("", "", 1);
  const Status append = Open()->MutateRow("t", {Mutation::Append("a").Set("f", "q", "v")}).status();
  EXPECT_EQ(append.code(), StatusCode::kDeadlineExceeded) << append;
  EXPECT_THAT(append.message(), HasSubstr("may have been carried out"));
}

TEST_F(ClientTest, TooLargeAnswerFailsOnlyItsCallAndIsNotRetried) {
  cluster_.SetRegion("", "", 1);
  std::mutex mutex;
  std::optional<uint32_t> held;
  const auto hold = [&](const auto& request, const auto&) {
    const std::lock_guard lock(mutex);
    held = request.call_id;
  };
  const auto too_much = [&](const auto& request, const auto& peer) {
    ScriptedCluster::AnswerGet(request, peer, std::string(9000, 'v'));
    uint32_t mutate = 0;
    {
      const std::lock_guard lock(mutex);
      mutate = *held;
    }
    peer->Answer(mutate, pb::MutateResponse());  // the test may end, and the mutex with it
  };
  cluster_.server(1).On("Mutate", hold);
  cluster_.server(1).On("Get", too_much);
  const auto client = Open({.max_answer_bytes = 8000});
  std::promise<Status> mutated;
  client->Mutate("t", Mutation::Put("a").Set("f", "q", "v"), {},
                 [&](const auto& result) { mutated.set_value(result.status()); });
  while (cluster_.server(1).calls("Mutate") == 0) std::this_thread::yield();
  const Status get = client->Get("t", {.row = "a"}).status();
  EXPECT_EQ(get.code(), StatusCode::kResourceExhausted) << get;
  EXPECT_THAT(get.message(), HasSubstr("8000 are allowed"));
  EXPECT_EQ(cluster_.server(1).calls("Get"), 1);
  EXPECT_EQ(mutated.get_future().get(), Status());
  EXPECT_EQ(cluster_.server(1).connections(), 1);
}

TEST_F(ClientTest, SkipsADeadBootstrapServer) {
  cluster_.SetRegion("", "", 1);
  AnswerGets(1, "v");
  Address dead;
  {
    ScriptedServer gone;
    dead = gone.address();
  }
  const auto client =
      Open({.addresses = dead.ToString() + "," + cluster_.server(2).address().ToString()});
  EXPECT_EQ(Value(client->Get("t", {.row = "a"})), "v");
}

TEST_F(ClientTest, ClosingEndsRunningOperations) {
  cluster_.SetRegion("", "", 1);
  auto client = Open();
  Status status;
  std::thread closes([&] {
    while (cluster_.server(1).calls("Get") == 0) std::this_thread::yield();
    client.reset();
  });
  client->Get("t", {.row = "a"}, [&](const Result<Row>& row) { status = row.status(); });
  closes.join();
  EXPECT_EQ(status.code(), StatusCode::kCancelled) << status;
}

TEST_F(ClientTest, InvalidAddressesAreRefused) {
  for (const char* text :
       {"", "host", "host:", "host:x", "host:0", "host:70000", ":1", "a:1,,b:2"}) {
    const auto client = Client::Open({.addresses = text});
    EXPECT_EQ(client.status().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_TRUE(Client::Open({.addresses = "a:1,[::1]:2"}).ok());
}

// ---- Scans.

class ScanTest : public ClientTest {
 protected:
  // Answers with rows of one cell each.
  static void Answer(const ScriptedServer::Request& request, const ScriptedServer::PeerPtr& peer,
                     const std::vector<std::string>& rows, bool more_in_region,
                     bool heartbeat = false) {
    pb::ScanResponse answer;
    std::string cells;
    for (const std::string& row : rows) {
      AppendCell(row, {.family = "f", .qualifier = "q", .timestamp = 1, .value = "v"}, &cells);
      answer.add_cells_per_result(1);
      answer.add_partial_flag_per_result(false);
    }
    answer.set_scanner_id(42);
    answer.set_more_results(true);
    answer.set_more_results_in_region(more_in_region);
    answer.set_heartbeat_message(heartbeat);
    peer->Answer(request.call_id, answer, cells);
  }

  Result<std::string> Keys(Client& client, Scan scan) {
    const auto stream = client.Scan("t", std::move(scan));
    std::string keys;
    while (true) {
      const auto rows = stream->Next();
      if (!rows.ok()) return rows.status();
      if (rows->empty()) return keys;
      for (const Row& row : *rows) keys += std::string(row.key()) + " ";
    }
  }
};

TEST_F(ScanTest, ContinuesAfterHeartbeatsAndLostScanners) {
  cluster_.SetRegion("", "m", 1);
  cluster_.SetRegion("m", "", 2);
  std::atomic<int> step = 0;  // each connection has a thread
  cluster_.server(1).On("Scan", [&](const auto& request, const auto& peer) {
    const auto scan = request.template Parsed<pb::ScanRequest>();
    switch (step++) {
      case 0:
        EXPECT_TRUE(scan.has_scan());
        EXPECT_TRUE(scan.client_handles_heartbeats());
        EXPECT_TRUE(scan.client_handles_partials());
        EXPECT_FALSE(scan.has_next_call_seq());
        return Answer(request, peer, {"a", "b"}, true);
      case 1:
        EXPECT_EQ(scan.scanner_id(), 42u);
        EXPECT_EQ(scan.next_call_seq(), 0u);
        return Answer(request, peer, {}, true, true);
      case 2:
        EXPECT_EQ(scan.next_call_seq(), 1u);
        return peer->Throw(request.call_id, "UnknownScannerException", "gone", true);
      case 3:
        EXPECT_EQ(scan.scan().start_row(), "b");
        EXPECT_FALSE(scan.scan().include_start_row());
        return Answer(request, peer, {"c"}, true);
      case 4:
        return peer->Close();
      case 5:
        EXPECT_EQ(scan.scan().start_row(), "c");
        return Answer(request, peer, {"d"}, false);
    }
  });
  cluster_.server(2).On("Scan", [&](const auto& request, const auto& peer) {
    const auto scan = request.template Parsed<pb::ScanRequest>();
    EXPECT_EQ(scan.scan().start_row(), "m");
    EXPECT_TRUE(scan.scan().include_start_row());
    Answer(request, peer, {"m", "n"}, false);
  });
  const auto client = Open();
  const auto keys = Keys(*client, {});
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(*keys, "a b c d m n ");
  EXPECT_EQ(step, 6);
}

TEST_F(ScanTest, ReturnsTheRowsBeforeADamagedRow) {
  cluster_.SetRegion("", "", 1);
  std::atomic<int> step = 0;
  const auto damaged = [](const auto& request, const auto& peer,
                          const std::vector<std::string>& before) {
    pb::ScanResponse answer;
    std::string cells;
    for (const std::string& row : before) {
      AppendCell(row, {.family = "f", .qualifier = "q", .timestamp = 1, .value = "v"}, &cells);
      answer.add_cells_per_result(1);
    }
    answer.add_cells_per_result(1);
    answer.set_scanner_id(42);
    answer.set_more_results(true);
    answer.set_more_results_in_region(true);
    peer->Answer(request.call_id, answer, cells + std::string(100, '\xff'));
  };
  cluster_.server(1).On("Scan", [&](const auto& request, const auto& peer) {
    const auto scan = request.template Parsed<pb::ScanRequest>();
    EXPECT_TRUE(scan.has_scan());
    EXPECT_EQ(scan.scan().start_row(), step == 0 ? "" : "b");
    EXPECT_EQ(scan.scan().include_start_row(), step == 0);
    switch (step++) {
      case 0:
        return damaged(request, peer, {"a", "b"});
      case 1:
        return damaged(request, peer, {});
      case 2:
        return Answer(request, peer, {"c"}, false);
    }
  });
  const auto client = Open();
  const auto stream = client->Scan("t", {});
  const auto before = stream->Next();
  ASSERT_TRUE(before.ok()) << before.status();
  ASSERT_EQ(before->size(), 2u);
  EXPECT_EQ((*before)[1].key(), "b");
  EXPECT_EQ(stream->Next().status().code(), StatusCode::kDataLoss);
  const auto behind = stream->Next();
  ASSERT_TRUE(behind.ok()) << behind.status();
  ASSERT_EQ(behind->size(), 1u);
  EXPECT_EQ((*behind)[0].key(), "c");
}

TEST_F(ScanTest, ReadsPartsOfARowAgainAfterAnError) {
  cluster_.SetRegion("", "", 1);
  std::atomic<int> step = 0;
  const auto answer_a = [](const auto& request, const auto& peer,
                           const std::vector<std::string>& qualifiers, bool partial) {
    pb::ScanResponse answer;
    std::string cells;
    for (const std::string& qualifier : qualifiers) {
      AppendCell("a", {.family = "f", .qualifier = qualifier, .timestamp = 1, .value = "v"},
                 &cells);
    }
    answer.add_cells_per_result(static_cast<uint32_t>(qualifiers.size()));
    answer.add_partial_flag_per_result(partial);
    answer.set_scanner_id(42);
    answer.set_more_results(partial);
    peer->Answer(request.call_id, answer, cells);
  };
  for (const char* exception : {"TableNotFoundException", "SomethingNew"}) {
    step = 0;
    cluster_.server(1).On("Scan", [&](const auto& request, const auto& peer) {
      const auto scan = request.template Parsed<pb::ScanRequest>();
      if (++step == 1) return answer_a(request, peer, {"p"}, true);
      if (step <= 4 && !(step > 2 && exception[0] == 'T')) {
        return peer->Throw(request.call_id, exception);
      }
      EXPECT_TRUE(scan.has_scan());
      answer_a(request, peer, {"p", "q"}, false);
    });
    const auto client = Open();
    const auto stream = client->Scan("t", {});
    EXPECT_FALSE(stream->Next().ok());
    const auto rows = stream->Next();
    ASSERT_TRUE(rows.ok()) << rows.status();
    ASSERT_EQ(rows->size(), 1u);
    EXPECT_EQ((*rows)[0].cells().size(), 2u);
  }
}

TEST_F(ScanTest, KeepsTheLimitIfTheLastPartOfARowIsNotMarked) {
  cluster_.SetRegion("", "", 1);
  std::atomic<int> step = 0;
  cluster_.server(1).On("Scan", [&](const auto& request, const auto& peer) {
    const auto scan = request.template Parsed<pb::ScanRequest>();
    if (scan.close_scanner()) return;
    pb::ScanResponse answer;
    std::string cells;
    AppendCell(step == 0 ? "a" : "b",
               {.family = "f", .qualifier = "q", .timestamp = 1, .value = "v"}, &cells);
    answer.add_cells_per_result(1);
    answer.add_partial_flag_per_result(step == 0);
    answer.set_scanner_id(42);
    answer.set_more_results(true);
    answer.set_more_results_in_region(step++ == 0);
    peer->Answer(request.call_id, answer, cells);
  });
  const auto client = Open();
  const auto keys = Keys(*client, {.limit = 1});
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(*keys, "a ");
}

TEST_F(ScanTest, ScanThatEndsInARegionCallsNoOther) {
  cluster_.SetRegion("", "m", 1);
  cluster_.SetRegion("m", "", 2);
  cluster_.server(1).On(
      "Scan", [](const auto& request, const auto& peer) { Answer(request, peer, {"a"}, false); });
  const auto client = Open();
  EXPECT_EQ(*Keys(*client, {.stop_row = "m"}), "a ");
  EXPECT_EQ(*Keys(*client, {.start_row = "c", .stop_row = "b", .reversed = true}), "a ");
  EXPECT_EQ(cluster_.server(2).calls("Scan"), 0);
}

TEST_F(ScanTest, FullWindowDoesNotMakeTheServerSuspect) {
  cluster_.SetRegion("", "", 1);  // no handlers: the server never answers
  const auto client = Open({.operation_timeout = std::chrono::milliseconds(1000),
                            .call_timeout = std::chrono::milliseconds(50),
                            .window = 1});
  client->Exec("t", "a", {.service = "s", .method = "m", .timeout = std::chrono::seconds(60)},
               [](const auto&) {});
  while (cluster_.server(1).calls("ExecService") == 0) std::this_thread::yield();
  // The pending call fills the window until its deadline, a moment before that of the scan, whose
  // call may be sent in this moment.
  const auto keys = Keys(*client, {});
  EXPECT_FALSE(keys.ok());
  EXPECT_LE(cluster_.server(1).calls("Scan"), 1);
  EXPECT_EQ(client->counts().meta_lookups, 1u);
}

TEST_F(ScanTest, ScanWithoutProgressEndsAtItsDeadline) {
  cluster_.SetRegion("", "", 1);
  cluster_.server(1).On("Scan", [](const auto& request, const auto& peer) {
    peer->Throw(request.call_id, "exceptions.ScannerResetException", "again", true);
  });
  const auto client = Open({.operation_timeout = std::chrono::milliseconds(500)});
  const auto keys = Keys(*client, {});
  EXPECT_TRUE(keys.status().code() == StatusCode::kUnavailable ||
              keys.status().code() == StatusCode::kDeadlineExceeded)
      << keys.status();
  EXPECT_LE(cluster_.server(1).calls("Scan"), 12);
}

}  // namespace
}  // namespace tamis::hbase
