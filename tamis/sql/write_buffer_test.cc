// The outcome of buffered writes when the statement is cancelled while they are sent.
#include "tamis/sql/write_buffer.h"

#include <gtest/gtest.h>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/query/testing/scripted_cluster.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;

class WriteBufferTest : public testing::Test {
 protected:
  // Two regions: of ids below and from 10'000, at the servers a and b, which take what they are
  // sent.
  WriteBufferTest() {
    cluster_.Make(2, 10'000, {"a", "b"});
    for (auto& [name, server] : cluster_.servers) {
      server->mutate = [this](const pb::MutateRequest& request, auto done) {
        done(Taken(request));
      };
    }
    table_ = std::make_shared<const TableSchema>(cluster_.table);
  }
  ~WriteBufferTest() override { executor_.Clear(); }

  pb::MutateReply Taken(const pb::MutateRequest& request) {
    pb::MutateReply reply;
    for (const pb::RegionMutations& mutations : request.regions()) {
      auto* result = reply.add_regions();
      result->set_region_id(mutations.region_id());
      for (int i = 0; i < mutations.mutations_size(); ++i) result->add_results();
      taken_ += mutations.mutations_size();
    }
    return reply;
  }
  void Add(int64_t id) {
    writes_.Add(cluster_.Key(id), {.row = {Value::Int64(id)}}, {.conflict = "there already"});
  }
  Status Send() { return writes_.Send(&engine_, table_, cancelled_); }

  SimExecutor executor_{1, std::chrono::microseconds(10)};
  ScriptedCluster cluster_;
  Engine engine_{&cluster_, &executor_, {.seed = 1, .polling = false}};
  SchemaPtr table_;
  std::atomic<bool> cancelled_ = false;
  WriteBuffer writes_;
  int taken_ = 0;
};

TEST_F(WriteBufferTest, UnknownOutcomeIsReportedBeforeFailedWrites) {
  cluster_.servers["a"]->mutate = [](const pb::MutateRequest& request, auto done) {
    pb::MutateReply reply;
    for (const pb::RegionMutations& mutations : request.regions()) {
      auto* result = reply.add_regions();
      result->set_region_id(mutations.region_id());
      for (int i = 0; i < mutations.mutations_size(); ++i) {
        result->add_results()->set_code(pb::Error::ALREADY_EXISTS);
      }
    }
    done(std::move(reply));
  };
  cluster_.servers["b"]->mutate = [](const pb::MutateRequest&, auto) {};  // it hangs
  Add(1);
  Add(10'001);
  executor_.PostAfter(milliseconds(100), [this] { cancelled_ = true; });
  const Status status = Send();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
}

TEST_F(WriteBufferTest, UnknownOutcomeIsReportedBeforeWritesNotSent) {
  cluster_.servers["b"]->mutate = [](const pb::MutateRequest&, auto) {};  // it hangs
  for (int64_t id = 9500; id < 12'500; ++id) Add(id);
  executor_.PostAfter(milliseconds(100), [this] { cancelled_ = true; });
  const Time begin = executor_.Now();
  const Status status = Send();
  EXPECT_LT(executor_.Now() - begin, milliseconds(300));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
  EXPECT_NE(status.message().find("may have been carried out"), std::string::npos) << status;
  EXPECT_NE(status.message().find("2500 of 3000 writes failed"), std::string::npos) << status;
  EXPECT_EQ(taken_, 500);
  EXPECT_EQ(writes_.size(), 0u);
}

TEST_F(WriteBufferTest, WriteCancelledBeforehandIsNotSent) {
  for (int64_t id = 0; id < 3000; ++id) Add(id);
  cancelled_ = true;
  EXPECT_EQ(Send().code(), StatusCode::kCancelled);
  EXPECT_EQ(taken_, 0);
}

TEST_F(WriteBufferTest, CancelledBufferSendsNoFurtherBatch) {
  cluster_.servers["a"]->mutate = [&](const pb::MutateRequest& request, auto done) {
    cancelled_ = true;
    done(Taken(request));
  };
  for (int64_t id = 0; id < 3000; ++id) Add(id);
  const Status status = Send();
  EXPECT_EQ(status.code(), StatusCode::kCancelled) << status;
  EXPECT_NE(status.message().find("2000 of 3000 writes failed"), std::string::npos) << status;
  EXPECT_EQ(taken_, 1000);
}

}  // namespace
}  // namespace tamis
