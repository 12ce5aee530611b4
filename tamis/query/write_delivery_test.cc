// The outcome of writes for every answer of region servers, and every time of it.
#include "tamis/query/write_delivery.h"

#include <gtest/gtest.h>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/base/trace_context.h"
#include "tamis/query/testing/scripted_cluster.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class WriteDeliveryTest : public testing::Test {
 protected:
  // Four regions of ten ids each, given to the servers a and b in turn. Each server takes what its
  // regions are asked to write, and refuses the rest.
  WriteDeliveryTest() {
    cluster_.Make(4, 10, {"a", "b"});
    cluster_.rows.clear();
    for (const char* name : {"a", "b"}) {
      cluster_.servers[name]->mutate = [this, name](const pb::MutateRequest& request, auto done) {
        done(Take(name, request));
      };
    }
    table_ = std::make_shared<const TableSchema>(cluster_.table);
  }
  ~WriteDeliveryTest() override {
    context_.tables->Stop();
    executor_.Clear();
  }

  pb::MutateReply Take(const std::string& server, const pb::MutateRequest& request) {
    ++requests_;
    pb::MutateReply reply;
    for (const pb::RegionMutations& mutations : request.regions()) {
      auto* result = reply.add_regions();
      result->set_region_id(mutations.region_id());
      const auto region = std::ranges::find_if(cluster_.regions, [&](const RegionInfo& info) {
        return info.id.number() == mutations.region_id() && info.epoch == mutations.epoch() &&
               info.server == server;
      });
      if (region == cluster_.regions.end()) {
        SetError(Unavailable("not here"), result->mutable_error());
        continue;
      }
      for (const pb::Mutation& mutation : mutations.mutations()) {
        EXPECT_TRUE(region->Contains(mutation.key()));
        keys_.push_back(mutation.key());
        result->add_results();
      }
    }
    return reply;
  }
  std::vector<StatusCode> Apply(const std::vector<int64_t>& ids) {
    std::vector<Write> writes;
    for (const int64_t id : ids) writes.push_back({.row = {Value::Int64(id)}});
    statuses_ = ApplyWrites(&context_, table_, writes, &cancelled_);
    std::vector<StatusCode> codes;
    for (const Status& status : statuses_) codes.push_back(status.code());
    return codes;
  }
  // How often the write was taken.
  int64_t Taken(int64_t id) const { return std::ranges::count(keys_, cluster_.Key(id)); }
  // The call is cancelled 100 ms after its begin, and then waits for no answer.
  std::vector<StatusCode> ApplyCancelled(const std::vector<int64_t>& ids) {
    executor_.PostAfter(milliseconds(100), [this] { cancelled_ = true; });
    const Time begin = executor_.Now();
    const std::vector<StatusCode> codes = Apply(ids);
    EXPECT_LT(executor_.Now() - begin, milliseconds(300));
    return codes;
  }
  // The region goes to the other server, which opens it again.
  void Move(size_t region, const std::string& server) {
    cluster_.regions[region].server = server;
    ++cluster_.regions[region].epoch;
  }

  using Codes = std::vector<StatusCode>;
  static constexpr StatusCode kOk = StatusCode::kOk;
  static constexpr StatusCode kUnknown = StatusCode::kDeadlineExceeded;
  static constexpr StatusCode kCancelled = StatusCode::kCancelled;

  SimExecutor executor_{1, std::chrono::microseconds(10)};
  ScriptedCluster cluster_;
  QueryContext context_{&cluster_,
                        &executor_,
                        {.request_timeout = seconds(1), .write_timeout = seconds(10)},
                        std::make_shared<GlobalIndex>(GlobalIndex::Options{})};
  SchemaPtr table_;
  std::atomic<bool> cancelled_ = false;
  std::vector<Status> statuses_;
  int requests_ = 0;
  std::vector<std::string> keys_;  // keys of the writes that were taken, in order
};

TEST_F(WriteDeliveryTest, RequestsHaveTheTraceContextOfTheThread) {
  std::vector<std::string> traces;
  for (const char* name : {"a", "b"}) {
    cluster_.servers[name]->mutate = [&, name](const pb::MutateRequest& request, auto done) {
      traces.push_back(request.trace().parent());
      done(Take(name, request));
    };
  }
  const TraceScope scope({.parent = "parent"});
  Apply({1, 11});
  EXPECT_EQ(traces, (std::vector<std::string>{"parent", "parent"}));
}

TEST_F(WriteDeliveryTest, EachServerIsSentOneRequestWithTheWritesOfItsRegionsInOrder) {
  EXPECT_EQ(Apply({25, 5, 35, 7, 15, 6}), Codes(6, kOk));
  EXPECT_EQ(requests_, 2);
  // The keys of the region of 5, 7 and 6.
  std::erase_if(keys_, [&](const std::string& key) { return key >= cluster_.Key(10); });
  EXPECT_EQ(keys_, std::vector({cluster_.Key(5), cluster_.Key(7), cluster_.Key(6)}));
}

TEST_F(WriteDeliveryTest, OnlyWritesThatARegionRefusesAreSentAgainByAFreshMap) {
  EXPECT_EQ(Apply({5, 15}), Codes(2, kOk));
  Move(1, "a");
  cluster_.listings.clear();
  EXPECT_EQ(Apply({6, 16, 26}), Codes(3, kOk));
  EXPECT_EQ(Taken(6), 1);
  EXPECT_EQ(Taken(16), 1);
  EXPECT_EQ(Taken(26), 1);
  ASSERT_EQ(cluster_.listings.size(), 1u);
  EXPECT_EQ(cluster_.listings[0], std::vector<KeyRange>{cluster_.regions[1].keys()});
}

TEST_F(WriteDeliveryTest, SplitBetweenLookupAndSendIsNoError) {
  EXPECT_EQ(Apply({5}), Codes{kOk});
  RegionInfo upper = cluster_.regions[0];
  cluster_.regions[0].end = upper.start = cluster_.Key(4);
  ++cluster_.regions[0].epoch;
  upper.id = RegionId(9);
  upper.server = "b";
  cluster_.regions.insert(cluster_.regions.begin() + 1, upper);
  EXPECT_EQ(Apply({3, 4, 5}), Codes(3, kOk));
  for (const int64_t id : {3, 4}) EXPECT_EQ(Taken(id), 1);
}

TEST_F(WriteDeliveryTest, AnAnswerThatDoesNotComeIsUnknownAndNothingIsSentAgain) {
  cluster_.servers["b"]->mutate = [&](const pb::MutateRequest& request, auto) {
    Take("b", request);  // done, but the answer is lost
  };
  EXPECT_EQ(Apply({5, 15, 25, 35}), (Codes{kOk, kUnknown, kOk, kUnknown}));
  EXPECT_NE(statuses_[1].message().find("may have been carried out"), std::string::npos)
      << statuses_[1];
  for (const int64_t id : {5, 15, 25, 35}) EXPECT_EQ(Taken(id), 1);
}

TEST_F(WriteDeliveryTest, ErrorWithCodeOkIsNoAcknowledgement) {
  cluster_.servers["b"]->mutate = [&](const pb::MutateRequest& request, auto done) {
    pb::MutateReply reply;
    for (const auto& region : request.regions()) {
      auto* result = reply.add_regions();
      result->set_region_id(region.region_id());
      result->mutable_error();
    }
    done(reply);
  };
  EXPECT_EQ(Apply({5, 15}), (Codes{kOk, kUnknown}));
  EXPECT_NE(statuses_[1].message().find("may have been carried out"), std::string::npos)
      << statuses_[1];
}

// A server that hangs is declared dead some time, and its regions are given to others. Its
// coordinators hear nothing of that from it.
TEST_F(WriteDeliveryTest, WriteAfterASilenceAsksWhereTheRegionIs) {
  EXPECT_EQ(Apply({15}), Codes{kOk});
  cluster_.servers["b"]->mutate = [](const pb::MutateRequest&, auto) {};
  Move(1, "a");
  EXPECT_EQ(Apply({16}), Codes{kUnknown});
  executor_.RunFor(milliseconds(100));
  EXPECT_EQ(Apply({16}), Codes{kOk});
  EXPECT_EQ(Taken(16), 1);
}

TEST_F(WriteDeliveryTest, AServersDeadlineIsUnknownToo) {
  cluster_.servers["a"]->mutate = [&](const pb::MutateRequest& request, auto done) {
    ++requests_;
    pb::MutateReply reply;
    auto* result = reply.add_regions();
    result->set_region_id(request.regions(0).region_id());
    result->add_results();
    SetError(DeadlineExceeded("not acknowledged in time"), result->add_results());
    done(std::move(reply));
  };
  EXPECT_EQ(Apply({5, 6}), (Codes{kOk, kUnknown}));
  EXPECT_EQ(requests_, 1);
}

// HBase refuses single writes of a batch when a store of the region is busy.
TEST_F(WriteDeliveryTest, RefusedWriteIsNotSentAgainAfterALaterWriteOfItsRow) {
  cluster_.servers["a"]->mutate = [&](const pb::MutateRequest& request, auto done) {
    if (requests_ > 0) return done(Take("a", request));
    ++requests_;
    pb::MutateReply reply;
    auto* result = reply.add_regions();
    result->set_region_id(request.regions(0).region_id());
    SetError(Busy("the store is busy"), result->add_results());
    result->add_results();
    SetError(Busy("the store is busy"), result->add_results());
    done(std::move(reply));
  };
  EXPECT_EQ(Apply({5, 5, 6}), (Codes{StatusCode::kBusy, kOk, kOk}));
  EXPECT_EQ(keys_, std::vector{cluster_.Key(6)});
  EXPECT_EQ(statuses_[0].message(),
            "cannot write to table \"t\": the store is busy; not sent again, since a later write "
            "of the row was answered");
}

TEST_F(WriteDeliveryTest, ReasonForAnUnknownOutcomeIsReported) {
  cluster_.servers["a"]->mutate = [](const pb::MutateRequest&, auto done) {
    done(DeadlineExceeded("the connection broke"));
  };
  cluster_.servers["b"]->mutate = [](const pb::MutateRequest&, auto done) {
    done(InvalidArgument("send less at once"));
  };
  EXPECT_EQ(Apply({5, 15}), (Codes{kUnknown, StatusCode::kInvalidArgument}));
  EXPECT_EQ(
      statuses_[0].message(),
      "cannot write to table \"t\": the write may have been carried out: the connection broke");
  EXPECT_EQ(statuses_[1].message(), "cannot write to table \"t\": send less at once");
}

TEST_F(WriteDeliveryTest, WriteThatAnAnswerOmitsIsUnknown) {
  cluster_.servers["a"]->mutate = [&](const pb::MutateRequest& request, auto done) {
    ++requests_;
    pb::MutateReply reply;
    auto* half = reply.add_regions();  // it answers the first of two writes, for the other
                                       // region nothing
    half->set_region_id(request.regions(0).region_id());
    half->add_results();
    auto* foreign = reply.add_regions();
    foreign->set_region_id(77);
    foreign->add_results();
    done(std::move(reply));
  };
  EXPECT_EQ(Apply({5, 6, 25}), (Codes{kOk, kUnknown, kUnknown}));
  EXPECT_EQ(requests_, 1);
}

TEST_F(WriteDeliveryTest, AnAnswerThatComesTwiceIsTakenOnce) {
  Callback<pb::MutateReply> late;
  pb::MutateRequest late_request;
  cluster_.servers["a"]->mutate = [&](const pb::MutateRequest& request, auto done) {
    if (late) late(Take("a", late_request));  // the first one's, again
    late = done;
    late_request = request;
    const pb::MutateReply reply = Take("a", request);
    done(reply);
    done(reply);
  };
  EXPECT_EQ(Apply({5, 15}), Codes(2, kOk));
  EXPECT_EQ(Apply({6}), Codes{kOk});
}

TEST_F(WriteDeliveryTest, ARegionOfAnotherSchemaIsSentTheWritesAgainByTheFreshOne) {
  ++cluster_.table.version;
  std::vector<uint64_t> versions;
  cluster_.servers["a"]->mutate = [&](const pb::MutateRequest& request, auto done) {
    versions.push_back(request.schema_version());
    pb::MutateReply reply = Take("a", request);
    if (request.schema_version() != cluster_.table.version) {
      auto* region = reply.mutable_regions(0);
      region->clear_results();
      SetError(Unavailable("another schema"), region->mutable_error());
      region->mutable_error()->set_schema_version(cluster_.table.version);
      keys_.clear();
    }
    done(std::move(reply));
  };
  EXPECT_EQ(Apply({5}), Codes{kOk});
  EXPECT_EQ(versions, (std::vector<uint64_t>{table_->version, table_->version + 1}));
  EXPECT_EQ(Taken(5), 1);
}

TEST_F(WriteDeliveryTest, WriteToAKeyWithoutAServerWasNotDone) {
  cluster_.regions[1].server.clear();
  EXPECT_EQ(Apply({5, 15}), (Codes{kOk, StatusCode::kUnavailable}));
  EXPECT_EQ(Taken(15), 0);
  EXPECT_EQ(Taken(5), 1);
  // The write is sent as soon as a server serves the key.
  executor_.PostAfter(seconds(3), [this] { cluster_.regions[1].server = "a"; });
  EXPECT_EQ(Apply({15}), Codes{kOk});
}

TEST_F(WriteDeliveryTest, ABusyServerIsAskedAgain) {
  int busy = 3;
  cluster_.servers["a"]->mutate = [&](const pb::MutateRequest& request, auto done) {
    if (busy-- > 0) return done(Busy("too much at once"));
    done(Take("a", request));
  };
  EXPECT_EQ(Apply({5}), Codes{kOk});
  EXPECT_EQ(Taken(5), 1);
}

TEST_F(WriteDeliveryTest, RequestCarriesTheCallersTime) {
  uint64_t left = 0;
  cluster_.servers["a"]->mutate = [&](const pb::MutateRequest& request, auto done) {
    left = request.timeout_ns();
    done(Take("a", request));
  };
  EXPECT_EQ(Apply({5}), Codes{kOk});
  EXPECT_EQ(left, 1'000'000'000u);
}

TEST_F(WriteDeliveryTest, WriteCancelledWhileAServerHasItIsUnknown) {
  cluster_.servers["b"]->mutate = [&](const pb::MutateRequest& request, auto) {
    Take("b", request);  // done, but the answer is lost
  };
  EXPECT_EQ(ApplyCancelled({5, 15}), (Codes{kOk, kUnknown}));
  EXPECT_NE(statuses_[1].message().find("may have been carried out"), std::string::npos)
      << statuses_[1];
  EXPECT_NE(statuses_[1].message().find("cancelled"), std::string::npos) << statuses_[1];
  for (const int64_t id : {5, 15}) EXPECT_EQ(Taken(id), 1);
}

TEST_F(WriteDeliveryTest, WriteCancelledBeforeAServerTakesItWasNotDone) {
  cluster_.regions[1].server.clear();
  EXPECT_EQ(ApplyCancelled({5, 15}), (Codes{kOk, kCancelled}));
  EXPECT_EQ(Taken(15), 0);
}

TEST_F(WriteDeliveryTest, WriteCancelledBeforehandIsNotSent) {
  cancelled_ = true;
  EXPECT_EQ(Apply({5, 15}), (Codes{kCancelled, kCancelled}));
  EXPECT_EQ(requests_, 0);
}

TEST_F(WriteDeliveryTest, CancelledWriteDoesNotWaitForTheRegions) {
  cluster_.list_regions = [](const auto&, auto) {};
  EXPECT_EQ(ApplyCancelled({5}), Codes{kCancelled});
}

TEST_F(WriteDeliveryTest, CancelledWriteDoesNotWaitForTheSchema) {
  cluster_.get_table = [](auto) {};
  cluster_.servers["a"]->mutate = [&](const pb::MutateRequest& request, auto done) {
    pb::MutateReply reply;
    auto* result = reply.add_regions();
    result->set_region_id(request.regions(0).region_id());
    SetError(Unavailable("another schema"), result->mutable_error());
    result->mutable_error()->set_schema_version(table_->version + 1);
    done(std::move(reply));
  };
  EXPECT_EQ(ApplyCancelled({5}), Codes{kCancelled});
}

}  // namespace
}  // namespace tamis
