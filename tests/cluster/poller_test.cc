// When a coordinator asks a region server for news: at all times, but never in a busy loop.
#include "tamis/query/poller.h"

#include <gtest/gtest.h>

#include <vector>

#include "tamis/base/testing/sim_executor.h"
#include "tests/cluster/sim_network.h"

namespace tamis {
namespace {

using namespace std::chrono_literals;

// Answers polls as the test says.
class ScriptedServer : public RegionServer {
 public:
  explicit ScriptedServer(SimExecutor* executor) : executor_(executor) {}

  void Mutate(const pb::MutateRequest&, Callback<pb::MutateReply>) override {}
  void Search(const pb::SearchRequest&, Callback<pb::SearchReply>) override {}
  void Poll(const pb::PollRequest& request, Callback<pb::PollReply> done) override {
    polls.push_back(executor_->Now());
    last = request;
    executor_->PostAfter(delay, [this, request, done] {
      if (answer) done(answer(request));
    });
  }

  std::vector<Time> polls;
  pb::PollRequest last;
  Duration delay = 1ms;
  std::function<Result<pb::PollReply>(const pb::PollRequest&)> answer;  // none: never answers

 private:
  SimExecutor* const executor_;
};

class PollerTest : public ::testing::Test {
 protected:
  // A cluster as a poller sees it: the list of servers and their replies.
  class ScriptedCluster : public SimNetwork {
   public:
    ScriptedCluster(SimExecutor* executor, NetworkCounts* counts)
        : SimNetwork(nullptr, executor, {}, counts) {}
    std::shared_ptr<RegionServer> Server(const std::string&) override { return server; }
    void ListServers(Callback<std::vector<ServerInfo>> done) override { done(servers); }

    std::shared_ptr<ScriptedServer> server;
    std::vector<ServerInfo> servers{{.name = "rs1"}};
  };

  PollerTest() {
    cluster_.server = server_;
    poller_ = std::make_shared<Poller>(
        &cluster_, &executor_, index_,
        Poller::Options{.wait = 300ms, .margin = 200ms, .pause = 50ms, .longest_pause = 1s},
        [this](uint32_t table_id, uint64_t version) { tables_.emplace_back(table_id, version); });
  }
  ~PollerTest() override {
    poller_->Stop();
    executor_.Clear();
  }

  // The reply of a server without news.
  static pb::PollReply Nothing(const pb::PollRequest& request) {
    pb::PollReply reply;
    reply.set_start_code(7);
    reply.set_full(request.start_code() != 7);
    reply.set_to(1);
    reply.set_from(1);
    return reply;
  }
  size_t PollsDuring(Duration duration) {
    const size_t before = server_->polls.size();
    executor_.RunFor(duration);
    return server_->polls.size() - before;
  }

  SimExecutor executor_{1, 1ms};
  NetworkCounts counts_;
  std::shared_ptr<ScriptedServer> server_ = std::make_shared<ScriptedServer>(&executor_);
  ScriptedCluster cluster_{&executor_, &counts_};
  const std::shared_ptr<GlobalIndex> index_ =
      std::make_shared<GlobalIndex>(GlobalIndex::Options{.coordinator = 5});
  std::shared_ptr<Poller> poller_;
  std::vector<std::pair<uint32_t, uint64_t>> tables_;
};

TEST_F(PollerTest, ServerThatHoldsPollsIsPolledAgainAtOnce) {
  server_->answer = Nothing;
  server_->delay = 300ms;
  poller_->Start();
  EXPECT_GE(PollsDuring(3s), 10u);
}

TEST_F(PollerTest, ServerWithoutRoomForPollsIsPolledWhenItSays) {
  server_->answer = [](const pb::PollRequest& request) {
    pb::PollReply reply = Nothing(request);
    reply.set_next_poll_ns(20'000'000);
    return reply;
  };
  poller_->Start();
  const size_t polls = PollsDuring(2100ms);
  EXPECT_LE(polls, 105u);
  EXPECT_GE(polls, 95u);
}

TEST_F(PollerTest, ServerThatAnswersAtOnceWithoutNewsIsPolledLessOften) {
  server_->answer = Nothing;
  poller_->Start();
  EXPECT_LE(PollsDuring(10s), 17u);
  EXPECT_LE(PollsDuring(10s), 11u);
}

TEST_F(PollerTest, FailingServerIsPolledLessOften) {
  server_->answer = [](const pb::PollRequest&) { return Result<pb::PollReply>(Unavailable("no")); };
  poller_->Start();
  EXPECT_LE(PollsDuring(10s), 16u);
  EXPECT_LE(PollsDuring(10s), 11u);
  EXPECT_GE(PollsDuring(10s), 9u) << "but not never";
  server_->answer = Nothing;
  server_->delay = 300ms;
  executor_.RunFor(1s);
  EXPECT_GE(PollsDuring(3s), 9u);
}

TEST_F(PollerTest, APollThatIsNotAnsweredInTimeIsSentAgain) {
  poller_->Start();
  executor_.RunFor(500ms + 50ms + 2ms);
  EXPECT_EQ(server_->polls.size(), 2u);
  EXPECT_LE(PollsDuring(10s), 10u);
}

TEST_F(PollerTest, RemovedServerIsForgotten) {
  server_->answer = Nothing;
  server_->delay = 300ms;
  poller_->Start();
  executor_.RunFor(2s);
  cluster_.servers.clear();
  executor_.RunFor(2s);
  EXPECT_EQ(PollsDuring(10s), 0u);
  cluster_.servers.push_back({.name = "rs1"});
  EXPECT_GE(PollsDuring(3s), 5u);
}

TEST_F(PollerTest, TableVersionsInRepliesAreReported) {
  server_->answer = [](const pb::PollRequest& request) {
    pb::PollReply reply = Nothing(request);
    pb::Event* event = reply.add_events();
    event->set_kind(pb::Event::TABLE_CHANGED);
    event->set_table_id(3);
    event->set_schema_version(4);
    return reply;
  };
  poller_->Start();
  executor_.RunFor(10ms);
  ASSERT_FALSE(tables_.empty());
  EXPECT_EQ(tables_.front(), std::pair(3u, uint64_t{4}));
}

TEST_F(PollerTest, ServersAreToldThatTheCoordinatorEnds) {
  server_->answer = Nothing;
  poller_->Start();
  executor_.RunFor(1s);
  EXPECT_EQ(index_->stats(executor_.Now()).servers, 1u);
  EXPECT_FALSE(server_->last.leaves());
  poller_->Stop();
  const Time before = executor_.Now();
  poller_->Leave(200ms);
  EXPECT_TRUE(server_->last.leaves());
  EXPECT_EQ(server_->last.coordinator(), 5u);
  EXPECT_EQ(index_->stats(executor_.Now()).servers, 0u) << "nothing is excluded any longer";
  EXPECT_LE(executor_.Now() - before, 2ms) << "it waits for the answer only";
  EXPECT_EQ(PollsDuring(10s), 0u);
}

TEST_F(PollerTest, EndDoesNotWaitForAServerThatDoesNotAnswer) {
  poller_->Start();
  executor_.RunFor(100ms);
  poller_->Stop();
  const Time before = executor_.Now();
  poller_->Leave(200ms);
  EXPECT_TRUE(server_->last.leaves());
  EXPECT_EQ(executor_.Now() - before, 200ms);
}

}  // namespace
}  // namespace tamis
