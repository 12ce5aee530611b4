// The replies of region servers, of every kind of cluster, to single messages.
#include "tests/cluster/cluster_suite.h"

#include <set>

#include "tamis/base/random.h"
#include "tamis/cluster/region_server.h"
#include "tamis/query/plan.h"
#include "tamis/rocks/search_position.h"

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

TEST_P(ClusterMessages, ContinuationOfAnotherSearchIsRefused) {
  using Order = SearchPosition::Order;
  const uint32_t section = table_->indexes[0].id;
  const uint32_t size = table_->indexes[1].id;
  const Predicate at_least_20 = Predicate::Compare(kSize, Op::kGe, Value::Int64(20));
  pb::SearchRequest in_order = Request(at_least_20);
  in_order.mutable_order()->set_index_id(size);
  pb::SearchRequest backward = in_order;
  backward.mutable_order()->set_descending(true);
  const struct {
    const char* what;
    pb::SearchRequest request;
    SearchPosition position;
  } cases[] = {
      {"keys backward", Request(at_least_20), {.order = Order::kRowKeyDescending}},
      {"entries backward",
       Request(at_least_20),
       {.order = Order::kEntryDescending, .index_id = size}},
      {"entries backward, not forward",
       in_order,
       {.order = Order::kEntryDescending, .index_id = size}},
      {"keys backward, not entries", backward, {.order = Order::kRowKeyDescending}},
      {"an index without a stream",
       Request(at_least_20),
       {.order = Order::kEntry, .index_id = section}},
      {"no index", Request(at_least_20), {.order = Order::kEntry, .index_id = 0}},
      {"an equality", Request(Section("s0")), {.order = Order::kEntry, .index_id = section}},
  };
  for (const auto& [what, first, position] : cases) {
    pb::SearchRequest request = first;
    *request.add_ranges() = Range();
    request.mutable_ranges(0)->set_resume(position.Serialize());
    const auto reply = Search(request);
    ASSERT_TRUE(reply.ok()) << what << ": " << reply.status();
    ASSERT_EQ(reply->results_size(), 2) << what;
    EXPECT_EQ(reply->results(0).error().code(), pb::Error::INVALID_ARGUMENT) << what;
    EXPECT_EQ(reply->results(0).rows_size(), 0) << what;
    EXPECT_EQ(reply->results(0).region_id(), region_.id.number()) << what;
    EXPECT_FALSE(reply->results(1).has_error())
        << what << ": " << reply->results(1).error().message();
    EXPECT_GE(reply->results(1).rows_size(), 20) << what;
  }
}

// The answer to any bytes is an error, or rows that the search is for, each once.
TEST_P(ClusterMessages, ContinuationOfAnyBytesGivesAnErrorOrMatchingRows) {
  Random random(1);
  int refused = 0, answered = 0;
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE("continuation " + std::to_string(i));
    const bool all = random.OneIn(3);
    const int below = all ? kRows : kRows / 2;
    pb::SearchRequest request =
        Request(all ? Section("s0") : Predicate::Compare(kSize, Op::kLt, Value::Int64(below)));
    if (!all && random.OneIn(2)) {
      request.mutable_order()->set_index_id(table_->indexes[1].id);
      request.mutable_order()->set_descending(random.OneIn(2));
    }
    SearchPosition position;
    position.branch = random.Uniform(3);
    position.order = static_cast<SearchPosition::Order>(random.Uniform(4));
    position.index_id = static_cast<uint32_t>(random.Uniform(4));
    if (!random.OneIn(3)) position.last = KeyOf(static_cast<int>(random.Uniform(kRows)));
    std::string bytes = position.Serialize();
    for (uint64_t spoilt = random.Uniform(4); spoilt > 0; --spoilt) {
      bytes[random.Uniform(bytes.size())] = static_cast<char>(random.Uniform(256));
    }
    request.mutable_ranges(0)->set_resume(bytes);
    const auto reply = Search(request);
    ASSERT_TRUE(reply.ok()) << reply.status();
    ASSERT_EQ(reply->results_size(), 1);
    const pb::RangeResult& result = reply->results(0);
    (result.has_error() ? refused : answered)++;
    EXPECT_TRUE(!result.has_error() || result.rows().empty());
    std::set<std::string> keys;
    for (const pb::FoundRow& row : result.rows()) {
      EXPECT_TRUE(keys.insert(row.key()).second) << "twice";
      EXPECT_LT(row.key(), KeyOf(below));
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(answered, 0);
}

// The row of the first alternative is the last one of a scan, which ends with a full page.
TEST_P(ClusterMessages, FullPageTakesNothingOfTheNextAlternative) {
  for (const bool groups : {false, true}) {
    for (const Op op : {Op::kEq, Op::kLe}) {  // by an equality, and by a range
      const int more = op == Op::kEq ? 1 : 6;
      pb::SearchRequest request = Request(Size(kRows - 1));
      request.mutable_branches(0)->clear_streams();
      *request.add_branches() =
          MakePlan(*table_, Predicate::Compare(kSize, op, Value::Int64(5)), {}).branches[0];
      request.add_columns(table_->columns[kSize].id);
      request.set_groups(groups);
      request.set_limit(1);
      int rows = 0, pages = 0;
      do {
        const auto reply = Search(request);
        ASSERT_TRUE(reply.ok()) << reply.status();
        ASSERT_EQ(reply->results_size(), 1);
        const pb::RangeResult& result = reply->results(0);
        ASSERT_FALSE(result.has_error()) << result.error().message();
        int of_page = 0;
        for (const pb::FoundRow& row : result.rows()) {
          of_page += result.groups() ? static_cast<int>(row.count()) : 1;
        }
        EXPECT_LE(of_page, 1) << "page " << pages << (groups ? " of groups" : "");
        rows += of_page;
        request.mutable_ranges(0)->set_resume(result.resume());
        ASSERT_LT(++pages, 20);
      } while (!request.ranges(0).resume().empty());
      EXPECT_EQ(rows, 1 + more);
    }
  }
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
