// The replies of region servers, of every kind of cluster, to single messages.
#include "tests/cluster/cluster_suite.h"

#include <set>

#include "tamis/cluster/region_server.h"
#include "tamis/query/plan.h"

namespace tamis {
namespace {

using Op = Predicate::Op;

class ClusterMessages : public ClusterSuite {
 protected:
  static constexpr int kRows = 40;
  // So far that it is none which counts up from a small number.
  static constexpr uint64_t kOtherEpoch = 1'000'000'007;

  void SetUp() override {
    ClusterSuite::SetUp();
    Fill(kRows);
    region_ = Regions()[0];
    server_ = kind_->cluster().Server(region_.server);
  }
  pb::SearchRange Range() const {
    pb::SearchRange range;
    range.set_region_id(region_.id.number());
    range.set_epoch(region_.epoch);
    range.set_start(region_.start);
    range.set_end(region_.end);
    return range;
  }
  pb::SearchRequest Request(const Predicate& predicate) const {
    pb::SearchRequest request;
    request.set_table_id(table_->id);
    request.set_schema_version(table_->version);
    *request.add_branches() = MakePlan(*table_, predicate, {}).branches[0];
    *request.add_ranges() = Range();
    return request;
  }
  Result<pb::SearchReply> Search(const pb::SearchRequest& request) {
    return kind_->Ask<pb::SearchReply>([&](auto done) { server_->Search(request, done); });
  }
  // Deletes row 3.
  void AddDelete(uint64_t region_id, uint64_t epoch, pb::MutateRequest* request) const {
    auto* region = request->add_regions();
    region->set_region_id(region_id);
    region->set_epoch(epoch);
    auto* mutation = region->add_mutations();
    mutation->set_kind(pb::Mutation::DELETE);
    mutation->set_key(KeyOf(3));
  }
  Result<pb::MutateReply> Mutate(const pb::MutateRequest& request) {
    return kind_->Ask<pb::MutateReply>([&](auto done) { server_->Mutate(request, done); });
  }
  Result<pb::PollReply> Poll(const pb::PollRequest& request) {
    return kind_->Ask<pb::PollReply>([&](auto done) { server_->Poll(request, done); });
  }

  RegionInfo region_;
  std::shared_ptr<RegionServer> server_;
};

TEST_P(ClusterMessages, SearchWithLittleTimeMakesProgress) {
  pb::SearchRequest request = Request(Predicate::Compare(kSize, Op::kGe, Value::Int64(0)));
  request.set_timeout_ns(1);
  std::set<std::string> keys;
  for (int i = 0; i <= kRows; ++i) {
    const auto reply = Search(request);
    ASSERT_TRUE(reply.ok()) << reply.status();
    ASSERT_EQ(reply->results_size(), 1);
    const pb::RangeResult& result = reply->results(0);
    ASSERT_FALSE(result.has_error()) << result.error().message();
    for (const pb::FoundRow& row : result.rows()) {
      EXPECT_TRUE(keys.insert(row.key()).second) << "twice";
    }
    if (result.resume().empty()) break;
    EXPECT_NE(result.resume(), request.ranges(0).resume()) << "no progress";
    request.mutable_ranges(0)->set_resume(result.resume());
  }
  EXPECT_EQ(keys.size(), static_cast<size_t>(kRows));
}

TEST_P(ClusterMessages, WrongNumberInARequestFailsItsRangeOnly) {
  pb::SearchRequest request = Request(Section("s0"));
  for (const uint64_t id : {uint64_t{1} << 63, uint64_t{0}, uint64_t{987'654}}) {
    *request.add_ranges() = Range();
    request.mutable_ranges(request.ranges_size() - 1)->set_region_id(id);
  }
  *request.add_ranges() = Range();
  request.mutable_ranges(4)->set_epoch(region_.epoch + kOtherEpoch);
  const auto reply = Search(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->results_size(), 5);
  EXPECT_FALSE(reply->results(0).has_error()) << reply->results(0).error().message();
  EXPECT_EQ(reply->results(0).rows_size(), kRows);
  EXPECT_EQ(reply->results(1).error().code(), pb::Error::INVALID_ARGUMENT);
  EXPECT_EQ(reply->results(2).error().code(), pb::Error::INVALID_ARGUMENT);
  EXPECT_EQ(reply->results(3).error().code(), pb::Error::UNAVAILABLE);
  EXPECT_EQ(reply->results(4).error().code(), pb::Error::UNAVAILABLE);
}

TEST_P(ClusterMessages, AnIndexThatARegionDoesNotKnowIsAScanAColumnIsNoAnswer) {
  pb::SearchRequest request = Request(Section("s0"));
  request.set_schema_version(table_->version + 1);  // which no region follows yet
  request.mutable_branches(0)->mutable_streams(0)->set_index_id(99);
  auto reply = Search(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->results_size(), 1);
  EXPECT_FALSE(reply->results(0).has_error()) << reply->results(0).error().message();
  EXPECT_EQ(reply->results(0).rows_size(), kRows);
  EXPECT_EQ(reply->results(0).counters().scanned_regions(), 1u);
  request.add_columns(99);
  reply = Search(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->results(0).error().code(), pb::Error::UNAVAILABLE);
  EXPECT_EQ(reply->results(0).error().schema_version(), table_->version);
}

TEST_P(ClusterMessages, WritesToAWrongRegionAreRefusedAndNotDone) {
  pb::MutateRequest request;
  request.set_table_id(table_->id);
  request.set_schema_version(table_->version);
  for (const auto& [id, epoch] : {std::pair(region_.id.number(), region_.epoch + kOtherEpoch),
                                  {uint64_t{987'654}, region_.epoch}}) {
    AddDelete(id, epoch, &request);
  }
  const auto reply = Mutate(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->regions_size(), 2);
  for (const auto& region : reply->regions()) {
    EXPECT_EQ(region.error().code(), pb::Error::UNAVAILABLE) << region.error().message();
  }
  EXPECT_EQ(Find(Size(3)).size(), 1u);
}

TEST_P(ClusterMessages, AWriteByASchemaThatTheRegionDoesNotKnowYetIsRefusedAndNotDone) {
  pb::MutateRequest request;
  request.set_table_id(table_->id);
  request.set_schema_version(table_->version + 1);
  AddDelete(region_.id.number(), region_.epoch, &request);
  const auto reply = Mutate(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->regions_size(), 1);
  const pb::Error& error = reply->regions(0).error();
  EXPECT_EQ(error.code(), pb::Error::UNAVAILABLE) << error.message();
  EXPECT_EQ(error.schema_version(), table_->version);
  EXPECT_EQ(Find(Size(3)).size(), 1u);
}

TEST_P(ClusterMessages, APollOfANewcomerOrOfAnotherLifeBringsTheWholeState) {
  pb::PollRequest request;
  request.set_coordinator(12345);
  const auto first = Poll(request);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->full());
  EXPECT_NE(first->start_code(), 0u);
  request.set_start_code(first->start_code() + 1);
  request.set_applied(first->to());
  const auto other = Poll(request);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(other->full());
  EXPECT_EQ(other->start_code(), first->start_code());
  request.set_start_code(first->start_code());
  const auto next = Poll(request);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_FALSE(next->full());
  EXPECT_EQ(next->from(), first->to());
}

INSTANTIATE_TEST_SUITE_P(Every, ClusterMessages, ::testing::ValuesIn(ClusterKinds()), NameOfKind);

}  // namespace
}  // namespace tamis
