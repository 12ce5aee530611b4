// Rows whose keys are long: a search keeps few bytes of what it reads before it is needed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tamis/base/answers.h"
#include "tamis/base/testing/sim_executor.h"
#include "tamis/query/engine.h"
#include "tamis/query/plan.h"
#include "tamis/rocks/entry_queue.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/table/codec.h"
#include "tests/cluster/branch_search.h"

namespace tamis {
namespace {

using Op = Predicate::Op;

constexpr uint32_t kKey = 0, kA = 1, kB = 2;
constexpr size_t kLongKey = 32'000;
constexpr int kRows = 400;  // their entries are three times what may be kept of them
// The entries that may be kept, and a batch and some more.
constexpr uint64_t kMostEntries = EntryQueue::kMaxBytes / kLongKey + 40;

std::string KeyOf(char first, int i) {
  std::string digits = std::to_string(i);
  std::string key = first + std::string(3 - digits.size(), '0') + digits;
  key.resize(kLongKey, '.');
  return key;
}

Predicate From(uint32_t column) { return Predicate::Compare(column, Op::kGe, Value::Text("v")); }
Predicate Equal(uint32_t column, const std::string& text) {
  return Predicate::Compare(column, Op::kEq, Value::Text(text));
}

class LongKeysTest : public testing::Test {
 protected:
  LongKeysTest()
      : directory_(std::filesystem::path(testing::TempDir()) /
                   ("long_keys_test." + std::to_string(getpid()))) {
    std::filesystem::remove_all(directory_);
    RocksCluster::Options options;
    options.store.directory = directory_;
    options.servers = 1;
    options.session_timeout = std::chrono::hours(1);
    options.server.proof_term = std::chrono::hours(1);
    options.server.split_bytes = 0;
    options.server.build_rows = 1;  // searches come between
    options.server.inline_steps = false;
    options.server.copied_change_bytes = 0;  // an upper daughter has no entries at first
    auto opened = RocksCluster::Open(options, &executor_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    cluster_ = std::move(*opened);
    TableSchema schema;
    schema.name = "t";
    schema.columns = {{.name = "k", .type = Type::kText, .nullable = false},
                      {.name = "a", .type = Type::kText},
                      {.name = "b", .type = Type::kText}};
    schema.key = {kKey};
    schema.indexes = {{.name = "a", .columns = {kA}}, {.name = "b", .columns = {kB}}};
    auto made = AwaitResult<TableSchema>(&executor_, {},
                                         [&](auto done) { cluster_->CreateTable(schema, done); });
    EXPECT_TRUE(made.ok()) << made.status();
    table_ = std::make_shared<const TableSchema>(*made);
  }
  ~LongKeysTest() override {
    executor_.Clear();
    cluster_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Put(const std::string& key, const std::string& a, const std::string& b) {
    const auto text = [](const std::string& s) { return s.empty() ? Value() : Value::Text(s); };
    writes_.push_back({.row = {Value::Text(key), text(a), text(b)}});
  }
  void Write() {
    Engine engine(cluster_.get(), &executor_, {.seed = 1});
    for (const Status& status : engine.Apply(table_, std::move(writes_))) {
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  std::vector<RegionInfo> Regions() {
    return *AwaitResult<std::vector<RegionInfo>>(
        &executor_, {}, [&](auto done) { cluster_->ListRegions("t", {}, done); });
  }

  // By the streams of these indexes alone.
  pb::SearchRequest Request(const Predicate& predicate, std::vector<std::string> indexes) {
    pb::Branch branch = MakePlan(*table_, predicate, {}).branches[0];
    google::protobuf::RepeatedPtrField<pb::IndexStream> streams;
    for (const pb::IndexStream& stream : branch.streams()) {
      for (const std::string& name : indexes) {
        if (stream.index_id() == table_->FindIndex(name)->id) *streams.Add() = stream;
      }
    }
    EXPECT_EQ(streams.size(), static_cast<int>(indexes.size()));
    *branch.mutable_streams() = streams;
    return RequestOf(*table_, Regions().front(), {branch});
  }

  // One page.
  pb::RangeResult Ask(const pb::SearchRequest& request) {
    const auto server = cluster_->Server("rs1");
    auto reply = AwaitResult<pb::SearchReply>(&executor_, {},
                                              [&](auto done) { server->Search(request, done); });
    EXPECT_TRUE(reply.ok()) << reply.status();
    if (!reply.ok()) return {};
    EXPECT_FALSE(reply->results(0).has_error()) << reply->results(0).error().message();
    for (const pb::FoundRow& row : reply->results(0).rows()) {
      found_.push_back(row.key().substr(1, 4));
    }
    return reply->results(0);
  }

  // All pages; the most entries that one of them read of each index.
  std::map<std::string, uint64_t> AskAll(pb::SearchRequest request) {
    std::map<std::string, uint64_t> most;
    for (int page = 0; page == 0 || !request.ranges(0).resume().empty(); ++page) {
      EXPECT_LT(page, 1000);
      if (page == 1000) break;
      const pb::RangeResult result = Ask(request);
      for (const pb::IndexUse& use : result.counters().uses()) {
        uint64_t& read = most[table_->FindIndex(use.index_id())->name];
        read = std::max<uint64_t>(read, use.entries_read());
      }
      request.mutable_ranges(0)->set_resume(result.resume());
    }
    return most;
  }

  const std::filesystem::path directory_;
  SimExecutor executor_{1, std::chrono::milliseconds(0)};
  std::unique_ptr<RocksCluster> cluster_;
  SchemaPtr table_;
  std::vector<tamis::Write> writes_;
  std::vector<std::string> found_;  // the first letters of the keys, after their mark
};

TEST_F(LongKeysTest, StreamsThatAreComparedAreReadAheadAsFarAsTheirBytesAllow) {
  for (int i = 0; i < kRows; ++i) Put(KeyOf('k', i), "va", "vb");
  Write();
  const Predicate ranges = Predicate::And({From(kA), From(kB)});
  const Predicate equalities = Predicate::And({Equal(kA, "va"), Equal(kB, "vb")});
  for (const Predicate& predicate : {ranges, equalities}) {
    SCOPED_TRACE(predicate.ToString(*table_));
    pb::SearchRequest request = Request(predicate, {"a", "b"});
    request.set_limit(100);
    found_.clear();
    const auto read = AskAll(request);
    EXPECT_EQ(found_.size(), static_cast<size_t>(kRows));
    for (const char* index : {"a", "b"}) {
      EXPECT_GT(read.at(index), 100u);
      EXPECT_LT(read.at(index), kMostEntries);
    }
  }
}

TEST_F(LongKeysTest, AStreamWithTooManyBytesOfKeysIsNotJoined) {
  for (int i = 0; i < 100; ++i) Put("k" + std::to_string(100 + i), "x", i == 50 ? "v" : "");
  for (int i = 0; i < 250; ++i) Put(KeyOf('m', i), "", "v");
  Write();
  pb::SearchRequest request = Request(Predicate::And({Equal(kA, "x"), From(kB)}), {"a", "b"});
  request.set_limit(100);
  const auto read = AskAll(request);
  EXPECT_EQ(found_, std::vector<std::string>{"k150"});
  EXPECT_GT(read.at("b"), 0u);
  EXPECT_LT(read.at("b"), kMostEntries);
}

// The region is split between two pages: the upper daughter has no index yet, and its rows are put
// into the order of the index, no more of them than may be kept.
TEST_F(LongKeysTest, RowsAreSortedAsFarAsTheirBytesAllow) {
  for (int i = 0; i < kRows; ++i) {
    Put(KeyOf('k', i), "v" + std::to_string(i), i == 1 ? "v" : "");
  }
  Put("l000", "vz", "v");
  Write();
  pb::SearchRequest request = Request(Predicate::And({From(kA), From(kB)}), {"a"});
  request.set_limit(1);
  const std::string resume = Ask(request).resume();
  ASSERT_FALSE(resume.empty());
  ASSERT_TRUE(AwaitStatus(&executor_, {}, [&](auto done) {
                const Row first = {Value::Text(KeyOf('k', 1)), Value(), Value()};
                cluster_->SplitRegion(Regions().front().id, EncodeKey(*table_, first), done);
              }).ok());
  request = RequestOf(*table_, Regions().back(), {request.branches(0)});
  request.set_limit(1);
  request.mutable_ranges(0)->set_resume(resume);
  const pb::RangeResult sorted = Ask(request);
  EXPECT_EQ(sorted.counters().scanned_regions(), 1u);
  const uint64_t read_to_sort = kRows;
  EXPECT_LT(sorted.counters().rows_read(), read_to_sort + kMostEntries);
  EXPECT_FALSE(sorted.resume().empty());
  request.mutable_ranges(0)->set_resume(sorted.resume());
  AskAll(request);
  EXPECT_EQ(found_, (std::vector<std::string>{"k001", "l000"}));
}

}  // namespace
}  // namespace tamis
