// The writes of a region against a model of its rows: what stands in the store, in the indexes and
// in their filters afterwards, what is answered and when.
#include "tamis/rocks/mutate_operation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tamis/base/random.h"
#include "tamis/rocks/testing/one_region.h"
#include "tamis/table/predicate.h"
#include "tamis/table/schema.h"

namespace tamis {
namespace {

using namespace std::chrono_literals;

using MutateOperationTest = OneRegionTest;

// ---- The model

class ModelOfWrites {
 public:
  explicit ModelOfWrites(const TableSchema& schema) : schema_(schema) {}

  pb::Error::Code Apply(const pb::Mutation& mutation) {
    if (!pb::Mutation::Kind_IsValid(mutation.kind())) return pb::Error::INVALID_ARGUMENT;
    Row row(schema_.columns.size());
    if (!KeyFormat(schema_).Decode(mutation.key(), &row).ok()) return pb::Error::INVALID_ARGUMENT;
    const auto there = rows.find(mutation.key());
    if (!mutation.condition().empty()) {
      const auto condition = ParsePredicate(mutation.condition());
      if (!condition.ok() || !condition->Validate(schema_).ok()) {
        return condition.ok() ? pb::Error::INVALID_ARGUMENT : pb::Error::DATA_LOSS;
      }
      if (there == rows.end() || !condition->Matches(there->second)) {
        return pb::Error::FAILED_PRECONDITION;
      }
    }
    switch (mutation.kind()) {
      case pb::Mutation::DELETE:
        if (there != rows.end()) rows.erase(there);
        return pb::Error::OK;
      case pb::Mutation::INSERT_IF_ABSENT:
        if (there != rows.end()) return pb::Error::ALREADY_EXISTS;
        break;
      case pb::Mutation::UPDATE:
        if (there == rows.end()) return pb::Error::NOT_FOUND;
        break;
      default:
        break;
    }
    if (!DecodeRow(schema_, mutation.row(), &row).ok()) return pb::Error::DATA_LOSS;
    if (mutation.kind() == pb::Mutation::UPDATE) {
      Row merged = there->second;
      for (const uint32_t id : mutation.columns()) {
        for (uint32_t i = 0; i < schema_.columns.size(); ++i) {
          if (schema_.columns[i].id == id && !schema_.IsKey(i)) merged[i] = row[i];
        }
      }
      row = merged;
    }
    if (row[0].is_null()) return pb::Error::INVALID_ARGUMENT;
    rows[mutation.key()] = row;
    return pb::Error::OK;
  }

  std::map<std::string, Row> rows;

 private:
  const TableSchema& schema_;
};

pb::Mutation RandomMutation(Random& random, const TableSchema& schema, uint64_t keys) {
  pb::Mutation mutation;
  const Row row = {
      random.OneIn(12) ? Value() : Value::Int64(static_cast<int64_t>(random.Uniform(4))),
      Value::Text("k" + std::to_string(random.Uniform(keys))),
      random.OneIn(4) ? Value() : Value::Text("v" + std::to_string(random.Uniform(5)))};
  mutation.set_kind(static_cast<pb::Mutation::Kind>(random.Uniform(random.OneIn(20) ? 6 : 4)));
  mutation.set_key(*KeyFormat(schema).Encode(row));
  if (random.OneIn(40)) mutation.mutable_key()->push_back('\x01');
  mutation.set_row(EncodeRow(schema, row));
  if (random.OneIn(40)) mutation.mutable_row()->push_back('\xff');
  for (const uint32_t id : {11, 12, 13, 14}) {
    if (random.OneIn(2)) mutation.add_columns(id);
  }
  if (random.OneIn(4)) {
    const uint32_t column = random.OneIn(10) ? 77 : 0;
    mutation.set_condition(SerializePredicate(Predicate::Compare(
        column, Predicate::Op::kEq, Value::Int64(static_cast<int64_t>(random.Uniform(4))))));
    if (random.OneIn(10)) mutation.set_condition("\xff\xff");
  }
  return mutation;
}

TEST_F(MutateOperationTest, RandomWritesGiveTheRowsEntriesAndCountsOfTheModel) {
  for (uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    Random random(seed);
    ModelOfWrites model(schema_);
    model.rows = Rows();
    for (int step = 0; step < 60 && !HasFailure(); ++step) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " step " + std::to_string(step));
      std::vector<pb::Mutation> mutations;
      for (uint64_t n = 1 + random.Uniform(6); n > 0; --n) {
        mutations.push_back(RandomMutation(random, schema_, 12));
      }
      const uint64_t size = region_->size_bytes, written = written_;
      const pb::RegionMutateResult result = Run(mutations);
      EXPECT_FALSE(result.error().code() != pb::Error::OK) << result.error().message();
      ASSERT_EQ(static_cast<size_t>(result.results_size()), mutations.size());
      std::set<std::string> stored;
      for (size_t i = 0; i < mutations.size(); ++i) {
        const pb::Error::Code code = result.results(static_cast<int>(i)).code();
        EXPECT_EQ(code, model.Apply(mutations[i])) << mutations[i].ShortDebugString();
        const std::string& message = result.results(static_cast<int>(i)).message();
        EXPECT_EQ(message.empty(), code == pb::Error::OK);
        if (code != pb::Error::OK) continue;
        stored.erase(mutations[i].key());
        if (mutations[i].kind() != pb::Mutation::DELETE) stored.insert(mutations[i].key());
      }
      EXPECT_EQ(Rows(), model.rows);
      CheckIndexes(model.rows);
      uint64_t bytes = 0;
      for (const std::string& key : stored) {
        bytes += RowStoreKey(kTable, key).size() + EncodeRow(schema_, model.rows.at(key)).size();
      }
      EXPECT_EQ(region_->size_bytes - size, bytes);
      EXPECT_EQ(written_, written + 1);
    }
  }
}

// The fault has an owner: without the rule the entry keeps the column as it was.
TEST_F(MutateOperationTest, IncludedColumnFollowsTheRow) {
  const auto included = [&] {
    const IndexSpec& index = schema_.indexes[0];
    const auto entries = EntriesAndValues();
    const auto entry = IndexEntry::Of(schema_, index, RowOf("a", 1, "v"));
    Row row(3);
    EXPECT_TRUE(
        DecodeRow(schema_, entries.at(entry->StoreKey(kRegion, index.id, KeyOf("a"))), &row).ok());
    return row[0].int64();
  };
  ASSERT_EQ(CodeOf({Mutation(pb::Mutation::PUT, RowOf("a", 1, "v"))}), pb::Error::OK);
  EXPECT_EQ(included(), 1);
  for (const bool fault : {false, true}) {
    context_->options.faults.included_columns_left = fault;
    ASSERT_EQ(CodeOf({Mutation(pb::Mutation::UPDATE, RowOf("a", fault ? 3 : 2, {}), {12})}),
              pb::Error::OK);
    EXPECT_EQ(included(), 2);
  }
}

// The steps of many writes alternate. Each of them raises a counter if it is what the writer
// thought, which rows that change under a writer's hands would lose.
TEST_F(MutateOperationTest, WritesOfOneRowComeOneAfterTheOther) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    std::vector<pb::Mutation> begin;
    constexpr int kRows = 4;
    for (int row = 0; row < kRows; ++row) {
      begin.push_back(Mutation(pb::Mutation::PUT, RowOf(std::to_string(row), 0, {})));
    }
    ASSERT_EQ(CodeOf(begin), pb::Error::OK);
    std::vector<std::pair<std::vector<int>, std::shared_ptr<Result>>> writes;
    for (int i = 0; i < 60; ++i) {
      std::vector<int> rows;
      std::vector<pb::Mutation> mutations;
      for (int row = 0; row < kRows; ++row) {
        if (!random.OneIn(2)) continue;
        rows.push_back(row);
        const auto n = static_cast<int64_t>(random.Uniform(8));
        pb::Mutation mutation =
            Mutation(pb::Mutation::UPDATE, RowOf(std::to_string(row), n + 1, "v"), {12, 13});
        mutation.set_condition(
            SerializePredicate(Predicate::Compare(0, Predicate::Op::kEq, Value::Int64(n))));
        mutations.push_back(mutation);
      }
      std::shuffle(mutations.begin(), mutations.end(), random);
      if (mutations.empty()) continue;
      rows.clear();
      for (const pb::Mutation& mutation : mutations) {
        Row key(3);
        ASSERT_TRUE(KeyFormat(schema_).Decode(mutation.key(), &key).ok());
        rows.push_back(std::stoi(key[1].str()));
      }
      writes.emplace_back(rows, Start(mutations));
      if (random.OneIn(5)) executor_.RunFor(1ms);
    }
    executor_.RunFor(1s);
    std::map<int, int64_t> raised;
    for (const auto& [rows, result] : writes) {
      ASSERT_TRUE(result->has_value());
      for (size_t i = 0; i < rows.size(); ++i) {
        raised[rows[i]] += (*result)->results(static_cast<int>(i)).code() == pb::Error::OK;
      }
    }
    const auto rows = Rows();
    for (int row = 0; row < kRows; ++row) {
      EXPECT_EQ(rows.at(KeyOf(std::to_string(row)))[0].int64(), raised[row]) << "row " << row;
    }
    CheckIndexes(rows);
    EXPECT_TRUE(region_->IsQuiet());
  }
}

// ---- Indexes whose entries are not all there

TEST_F(MutateOperationTest, EntriesOfAnIncompleteIndexAreWrittenAndCountedOnce) {
  std::map<std::string, Row> rows;
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    const pb::Mutation mutation = RandomMutation(random, schema_, 30);
    (void)Run({mutation});
  }
  // A backfill has written some of the entries, and none is counted for the others.
  const std::set<std::string> all = Entries();
  auto indexes = *region_->indexes();
  rows = Rows();
  for (auto& [id, state] : indexes) {
    state.entries_complete = false;
    state.filter->BeginGeneration(false);
  }
  rocksdb::WriteBatch batch;
  std::set<std::string> standing;
  for (const IndexSpec& spec : schema_.indexes) {
    for (const auto& [key, row] : rows) {
      const auto entry = IndexEntry::Of(schema_, spec, row);
      if (!entry.has_value()) continue;
      const std::string store_key = entry->StoreKey(kRegion, spec.id, key);
      if (random.OneIn(2)) {
        batch.Delete(store_->index(), store_key);
      } else {
        indexes[spec.id].filter->CountExisting(std::span(&entry->filter_key, 1));
      }
    }
    indexes[spec.id].filter->Publish();
  }
  ASSERT_TRUE(store_->Write(&batch).ok());
  ASSERT_LT(Entries().size(), all.size());
  region_->SetSchema(region_->schema(), indexes);
  ModelOfWrites model(schema_);
  model.rows = rows;
  for (int i = 0; i < 200; ++i) {
    const pb::Mutation mutation = RandomMutation(random, schema_, 30);
    const bool done = model.Apply(mutation) == pb::Error::OK;
    const std::set<std::string> before = Entries();
    (void)Run({mutation});
    const std::set<std::string> after = Entries();
    for (const IndexSpec& spec : schema_.indexes) {
      uint64_t count = 0;
      for (const std::string& entry : after)
        count += entry.starts_with(IndexPrefix(kRegion, spec.id));
      ASSERT_EQ(region_->filter(spec.id)->entries(), count);
    }
    if (!done) {
      ASSERT_EQ(after, before);
    }
    const auto row = model.rows.find(mutation.key());
    if (!done || row == model.rows.end()) continue;
    for (const IndexSpec& spec : schema_.indexes) {
      const auto entry = IndexEntry::Of(schema_, spec, row->second);
      if (!entry.has_value()) continue;
      EXPECT_TRUE(after.contains(entry->StoreKey(kRegion, spec.id, mutation.key())));
      EXPECT_TRUE(region_->filter(spec.id)->MayContain(entry->filter_key));
    }
  }
}

// ---- Refusals, after which nothing has changed

class RefusedWriteTest : public MutateOperationTest {
 protected:
  RefusedWriteTest() {
    EXPECT_EQ(CodeOf({Mutation(pb::Mutation::PUT, RowOf("a", 1, "old"))}), pb::Error::OK);
    before_ = Rows();
    written_ = 0;
  }
  void ExpectNothingDone() {
    EXPECT_EQ(Rows(), before_);
    EXPECT_EQ(written_, 0u);
    std::set<std::string> entries;
    for (const IndexSpec& spec : schema_.indexes) {
      for (const auto& [key, row] : before_) {
        entries.insert(IndexEntry::Of(schema_, spec, row)->StoreKey(kRegion, spec.id, key));
      }
    }
    EXPECT_EQ(Entries(), entries);
  }
  const std::vector<pb::Mutation> write_ = {Mutation(pb::Mutation::PUT, RowOf("a", 2, "new")),
                                            Mutation(pb::Mutation::PUT, RowOf("b", 2, "new"))};
  std::map<std::string, Row> before_;
};

TEST_F(RefusedWriteTest, KeyOutsideOfTheRegionRefusesAll) {
  auto write = write_;
  write.push_back(Mutation(pb::Mutation::PUT, RowOf("x", 1, "v")));
  EXPECT_EQ(CodeOf(write), pb::Error::UNAVAILABLE);
  ExpectNothingDone();
  CheckIndexes(before_);
}

TEST_F(RefusedWriteTest, RequestForAnotherSchemaVersionGetsTheRegionsVersion) {
  for (const uint64_t version : {6, 8}) {
    const pb::RegionMutateResult result = Run(write_, version);
    EXPECT_EQ(result.error().code(), pb::Error::UNAVAILABLE);
    EXPECT_EQ(result.error().schema_version(), 7u);
    for (const std::string& part :
         {std::string("schema version 7"), "for version " + std::to_string(version)}) {
      EXPECT_NE(result.error().message().find(part), std::string::npos) << result.error().message();
    }
  }
  ExpectNothingDone();
  CheckIndexes(before_);
  EXPECT_EQ(Run({Mutation(pb::Mutation::PUT, RowOf("x", 1, "v"))}).error().schema_version(), 0u);
}

TEST_F(RefusedWriteTest, EachRefusedMutationHasAReason) {
  std::vector<pb::Mutation> mutations(6, write_[0]);
  mutations[0].mutable_key()->push_back('\x01');
  mutations[1].set_kind(static_cast<pb::Mutation::Kind>(17));
  mutations[2].set_row(EncodeRow(schema_, RowOf("a", {}, "new")));
  mutations[3].set_kind(pb::Mutation::INSERT_IF_ABSENT);
  mutations[4].set_kind(pb::Mutation::UPDATE);
  mutations[4].set_key(KeyOf("b"));
  mutations[5].set_condition(
      SerializePredicate(Predicate::Compare(0, Predicate::Op::kEq, Value::Int64(5))));
  const std::vector<std::string> said[] = {{"table \"t\"", "not of the table's key format"},
                                           {"kind 17"},
                                           {"column \"n\" of table \"t\" cannot be NULL"},
                                           {"a row with this key exists"},
                                           {"no row with this key"},
                                           {"the row is not as the condition says"}};
  const pb::RegionMutateResult result = Run(mutations);
  ASSERT_EQ(static_cast<size_t>(result.results_size()), mutations.size());
  for (int i = 0; i < result.results_size(); ++i) {
    for (const std::string& part : said[i]) {
      EXPECT_NE(result.results(i).message().find(part), std::string::npos)
          << result.results(i).message();
    }
  }
  CheckIndexes(before_);
}

TEST_F(RefusedWriteTest, ComputedColumnIsNotSet) {
  TableSchema with_computed = schema_;
  with_computed.columns.push_back(
      {.id = 14, .name = "w", .expression = Expression{.source = 2}});  // lower(v)
  with_computed.columns.push_back({.id = 15, .name = "later"});
  region_->SetSchema(std::make_shared<const TableSchema>(with_computed), *region_->indexes());
  const Row row = RowOf("a", 2, "new");
  const pb::RegionMutateResult result =
      Run({Mutation(pb::Mutation::UPDATE, row, {13, 14}), Mutation(pb::Mutation::UPDATE, row, {14}),
           Mutation(pb::Mutation::UPDATE, row, {14, 13})});
  ASSERT_EQ(result.results_size(), 3);
  for (const auto& refused : result.results()) {
    EXPECT_EQ(refused.code(), pb::Error::INVALID_ARGUMENT);
    for (const char* part : {"column \"w\" of table \"t\"", "computed", "set that one instead"}) {
      EXPECT_NE(refused.message().find(part), std::string::npos) << refused.message();
    }
  }
  EXPECT_EQ(CodeOf({Mutation(pb::Mutation::UPDATE, row, {12, 13})}), pb::Error::OK);
}

TEST_F(RefusedWriteTest, ClosedRegionRefuses) {
  region_->Close();
  const auto result = Start(write_);
  executor_.RunFor(1s);
  EXPECT_EQ((*result)->error().code(), pb::Error::UNAVAILABLE);
  ExpectNothingDone();
}

TEST_F(RefusedWriteTest, RegionThatHasMovedRefuses) {
  fence_->Advance(kEpoch + 1);
  EXPECT_EQ(CodeOf(write_), pb::Error::UNAVAILABLE);
  ExpectNothingDone();
}

TEST_F(RefusedWriteTest, ServerWhereTooManyWaitIsBusy) {
  Open({.max_waiting = 0});
  EXPECT_EQ(CodeOf(write_), pb::Error::BUSY);
  ExpectNothingDone();
}

TEST_F(RefusedWriteTest, StoreThatIsReadOnlyRefuses) {
  Open({}, /*read_only=*/true);
  EXPECT_EQ(CodeOf(write_), pb::Error::INVALID_ARGUMENT);
  ExpectNothingDone();
}

TEST_F(RefusedWriteTest, RowThatCannotBeReadIsNotOverwritten) {
  rocksdb::WriteBatch batch;
  const std::string damaged(3, '\xff');
  batch.Put(store_->rows(), RowStoreKey(kTable, KeyOf("b")), damaged);
  ASSERT_TRUE(store_->Write(&batch).ok());
  for (const bool both : {true, false}) {
    const pb::RegionMutateResult result = Run(both ? write_ : std::vector<pb::Mutation>{write_[1]});
    EXPECT_EQ(result.error().code(), pb::Error::DATA_LOSS) << result.error().message();
    EXPECT_NE(result.error().message().find("cannot read the old row"), std::string::npos);
  }
  std::string value;
  ASSERT_TRUE(
      store_->db()
          ->Get(rocksdb::ReadOptions(), store_->rows(), RowStoreKey(kTable, KeyOf("b")), &value)
          .ok());
  EXPECT_EQ(value, damaged);
  EXPECT_EQ(written_, 0u);
  EXPECT_TRUE(region_->IsQuiet());
}

TEST_F(RefusedWriteTest, WaitsAtTheGateAndIsDoneAfterwards) {
  ASSERT_EQ(region_->Enter([] {}), Region::Entry::kInside);
  bool alone = false;
  ASSERT_TRUE(region_->Quiesce([&] { alone = true; }));
  const auto result = Start(write_);
  executor_.RunFor(1s);
  EXPECT_FALSE(result->has_value());
  ExpectNothingDone();
  region_->Leave();
  EXPECT_TRUE(alone);
  executor_.RunFor(1s);
  ASSERT_TRUE(result->has_value());
  EXPECT_EQ(Rows().size(), 2u);
}

// ---- Failures whose outcome is unknown

TEST_F(MutateOperationTest, WriteThatTheDiskRefusesIsUnknownAndStaysCounted) {
  ASSERT_EQ(CodeOf({Mutation(pb::Mutation::PUT, RowOf("a", 1, "old"))}), pb::Error::OK);
  env_.set_failing(true);
  const pb::RegionMutateResult result = Run({Mutation(pb::Mutation::PUT, RowOf("a", 2, "new"))});
  EXPECT_EQ(result.error().code(), pb::Error::DEADLINE_EXCEEDED);
  EXPECT_NE(result.error().message().find("may have been carried out"), std::string::npos);
  const auto filter = region_->filter(1);
  for (const char* value : {"old", "new"}) {
    EXPECT_TRUE(filter->MayContain(
        IndexEntry::Of(schema_, schema_.indexes[0], RowOf("a", 1, value))->filter_key));
  }
  env_.set_failing(false);
}

// ---- Acknowledgement

TEST_F(MutateOperationTest, PutWaitsForTheCoordinatorAndADeleteDoesNot) {
  Applied(feed_->Last());
  const auto put = Start({Mutation(pb::Mutation::PUT, RowOf("a", 1, "v"))});
  executor_.RunFor(100ms);
  EXPECT_FALSE(put->has_value());
  EXPECT_EQ(Rows().size(), 1u) << "it is in the store, and its locks are free";
  EXPECT_TRUE(region_->IsQuiet());
  const auto again = Start({Mutation(pb::Mutation::PUT, RowOf("a", 1, "v"))});
  executor_.RunFor(100ms);
  EXPECT_FALSE(again->has_value()) << "it changes nothing, and holds a value that is news";
  const auto erase = Start({Mutation(pb::Mutation::DELETE, RowOf("a", 1, "v"))});
  const auto missing = Start({Mutation(pb::Mutation::UPDATE, RowOf("z", 1, "v"), {13})});
  executor_.RunFor(100ms);
  EXPECT_TRUE(erase->has_value());
  EXPECT_TRUE(missing->has_value());
  EXPECT_FALSE(put->has_value());
  Applied(feed_->Last());
  executor_.RunFor(10ms);
  ASSERT_TRUE(put->has_value() && again->has_value());
  EXPECT_EQ((*put)->error().code(), pb::Error::OK);
}

// ---- The switches of the randomized tests: what would go wrong without the rule

TEST_F(MutateOperationTest, FaultsOfTheWaitAnswerPutsThatMustWait) {
  pb::Event opened;
  opened.set_kind(pb::Event::REGION_OPENED);
  opened.set_region_id(kRegion);
  const auto answered = [&](Faults faults, const char* value) {
    context_->options.faults = faults;
    const auto put = Start({Mutation(pb::Mutation::PUT, RowOf("a", 1, value))});
    executor_.RunFor(20ms);
    return put->has_value();
  };
  Applied(feed_->Last());
  EXPECT_FALSE(answered({}, "1"));
  EXPECT_TRUE(answered({.own_flips_only = true}, "1")) << "the flips are of the put before";
  EXPECT_FALSE(answered({.own_flips_only = true}, "2"));
  EXPECT_TRUE(answered({.ignore_pending_flips = true}, "3"));
  Applied(feed_->Last());
  region_->acknowledge_after = feed_->Append(opened);
  EXPECT_FALSE(answered({}, "3"));
  EXPECT_FALSE(answered({.own_flips_only = true}, "3"));
  EXPECT_FALSE(answered({.ignore_pending_flips = true}, "4"));
  Applied(feed_->Last());
  region_->acknowledge_after = feed_->Append(opened);
  region_->acknowledge_not_before = executor_.Now() + 5s;
  EXPECT_TRUE(answered({.no_open_wait = true}, "4"));
  Applied(feed_->Last());
  EXPECT_FALSE(answered({}, "4")) << "the time is not over";
}

TEST_F(MutateOperationTest, FaultOfCountingLateCountsAfterTheAnswer) {
  context_->options.faults.increment_after_ack = true;
  const auto key = IndexEntry::Of(schema_, schema_.indexes[0], RowOf("a", 1, "v"))->filter_key;
  const auto put = Start({Mutation(pb::Mutation::PUT, RowOf("a", 1, "v"))});
  while (!put->has_value()) {
    EXPECT_FALSE(region_->filter(1)->MayContain(key));
    ASSERT_TRUE(executor_.RunOne());
  }
  executor_.RunFor(10ms);
  EXPECT_TRUE(region_->filter(1)->MayContain(key));
}

TEST_F(MutateOperationTest, PutWithoutAcknowledgementIsUnknownAtItsDeadline) {
  Open({.lease = 60s});
  Applied(feed_->Last());
  const auto put = Start({Mutation(pb::Mutation::PUT, RowOf("a", 1, "v"))});
  executor_.RunFor(9900ms);
  EXPECT_FALSE(put->has_value());
  executor_.RunFor(200ms);
  ASSERT_TRUE(put->has_value());
  EXPECT_EQ((*put)->error().code(), pb::Error::DEADLINE_EXCEEDED);
  EXPECT_EQ(Rows().size(), 1u);
}

TEST_F(MutateOperationTest, PutWaitsForTheOpeningOfItsRegion) {
  ASSERT_EQ(CodeOf({Mutation(pb::Mutation::PUT, RowOf("there", 1, "v"))}), pb::Error::OK);
  Applied(feed_->Last());
  pb::Event opened;
  opened.set_kind(pb::Event::REGION_OPENED);
  opened.set_region_id(kRegion);
  region_->acknowledge_after = feed_->Append(opened);
  region_->acknowledge_not_before = executor_.Now() + 500ms;
  const auto erase = Start({Mutation(pb::Mutation::DELETE, RowOf("a", 1, "v"))});
  const auto refused = Start({Mutation(pb::Mutation::INSERT_IF_ABSENT, RowOf("there", 1, "v"))});
  executor_.RunFor(20ms);
  EXPECT_TRUE(erase->has_value() && refused->has_value()) << "they leave no row that is news";
  schema_.indexes.clear();  // none of its values is news
  region_->SetSchema(region_->schema(), {});
  const auto put = Start({Mutation(pb::Mutation::PUT, RowOf("a", 1, "v"))});
  executor_.RunFor(400ms);
  EXPECT_FALSE(put->has_value());
  Applied(feed_->Last());
  executor_.RunFor(50ms);
  EXPECT_FALSE(put->has_value()) << "the event is applied, the time is not over";
  executor_.RunFor(100ms);
  EXPECT_TRUE(put->has_value());
  region_->acknowledge_after = feed_->Append(opened);
  const auto next = Start({Mutation(pb::Mutation::PUT, RowOf("a", 1, "v"))});
  executor_.RunFor(100ms);
  EXPECT_FALSE(next->has_value()) << "the time is over, the event is not applied";
  Applied(feed_->Last());
  executor_.RunFor(10ms);
  EXPECT_TRUE(next->has_value());
}

}  // namespace
}  // namespace tamis
