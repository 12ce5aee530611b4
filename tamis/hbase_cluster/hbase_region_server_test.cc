// The stub of a region server against every kind of answer.
#include "tamis/hbase_cluster/hbase_region_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tamis/base/thread_executor.h"
#include "tamis/hbase/testing/scripted_cluster.h"

namespace tamis {
namespace {

using testing::HasSubstr;

class HBaseRegionServerTest : public testing::Test {
 protected:
  void Open(hbase::ClientOptions options = {}) {
    const hbase::Region region = cluster_.SetRegion("a", "", 1);
    options.addresses = cluster_.server(1).address().ToString();
    client_ = *hbase::Client::Open(std::move(options));
    link_->client = client_.get();
    link_->executor = &executor_;
    link_->on_gone = [](const hbase::RegionPtr&) {};
    link_->regions.Learn("t", {}, {std::make_shared<hbase::Region>(region)});
  }
  ~HBaseRegionServerTest() override {
    client_.reset();
    executor_.Stop();
  }

  Status Mutate(const pb::MutateRequest& request = {}) {
    HBaseRegionServer server(cluster_.server(1).address().ToString(), link_);
    return Await<Result<pb::MutateReply>>(
               &executor_, [&](auto done) { server.Mutate(request, std::move(done)); })
        .status();
  }
  Status MutateThatEndsWith(const std::string& exception, bool do_not_retry) {
    cluster_.server(1).On("ExecService", [=](const auto& request, const auto& peer) {
      peer->Throw(request.call_id, exception, "for this reason", do_not_retry);
    });
    return Mutate();
  }

  hbase::ScriptedCluster cluster_{2};
  ThreadExecutor executor_{1};
  std::shared_ptr<ServerLink> link_ = std::make_shared<ServerLink>();
  std::unique_ptr<hbase::Client> client_;
};

TEST_F(HBaseRegionServerTest, UnknownOutcomeOfAWriteIsReportedWithTheReason) {
  Open();
  for (const char* exception : {"DoNotRetryIOException", "SomethingNew"}) {
    const Status status = MutateThatEndsWith(exception, true);
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(status.message(), HasSubstr("for this reason"));
  }
  cluster_.server(1).On("ExecService", [](const auto& request, const auto& peer) {
    hbase::pb::CoprocessorServiceResponse answer;
    answer.mutable_region()->set_type(hbase::pb::RegionSpecifier::REGION_NAME);
    answer.mutable_region()->set_value("t,a,7.");
    answer.mutable_value()->set_name("");
    answer.mutable_value()->set_value("\xff");
    peer->Answer(request.call_id, answer);
  });
  const Status unread = Mutate();
  EXPECT_EQ(unread.code(), StatusCode::kDeadlineExceeded) << unread;
  EXPECT_THAT(unread.message(), HasSubstr("cannot be read"));
  cluster_.server(1).On("ExecService", [](const auto&, const auto& peer) { peer->Close(); });
  const Status broken = Mutate();
  EXPECT_EQ(broken.code(), StatusCode::kDeadlineExceeded) << broken;
  EXPECT_THAT(broken.message(), HasSubstr("the connection broke"));
}

TEST_F(HBaseRegionServerTest, TraceContextIsInTheHeaderOfSearchesAndWrites) {
  Open();
  std::map<std::string, std::string> headers;
  cluster_.server(1).On("ExecService", [&](const auto& request, const auto& peer) {
    headers = request.trace_headers;
    peer->Throw(request.call_id, "java.lang.IllegalStateException", "no answer is needed");
  });
  HBaseRegionServer server(cluster_.server(1).address().ToString(), link_);
  const auto search = [&](const pb::SearchRequest& request) {
    (void)Await<Result<pb::SearchReply>>(
        &executor_, [&](auto done) { server.Search(request, std::move(done)); });
    return std::exchange(headers, {});
  };
  pb::SearchRequest request;
  EXPECT_THAT(search(request), testing::IsEmpty());
  request.mutable_trace()->set_parent("the parent");
  EXPECT_THAT(search(request), testing::ElementsAre(testing::Pair("traceparent", "the parent")));
  request.mutable_trace()->set_state("a=1");
  const auto both = testing::ElementsAre(testing::Pair("traceparent", "the parent"),
                                         testing::Pair("tracestate", "a=1"));
  EXPECT_THAT(search(request), both);
  pb::MutateRequest write;
  *write.mutable_trace() = request.trace();
  (void)Await<Result<pb::MutateReply>>(&executor_,
                                       [&](auto done) { server.Mutate(write, std::move(done)); });
  EXPECT_THAT(headers, both);
}

TEST_F(HBaseRegionServerTest, InternalServerErrorMakesASearchRetryable) {
  Open();
  cluster_.server(1).On("ExecService", [](const auto& request, const auto& peer) {
    peer->Throw(request.call_id, "java.lang.NullPointerException", "\"this.in\" is null");
  });
  HBaseRegionServer server(cluster_.server(1).address().ToString(), link_);
  const Status search = Await<Result<pb::SearchReply>>(&executor_, [&](auto done) {
                          server.Search({}, std::move(done));
                        }).status();
  EXPECT_EQ(search.code(), StatusCode::kUnavailable) << search;  // a coordinator retries it
  const Status write = Mutate();
  EXPECT_EQ(write.code(), StatusCode::kDeadlineExceeded) << write;
  EXPECT_THAT(write.message(), HasSubstr("this.in"));
}

// Another program has detached the table of the first region; the region itself is still on the
// server.
TEST_F(HBaseRegionServerTest, UsesTheNextRegionIfTheServiceIsMissing) {
  Open();
  const hbase::Region other = cluster_.SetRegion("", "a", 1);
  link_->regions.Learn("u", {}, {std::make_shared<hbase::Region>(other)});
  const std::string address = cluster_.server(1).address().ToString();
  const auto regions = link_->regions.At(address, {}, 8);
  ASSERT_EQ(regions.size(), 2u);
  bool looked = false;
  link_->on_gone = [&](const hbase::RegionPtr&) { looked = true; };
  std::vector<std::string> asked;
  cluster_.server(1).On("ExecService", [&](const auto& request, const auto& peer) {
    const auto call = request.template Parsed<hbase::pb::CoprocessorServiceRequest>();
    asked.push_back(call.region().value());
    if (call.region().value() == regions[0]->name) {
      return peer->Throw(request.call_id, "UnknownProtocolException",
                         "No registered coprocessor service found for tamis.pb.RegionServer", true);
    }
    hbase::pb::CoprocessorServiceResponse answer;
    *answer.mutable_region() = call.region();
    answer.mutable_value()->set_name("");
    answer.mutable_value()->set_value("");
    peer->Answer(request.call_id, answer);
  });
  EXPECT_EQ(Mutate(), Status());
  EXPECT_EQ(Mutate(), Status());
  EXPECT_THAT(asked, testing::ElementsAre(regions[0]->name, regions[1]->name, regions[1]->name));
  EXPECT_FALSE(looked);
}

// The server has an older jar than the program.
TEST_F(HBaseRegionServerTest, MissingMethodIsAnError) {
  Open();
  cluster_.server(1).On("ExecService", [](const auto& request, const auto& peer) {
    peer->Throw(request.call_id, "UnknownProtocolException",
                "Unknown method Mutate called on service tamis.pb.RegionServer", true);
  });
  const Status status = Mutate();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(status.message(), HasSubstr("Unknown method"));
}

TEST_F(HBaseRegionServerTest, WriteThatDidNotRunReportsTheReason) {
  Open({.max_request_bytes = 1000});
  EXPECT_EQ(MutateThatEndsWith("RegionTooBusyException", false).code(), StatusCode::kBusy);
  EXPECT_EQ(MutateThatEndsWith("RequestTooBigException", true).code(),
            StatusCode::kInvalidArgument);
  const int calls = cluster_.server(1).calls("ExecService");
  pb::MutateRequest large;
  large.add_regions()->add_mutations()->set_row(std::string(2000, 'r'));
  const Status unsent = Mutate(large);
  EXPECT_EQ(unsent.code(), StatusCode::kInvalidArgument) << unsent;
  EXPECT_THAT(unsent.message(), HasSubstr("send less at once"));
  EXPECT_EQ(cluster_.server(1).calls("ExecService"), calls);
}

}  // namespace
}  // namespace tamis
