#include "tamis/rocks/searcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/cache.h>
#include <rocksdb/table.h>

#include <functional>

#include "tamis/rocks/index_entry.h"
#include "tamis/rocks/testing/one_region.h"

namespace tamis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SearcherTest : public OneRegionTest {
 protected:
  static constexpr uint32_t kByN = 3;

  SearcherTest() {
    context_->is_verified = [] { return true; };
    context_->options.streams_by_cost = false;  // else the few rows are scanned
    request_.set_table_id(kTable);
    request_.set_schema_version(7);
    request_.add_branches()->set_predicate(SerializePredicate(Predicate::True()));
  }

  // The branch reads the entries of this n, and the rows for their v.
  void AddStream(int64_t n) {
    const auto values = [&](int64_t of) {
      return IndexEntry::Of(schema_, *schema_.FindIndex(kByN), RowOf("k", of, "v1"))->values;
    };
    pb::IndexStream* stream = request_.mutable_branches(0)->add_streams();
    stream->set_index_id(kByN);
    stream->add_ranges()->set_low(values(n));
    stream->mutable_ranges(0)->set_high(values(n + 1));
    request_.mutable_branches(0)->set_predicate(
        SerializePredicate(Predicate::Compare(0, Predicate::Op::kEq, Value::Int64(n))));
    request_.add_columns(schema_.columns[2].id);
  }
  void PutStored(const std::string& key, const std::string& bytes) {
    ASSERT_TRUE(store_->db()
                    ->Put(rocksdb::WriteOptions(), store_->rows(), RowStoreKey(kTable, key), bytes)
                    .ok());
  }

  pb::RangeResult Search(const TableSchema& schema) {
    const auto searcher =
        Searcher::Create(*context_, request_, std::make_shared<const TableSchema>(schema));
    EXPECT_TRUE(searcher.ok()) << searcher.status();
    return (*searcher)->Search(*region_, {}, 1000, Time::max());
  }
  static std::vector<std::string> Keys(const pb::RangeResult& result) {
    EXPECT_FALSE(result.has_error()) << result.error().message();
    std::vector<std::string> keys;
    for (const pb::FoundRow& row : result.rows()) keys.push_back(row.key());
    return keys;
  }
  // The request is changed and made a plan.
  Status StatusAfter(const std::function<void(pb::SearchRequest*)>& change,
                     const TableSchema& schema) const {
    pb::SearchRequest changed = request_;
    change(&changed);
    return Searcher::Create(*context_, changed, std::make_shared<const TableSchema>(schema))
        .status();
  }
  StatusCode CodeAfter(const std::function<void(pb::SearchRequest*)>& change) const {
    return StatusAfter(change, schema_).code();
  }

  pb::SearchRequest request_;
};

TEST_F(SearcherTest, EntryWithoutARowIsLeftOut) {
  for (const char* key : {"k1", "k2", "k3"}) {
    Run({Mutation(pb::Mutation::PUT, RowOf(key, 5, "v1"))});
  }
  Run({Mutation(pb::Mutation::PUT, RowOf("k4", 6, "v1"))});
  AddStream(5);
  EXPECT_THAT(Keys(Search(schema_)), ElementsAre(KeyOf("k1"), KeyOf("k2"), KeyOf("k3")));
  ASSERT_TRUE(
      store_->db()
          ->Delete(rocksdb::WriteOptions(), store_->rows(), RowStoreKey(kTable, KeyOf("k2")))
          .ok());
  const pb::RangeResult result = Search(schema_);
  EXPECT_THAT(Keys(result), ElementsAre(KeyOf("k1"), KeyOf("k3")));
  EXPECT_EQ(result.counters().rows_read(), 3u);
}

TEST_F(SearcherTest, DamagedRowFailsTheSearch) {
  Run({Mutation(pb::Mutation::PUT, RowOf("k1", 5, "v1"))});
  PutStored(KeyOf("k1"), "\xff");
  EXPECT_EQ(Search(schema_).error().code(), pb::Error::DATA_LOSS);
  AddStream(5);
  EXPECT_EQ(Search(schema_).error().code(), pb::Error::DATA_LOSS);
}

TEST_F(SearcherTest, ForeignKeysAndFamiliesAreNoRowsAndDamagedCellsAreCounted) {
  TableSchema cells = schema_;
  cells.indexes.clear();
  ASSERT_TRUE(ParseCell("d:n:int", &cells.columns[0]).ok());
  ASSERT_TRUE(ParseCell("d:v", &cells.columns[2]).ok());
  cells.columns[0].nullable = true;
  cells.key_parts = {*ParseKeyPart(Type::kText, "width=2")};
  cells.cells = true;
  ASSERT_TRUE(cells.Validate().ok()) << cells.Validate();
  PutStored("\1a", EncodeCells({{{"d", "n"}, std::string("\0\0\0\7", 4)}}));
  PutStored("\1b", EncodeCells({{{"strange", "n"}, "x"}}));
  PutStored("\1c", EncodeCells({{{"d", "n"}, "bad"}}));
  PutStored("\1zz", EncodeCells({{{"d", "n"}, "bad"}}));  // a key of another format
  const pb::RangeResult result = Search(cells);
  EXPECT_THAT(Keys(result), ElementsAre("\1a", "\1c"));
  EXPECT_EQ(result.counters().rows_read(), 4u);
  EXPECT_EQ(result.counters().rows_unparsed(), 1u);
  EXPECT_EQ(result.counters().cells_undecodable(), 1u);
}

// Eight entries that a join leaves out cost what one row does.
TEST_F(SearcherTest, PageEndsAfterManyEntriesThatAJoinLeavesOut) {
  constexpr uint64_t kPage = 100, kRows = 2000, kSample = 32;
  context_->options.page_candidates = kPage;
  std::vector<pb::Mutation> puts;
  std::vector<std::string> rare;
  for (uint64_t n = 0; n < kRows; ++n) {
    char key[8];
    std::snprintf(key, sizeof key, "k%04d", static_cast<int>(n));
    const bool is_rare = n >= 1000 && n < 1050;
    const Row row = RowOf(key, static_cast<int64_t>(n), is_rare ? "rare" : "v1");
    puts.push_back(Mutation(pb::Mutation::PUT, row));
    if (is_rare) rare.push_back(KeyOf(key));
  }
  Run(puts);
  AddStream(0);
  request_.mutable_branches(0)->mutable_streams(0)->mutable_ranges(0)->clear_high();
  pb::IndexStream* of_rare = request_.mutable_branches(0)->add_streams();
  of_rare->set_index_id(1);
  of_rare->set_equality(true);
  const auto values = [&](const std::string& v) {
    return IndexEntry::Of(schema_, *schema_.FindIndex(1), RowOf("k", 0, v))->values;
  };
  of_rare->add_ranges()->set_low(values("rare"));
  of_rare->mutable_ranges(0)->set_high(values("rarf"));
  request_.mutable_branches(0)->set_predicate(
      SerializePredicate(Predicate::Compare(2, Predicate::Op::kEq, Value::Text("rare"))));
  const auto searcher =
      Searcher::Create(*context_, request_, std::make_shared<const TableSchema>(schema_));
  ASSERT_TRUE(searcher.ok()) << searcher.status();
  std::vector<std::string> found;
  std::vector<uint64_t> entries;
  pb::SearchRange range;
  do {
    const pb::RangeResult page = (*searcher)->Search(*region_, range, 1000, Time::max());
    for (const std::string& key : Keys(page)) found.push_back(key);
    ASSERT_EQ(page.counters().uses_size(), 2) << page.counters().DebugString();
    EXPECT_TRUE(page.counters().uses(1).joined());
    entries.push_back(page.counters().uses(0).entries_read());
    range.set_resume(page.resume());
  } while (!range.resume().empty());
  EXPECT_EQ(found, rare);
  EXPECT_EQ(entries.front(), kSample + 8 * (kPage - kSample));
  EXPECT_EQ(entries.size(), 4u);
}

TEST_F(SearcherTest, EqualityJoinedWithARangeReadsOnlyRowsOfBothAndFindsAllOfThem) {
  constexpr int kRows = 300, kSample = 32;
  std::vector<pb::Mutation> puts;
  std::vector<std::string> rare;
  uint64_t rare_after_sample = 0;
  for (int i = 0; i < kRows; ++i) {
    char key[8];
    std::snprintf(key, sizeof key, "k%03d", i);
    const bool is_rare = i % 10 == 3;
    puts.push_back(Mutation(pb::Mutation::PUT, RowOf(key, 5, is_rare ? "rare" : "v1")));
    if (is_rare) rare.push_back(KeyOf(key));
    if (is_rare && i >= kSample) ++rare_after_sample;
  }
  Run(puts);
  AddStream(5);
  request_.mutable_branches(0)->mutable_streams(0)->set_equality(true);
  pb::IndexStream* of_rare = request_.mutable_branches(0)->add_streams();
  of_rare->set_index_id(1);
  const auto values = [&](const std::string& v) {
    return IndexEntry::Of(schema_, *schema_.FindIndex(1), RowOf("k", 0, v))->values;
  };
  of_rare->add_ranges()->set_low(values("rare"));
  of_rare->mutable_ranges(0)->set_high(values("rarf"));
  request_.mutable_branches(0)->set_predicate(
      SerializePredicate(Predicate::Compare(2, Predicate::Op::kEq, Value::Text("rare"))));
  const pb::RangeResult page = Search(schema_);
  EXPECT_EQ(Keys(page), rare);
  ASSERT_EQ(page.counters().uses_size(), 2) << page.counters().DebugString();
  EXPECT_TRUE(page.counters().uses(0).led());
  EXPECT_TRUE(page.counters().uses(1).joined());
  EXPECT_EQ(page.counters().rows_read(), kSample + rare_after_sample);
}

// Rows are read 32 at a time, after which the walk looks whether that was enough for a page.
TEST_F(SearcherTest, PageOfAnEqualityEndsAfterManyRowsThatDoNotMatch) {
  context_->options.page_candidates = 100;
  constexpr int kRows = 300;
  std::vector<pb::Mutation> puts;
  for (int i = 0; i < kRows; ++i) {
    char key[8];
    std::snprintf(key, sizeof key, "k%03d", i);
    puts.push_back(Mutation(pb::Mutation::PUT, RowOf(key, 5, "v1")));
  }
  Run(puts);
  AddStream(5);
  request_.mutable_branches(0)->mutable_streams(0)->set_equality(true);
  request_.mutable_branches(0)->set_predicate(
      SerializePredicate(Predicate::Compare(2, Predicate::Op::kEq, Value::Text("v2"))));
  const auto searcher =
      Searcher::Create(*context_, request_, std::make_shared<const TableSchema>(schema_));
  ASSERT_TRUE(searcher.ok()) << searcher.status();
  std::vector<uint64_t> rows_read;
  pb::SearchRange range;
  do {
    const pb::RangeResult page = (*searcher)->Search(*region_, range, 1000, Time::max());
    EXPECT_THAT(Keys(page), testing::IsEmpty());
    rows_read.push_back(page.counters().rows_read());
    range.set_resume(page.resume());
  } while (!range.resume().empty());
  EXPECT_THAT(rows_read, ElementsAre(128u, 128u, 44u));
}

// Without a published filter the number of the walked entries is not known, and a sort of few rows
// is not chosen.
TEST_F(SearcherTest, RowsAreSortedOnlyIfTheIndexOfTheOrderHasAPublishedFilter) {
  constexpr uint32_t kByV = 1, kByNv = 2;
  context_->options.streams_by_cost = true;
  std::vector<pb::Mutation> puts;
  std::vector<std::string> rare;
  for (int i = 0; i < 300; ++i) {
    char key[8];
    std::snprintf(key, sizeof key, "k%03d", i);
    const bool is_rare = i % 100 == 50;
    puts.push_back(Mutation(pb::Mutation::PUT, RowOf(key, i, is_rare ? "rare" : "v1")));
    if (is_rare) rare.push_back(KeyOf(key));
  }
  Run(puts);
  pb::Branch* branch = request_.mutable_branches(0);
  branch->set_predicate(
      SerializePredicate(Predicate::Compare(2, Predicate::Op::kEq, Value::Text("rare"))));
  pb::IndexStream* all = branch->add_streams();
  all->set_index_id(kByNv);
  all->add_ranges();
  pb::IndexStream* of_rare = branch->add_streams();
  of_rare->set_index_id(kByV);
  of_rare->set_equality(true);
  of_rare->add_ranges()->set_low(
      IndexEntry::Of(schema_, *schema_.FindIndex(kByV), RowOf("k", 0, "rare"))->values);
  request_.mutable_order()->set_index_id(kByNv);
  const auto searcher =
      Searcher::Create(*context_, request_, std::make_shared<const TableSchema>(schema_));
  ASSERT_TRUE(searcher.ok()) << searcher.status();
  const auto led = [&] {
    const pb::RangeResult page = (*searcher)->Search(*region_, {}, 10, Time::max());
    EXPECT_EQ(Keys(page), rare);
    uint32_t index_id = 0;
    for (const pb::IndexUse& use : page.counters().uses()) {
      if (use.led()) index_id = use.index_id();
    }
    return index_id;
  };
  EXPECT_EQ(led(), kByV);
  Region::Indexes indexes = *region_->indexes();
  indexes[kByNv].filter = std::make_shared<IndexFilter>(feed_.get(), *schema_.FindIndex(kByNv),
                                                        kRegion, kEpoch, Faults{});
  region_->SetSchema(std::make_shared<const TableSchema>(schema_), indexes);
  EXPECT_EQ(led(), kByNv);
  indexes[kByNv].filter = nullptr;
  region_->SetSchema(std::make_shared<const TableSchema>(schema_), indexes);
  EXPECT_EQ(led(), kByNv);
}

TEST_F(SearcherTest, ContinuationOfAnotherOrderIsNotInTheOrderOfTheRequest) {
  for (const char* key : {"k1", "k2", "k3"}) {
    Run({Mutation(pb::Mutation::PUT, RowOf(key, 5, "v1"))});
  }
  AddStream(5);
  const auto page_of = [&](bool descending, const std::string& resume) {
    request_.mutable_order()->set_index_id(kByN);
    request_.mutable_order()->set_descending(descending);
    const auto searcher =
        Searcher::Create(*context_, request_, std::make_shared<const TableSchema>(schema_));
    EXPECT_TRUE(searcher.ok()) << searcher.status();
    pb::SearchRange range;
    range.set_resume(resume);
    return (*searcher)->Search(*region_, range, 1, Time::max());
  };
  const pb::RangeResult up = page_of(/*descending=*/false, "");
  const pb::RangeResult down = page_of(/*descending=*/true, "");
  EXPECT_TRUE(up.in_order());
  EXPECT_TRUE(down.in_order());
  EXPECT_THAT(Keys(up), ElementsAre(KeyOf("k1")));
  EXPECT_THAT(Keys(down), ElementsAre(KeyOf("k3")));
  EXPECT_TRUE(page_of(/*descending=*/false, up.resume()).in_order());
  EXPECT_TRUE(page_of(/*descending=*/true, down.resume()).in_order());
  const pb::RangeResult up_again = page_of(/*descending=*/true, up.resume());
  EXPECT_THAT(Keys(up_again), ElementsAre(KeyOf("k2")));
  EXPECT_FALSE(up_again.in_order());
  EXPECT_EQ(page_of(/*descending=*/false, down.resume()).error().code(),
            pb::Error::INVALID_ARGUMENT);
}

// ---- Requests

TEST_F(SearcherTest, RequestHasOneToSoManyBranches) {
  const auto with_branches = [&](int count) {
    const auto change = [&](pb::SearchRequest* request) {
      const pb::Branch branch = request->branches(0);
      request->clear_branches();
      for (int i = 0; i < count; ++i) *request->add_branches() = branch;
    };
    return StatusAfter(change, schema_);
  };
  EXPECT_EQ(with_branches(1024), Status::Ok());
  for (const int count : {0, 1025}) {
    const Status refusal = with_branches(count);
    EXPECT_EQ(refusal.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(refusal.message(), "a search has 1 to 1024 branches, not " + std::to_string(count));
  }
}

TEST_F(SearcherTest, BranchHasOneStreamOfAnIndex) {
  AddStream(5);
  EXPECT_EQ(CodeAfter([](pb::SearchRequest*) {}), StatusCode::kOk);
  EXPECT_EQ(CodeAfter([](pb::SearchRequest* request) {
              pb::Branch* branch = request->mutable_branches(0);
              *branch->add_streams() = pb::IndexStream(branch->streams(0));
            }),
            StatusCode::kInvalidArgument);
}

TEST_F(SearcherTest, OrderOfTheKeyIsDescendingAndHasNoStream) {
  request_.mutable_order()->set_descending(true);
  const auto nothing = [](pb::SearchRequest*) {};
  EXPECT_EQ(CodeAfter(nothing), StatusCode::kOk);
  const std::function<void(pb::SearchRequest*)> faults[] = {
      [](pb::SearchRequest* request) { request->mutable_order()->set_descending(false); },
      [](pb::SearchRequest* request) { request->set_groups(true); },
      [](pb::SearchRequest* request) {
        *request->add_branches() = pb::Branch(request->branches(0));
      },
  };
  for (const auto& fault : faults) EXPECT_EQ(CodeAfter(fault), StatusCode::kInvalidArgument);
  AddStream(5);
  EXPECT_EQ(CodeAfter(nothing), StatusCode::kInvalidArgument);
}

TEST_F(SearcherTest, OrderOfAnIndexHasAStreamOfItThatIsNoEquality) {
  AddStream(5);
  request_.mutable_order()->set_index_id(kByN);
  EXPECT_EQ(CodeAfter([](pb::SearchRequest*) {}), StatusCode::kOk);
  const std::function<void(pb::SearchRequest*)> faults[] = {
      [](pb::SearchRequest* request) { request->mutable_order()->set_index_id(kByN - 1); },
      [](pb::SearchRequest* request) {
        request->mutable_branches(0)->mutable_streams(0)->set_equality(true);
      },
      [](pb::SearchRequest* request) { request->mutable_branches(0)->clear_streams(); },
      [](pb::SearchRequest* request) {
        *request->add_branches() = pb::Branch(request->branches(0));
      },
  };
  for (const auto& fault : faults) {
    const Status refusal = StatusAfter(fault, schema_);
    EXPECT_EQ(refusal.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(refusal.message(), HasSubstr("a stream of that index that is no equality"));
  }
}

TEST_F(SearcherTest, GroupsHaveNoColumnOfTheKeyAndTotalsAreOfWantedColumns) {
  const uint32_t n = schema_.columns[0].id, key = schema_.columns[1].id, v = schema_.columns[2].id;
  request_.set_groups(true);
  request_.add_columns(n);
  request_.add_totals(n);
  EXPECT_EQ(CodeAfter([](pb::SearchRequest*) {}), StatusCode::kOk);
  for (const uint32_t column : {v, 99u}) {
    EXPECT_EQ(CodeAfter([&](pb::SearchRequest* request) { request->add_totals(column); }),
              StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(CodeAfter([&](pb::SearchRequest* request) { request->add_columns(key); }),
            StatusCode::kInvalidArgument);
  TableSchema other = schema_;  // the first column is its key
  other.key = {0};
  EXPECT_EQ(StatusAfter([](pb::SearchRequest*) {}, other).code(), StatusCode::kInvalidArgument);
}

TEST_F(SearcherTest, NewerRequestIsRefusedIfItNamesAnUnknownColumn) {
  for (const Column& column : schema_.columns) request_.add_columns(column.id);
  request_.set_schema_version(8);
  EXPECT_EQ(CodeAfter([](pb::SearchRequest*) {}), StatusCode::kOk);
  EXPECT_EQ(CodeAfter([](pb::SearchRequest* request) { request->add_columns(99); }),
            StatusCode::kUnavailable);
  const std::string predicate = SerializePredicate(Predicate::IsNull(5));
  const auto by_unknown = [&](pb::SearchRequest* request) {
    request->mutable_branches(0)->set_predicate(predicate);
  };
  EXPECT_EQ(CodeAfter(by_unknown), StatusCode::kUnavailable);
  request_.set_schema_version(7);
  EXPECT_EQ(CodeAfter(by_unknown), StatusCode::kInvalidArgument);
}

// ---- Reads that fail

// Rows k0000, k0001, ... in files: n counts from 0 to 49 again and again, v from v0 to v2.
class FailingReadsTest : public SearcherTest {
 protected:
  static constexpr int kRows = 3000;
  static constexpr uint32_t kByV = 1, kByNv = 2;

  FailingReadsTest() {
    std::vector<pb::Mutation> puts;
    for (int i = 0; i < kRows; ++i) {
      char key[8];
      std::snprintf(key, sizeof key, "k%04d", i);
      const Row row = RowOf(key, i % 50, "v" + std::to_string(i % 3));
      rows_[KeyOf(key)] = row;
      puts.push_back(Mutation(pb::Mutation::PUT, row));
    }
    Run(puts);
    for (rocksdb::ColumnFamilyHandle* family : {store_->rows(), store_->index()}) {
      EXPECT_TRUE(store_->db()->Flush(rocksdb::FlushOptions(), family).ok());
    }
    const auto options = store_->db()->GetOptions(store_->rows());
    cache_ = options.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>()->block_cache;
  }

  void Ask(const Predicate& predicate) {
    predicate_ = predicate;
    request_.Clear();
    request_.set_schema_version(7);
    request_.add_branches()->set_predicate(SerializePredicate(predicate));
    for (const Column& column : schema_.columns) {
      if (column.name != "k") request_.add_columns(column.id);
    }
  }
  std::string Values(uint32_t index_id, int64_t n, const std::string& v) const {
    return IndexEntry::Of(schema_, *schema_.FindIndex(index_id), RowOf("k", n, v))->values;
  }
  void AddRange(uint32_t index_id, const std::string& low, const std::string& high) {
    pb::IndexStream* stream = request_.mutable_branches(0)->add_streams();
    stream->set_index_id(index_id);
    stream->add_ranges()->set_low(low);
    stream->mutable_ranges(0)->set_high(high);
  }
  void AddEquality(uint32_t index_id, const std::string& value) {
    AddRange(index_id, value, "");
    request_.mutable_branches(0)->mutable_streams()->rbegin()->set_equality(true);
  }

  // All pages; nullopt: one of them is an error.
  std::optional<std::multiset<std::string>> AllKeys(const Searcher& searcher) {
    std::multiset<std::string> keys;
    pb::SearchRange range;
    do {
      const pb::RangeResult page = searcher.Search(*region_, range, 400, Time::max());
      if (page.has_error()) return std::nullopt;
      for (const pb::FoundRow& row : page.rows()) keys.insert(row.key());
      range.set_resume(page.resume());
    } while (!range.resume().empty());
    return keys;
  }

  // The search is done with a first read that fails, with a second one, and so on.
  void ExpectAllRowsOrAnError() {
    std::multiset<std::string> wanted;
    for (const auto& [key, row] : rows_) {
      if (predicate_.Matches(row)) wanted.insert(key);
    }
    const auto searcher =
        Searcher::Create(*context_, request_, std::make_shared<const TableSchema>(schema_));
    ASSERT_TRUE(searcher.ok()) << searcher.status();
    int failed = 0;
    for (int64_t reads = 0;; ++reads) {
      cache_->EraseUnRefEntries();
      env_.FailReadAfter(reads);
      const auto keys = AllKeys(**searcher);
      EXPECT_EQ(keys.value_or(wanted), wanted);
      if (!keys.has_value()) ++failed;
      if (!env_.has_failed_read()) break;
    }
    env_.FailReadAfter(-1);
    EXPECT_GT(failed, 2);
  }

  static Predicate N(Predicate::Op op, int64_t n) {
    return Predicate::Compare(0, op, Value::Int64(n));
  }
  static Predicate V(const std::string& v) {
    return Predicate::Compare(2, Predicate::Op::kEq, Value::Text(v));
  }

  std::map<std::string, Row> rows_;
  std::shared_ptr<rocksdb::Cache> cache_;
  Predicate predicate_;
};

TEST_F(FailingReadsTest, ScanFindsAllRowsOrFails) {
  Ask(N(Predicate::Op::kLt, 40));
  ExpectAllRowsOrAnError();
  request_.mutable_order()->set_descending(true);
  ExpectAllRowsOrAnError();
}

TEST_F(FailingReadsTest, WalkOfEntriesFindsAllRowsOrFails) {
  Ask(N(Predicate::Op::kLt, 40));
  AddRange(kByN, "", Values(kByN, 40, "v1"));
  ExpectAllRowsOrAnError();
  request_.mutable_order()->set_index_id(kByN);
  ExpectAllRowsOrAnError();
  request_.mutable_order()->set_descending(true);
  ExpectAllRowsOrAnError();
}

TEST_F(FailingReadsTest, WalkOfKeysFindsAllRowsOrFails) {
  Ask(V("v1"));
  AddEquality(kByV, Values(kByV, 0, "v1"));
  ExpectAllRowsOrAnError();
}

TEST_F(FailingReadsTest, JoinsFindAllRowsOrFail) {
  Ask(Predicate::And({N(Predicate::Op::kEq, 10), V("v1")}));
  AddEquality(kByN, Values(kByN, 10, "v1"));
  AddEquality(kByV, Values(kByV, 0, "v1"));
  ExpectAllRowsOrAnError();
  Ask(Predicate::And({N(Predicate::Op::kLt, 40), V("v1")}));
  AddRange(kByN, "", Values(kByN, 40, "v1"));
  AddEquality(kByV, Values(kByV, 0, "v1"));
  ExpectAllRowsOrAnError();
  Ask(Predicate::And({V("v1"), N(Predicate::Op::kGe, 20), N(Predicate::Op::kLt, 25)}));
  AddEquality(kByV, Values(kByV, 0, "v1"));
  AddRange(kByN, Values(kByN, 20, "v1"), Values(kByN, 25, "v1"));
  ExpectAllRowsOrAnError();
}

TEST_F(FailingReadsTest, ChoicesByCostFindAllRowsOrFail) {
  context_->options.streams_by_cost = true;
  Ask(Predicate::And({V("v1"), N(Predicate::Op::kGe, 20), N(Predicate::Op::kLt, 25)}));
  AddEquality(kByV, Values(kByV, 0, "v1"));
  AddRange(kByN, Values(kByN, 20, "v1"), Values(kByN, 25, "v1"));
  ExpectAllRowsOrAnError();
  request_.mutable_order()->set_index_id(kByN);
  ExpectAllRowsOrAnError();
}

}  // namespace
}  // namespace tamis
