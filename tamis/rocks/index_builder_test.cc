// The background jobs that make an index complete, on one region, beside writes and after damages.
#include "tamis/rocks/index_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>

#include "tamis/base/exception_status.h"
#include "tamis/base/random.h"
#include "tamis/rocks/testing/one_region.h"

namespace tamis {
namespace {

using namespace std::chrono_literals;

class IndexBuilderTest : public OneRegionTest {
 protected:
  IndexBuilderTest() { MakeBuilder(3); }

  void MakeBuilder(uint64_t build_rows) {
    context_->options.build_rows = build_rows;
    builder_ = std::make_shared<IndexBuilder>(context_);
  }

  static Row AnyRow(Random& random) {
    return RowOf(
        "k" + std::to_string(random.Uniform(60)), static_cast<int64_t>(random.Uniform(4)),
        random.OneIn(4) ? std::nullopt : std::optional("v" + std::to_string(random.Uniform(9))));
  }
  void PutRows(Random& random, uint64_t count) {
    std::vector<pb::Mutation> mutations;
    for (uint64_t i = 0; i < count; ++i) {
      mutations.push_back(Mutation(pb::Mutation::PUT, AnyRow(random)));
    }
    ASSERT_EQ(CodeOf(mutations), pb::Error::OK);
  }
  void WriteSomething(Random& random) {
    const auto kind = random.OneIn(3) ? pb::Mutation::DELETE : pb::Mutation::PUT;
    writes_.push_back(Start({Mutation(kind, AnyRow(random))}));
  }

  std::string EntryOf(const IndexSpec& spec, const Row& row) const {
    return IndexEntry::Of(schema_, spec, row)
        ->StoreKey(kRegion, spec.id, *KeyFormat(schema_).Encode(row));
  }
  void Write(const std::function<void(rocksdb::WriteBatch*)>& fill) {
    rocksdb::WriteBatch batch;
    fill(&batch);
    ASSERT_TRUE(store_->Write(&batch).ok());
  }
  void PutEntry(const std::string& entry) {
    Write([&](auto* batch) { batch->Put(store_->index(), entry, ""); });
  }
  // The state after a split in the upper daughter: no entry is there, and a generation counts those
  // that come.
  void Empty(const IndexSpec& spec) {
    Write([&](auto* batch) {
      batch->DeleteRange(store_->index(), IndexPrefix(kRegion, spec.id),
                         IndexPrefix(kRegion, spec.id + 1));
    });
    SetState(spec, /*entries_complete=*/false, /*begun=*/true);
  }
  // A filter that knows nothing, as when the region opens.
  void SetState(const IndexSpec& spec, bool entries_complete, bool begun) {
    Region::Indexes indexes = *region_->indexes();
    auto filter = std::make_shared<IndexFilter>(feed_.get(), spec, kRegion, kEpoch, Faults{});
    if (begun) filter->BeginGeneration(false);
    indexes[spec.id] = {.filter = filter, .entries_complete = entries_complete};
    region_->SetSchema(region_->schema(), std::move(indexes));
  }

  const IndexSpec& Sparse() const { return schema_.indexes[0]; }
  const IndexSpec& Other() const { return schema_.indexes[1]; }

  std::shared_ptr<std::optional<Status>> Rebuild(const IndexSpec& spec) {
    auto done = std::make_shared<std::optional<Status>>();
    builder_->Rebuild(region_, spec.id, [done](Status status) {
      ASSERT_FALSE(done->has_value()) << "called twice";
      done->emplace(std::move(status));
    });
    return done;
  }
  static constexpr int kMostSteps = 3000;
  void RunBesideWrites(Random& random) {
    for (int i = 0; i < kMostSteps && builder_->pending() > 0; ++i) {
      if (random.OneIn(3)) WriteSomething(random);
      executor_.RunFor(1ms);
    }
    RunToTheEnd();
  }
  void RunToTheEnd() {
    for (int i = 0; i < kMostSteps && builder_->pending() > 0; ++i) executor_.RunFor(1ms);
    executor_.RunFor(100ms);
    EXPECT_EQ(builder_->pending(), 0u);
    for (const auto& write : writes_) EXPECT_TRUE(write->has_value());
    EXPECT_TRUE(region_->IsQuiet());
  }
  // The index finds exactly the rows that there are.
  void CheckComplete(const IndexSpec& spec) {
    SCOPED_TRACE("index " + spec.name);
    EXPECT_TRUE(region_->IsEntriesComplete(spec.id));
    const auto filter = region_->filter(spec.id);
    EXPECT_TRUE(filter->published());
    EXPECT_FALSE(filter->building());
    std::map<std::string, std::string> wanted, there;  // with their included columns
    for (const auto& [key, row] : Rows()) {
      const auto entry = IndexEntry::Of(schema_, spec, row);
      if (!entry.has_value() || !region_->info().Contains(key)) continue;
      wanted[entry->StoreKey(kRegion, spec.id, key)] = entry->included;
      EXPECT_TRUE(filter->MayContain(entry->filter_key));
    }
    for (const auto& [entry, included] : EntriesAndValues()) {
      if (entry.starts_with(IndexPrefix(kRegion, spec.id)) && !garbage_.contains(entry)) {
        there[entry] = included;
      }
    }
    EXPECT_EQ(there, wanted);
    EXPECT_EQ(filter->entries(), wanted.size());
  }
  bool IsMarkedComplete(const IndexSpec& spec) const {
    const auto region = catalog_->Region(kRegion);
    return std::ranges::count(region->complete_indexes(), spec.id) == 1;
  }

  std::shared_ptr<IndexBuilder> builder_;
  std::vector<std::shared_ptr<Result>> writes_;
  std::set<std::string> garbage_;  // entries that are compactions' matter
};

TEST_F(IndexBuilderTest, BackfillBesideWritesFindsExactlyTheRowsThatThereAre) {
  for (uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    MakeBuilder(1 + random.Uniform(8));
    PutRows(random, random.Uniform(60));
    const bool both = random.OneIn(2);
    Empty(Sparse());
    if (both) Empty(Other());
    builder_->Enqueue(region_, Sparse().id);
    if (both) builder_->Enqueue(region_, Other().id);
    builder_->Enqueue(region_, Sparse().id);
    RunBesideWrites(random);
    CheckComplete(Sparse());
    CheckComplete(Other());
    EXPECT_TRUE(IsMarkedComplete(Sparse()));
    EXPECT_TRUE(IsMarkedComplete(Other()) || !both);
  }
}

TEST_F(IndexBuilderTest, OnePassOverTheRowsCompletesAllIndexesThatWait) {
  Random random(1);
  PutRows(random, 40);
  Empty(Sparse());
  Empty(Other());
  builder_->Enqueue(region_, Sparse().id);
  builder_->Enqueue(region_, Other().id);
  EXPECT_EQ(builder_->pending(), 2u);
  executor_.RunFor(2ms);
  EXPECT_EQ(builder_->pending(), 1u) << "the second one is part of the first one's pass";
  RunToTheEnd();
  CheckComplete(Sparse());
  CheckComplete(Other());
  EXPECT_TRUE(IsMarkedComplete(Sparse()) && IsMarkedComplete(Other()));
}

TEST_F(IndexBuilderTest, IndexThatIsDroppedWhileItWaitsIsLeftOut) {
  Random random(1);
  PutRows(random, 20);
  Empty(Sparse());
  Empty(Other());
  builder_->Enqueue(region_, Sparse().id);
  builder_->Enqueue(region_, Other().id);
  Region::Indexes indexes = *region_->indexes();
  indexes.erase(Other().id);
  region_->SetSchema(region_->schema(), indexes);
  RunToTheEnd();
  CheckComplete(Sparse());
  EXPECT_FALSE(IsMarkedComplete(Other()));
}

// A rebuild is no part of another index's pass: its caller waits for the sweep, too.
TEST_F(IndexBuilderTest, RebuildThatWaitsBehindAPassIsDoneAndAnswered) {
  Random random(1);
  PutRows(random, 40);
  Empty(Sparse());
  Empty(Other());
  builder_->Enqueue(region_, Sparse().id);
  const auto done = Rebuild(Other());
  RunToTheEnd();
  EXPECT_EQ(*done, Status::Ok());
  CheckComplete(Sparse());
  CheckComplete(Other());
}

TEST_F(IndexBuilderTest, IndexThatWaitsIsNotedOnce) {
  builder_->Enqueue(region_, Sparse().id);
  for (int i = 0; i < 3; ++i) builder_->Enqueue(region_, Other().id);
  EXPECT_EQ(builder_->pending(), 2u);
  const auto rebuilt = Rebuild(Other());
  EXPECT_EQ(builder_->pending(), 2u);
  RunToTheEnd();
  EXPECT_EQ(*rebuilt, Status::Ok());
}

TEST_F(IndexBuilderTest, RecountBesideWritesCountsExactlyTheEntriesThatThereAre) {
  for (uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    MakeBuilder(1 + random.Uniform(8));
    PutRows(random, random.Uniform(60));
    // An entry of another key range, which no compaction has dropped yet.
    garbage_.insert(EntryOf(Sparse(), RowOf("xx", 1, "v1")));
    for (const std::string& entry : garbage_) PutEntry(entry);
    SetState(Sparse(), /*entries_complete=*/true, /*begun=*/false);
    builder_->Enqueue(region_, Sparse().id);
    RunBesideWrites(random);
    CheckComplete(Sparse());
    EXPECT_TRUE(Entries().contains(*garbage_.begin()));
  }
}

TEST_F(IndexBuilderTest, RebuildBesideWritesRepairsAnyEntries) {
  for (uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    MakeBuilder(1 + random.Uniform(8));
    PutRows(random, 20 + random.Uniform(40));
    const IndexSpec& spec = random.OneIn(2) ? Sparse() : Other();
    garbage_.insert(EntryOf(spec, RowOf("xx", 1, "v1")));
    for (const std::string& entry : garbage_) PutEntry(entry);
    // Entries are missing, have the value or the included columns of another row, or mean nothing.
    for (const std::string& entry : Entries()) {
      if (!entry.starts_with(IndexPrefix(kRegion, spec.id)) || !random.OneIn(4)) continue;
      if (garbage_.contains(entry)) continue;
      Write([&](auto* batch) {
        if (random.OneIn(2)) {
          batch->Delete(store_->index(), entry);
        } else {
          batch->Put(store_->index(), entry, "an older row's");
        }
      });
    }
    for (int i = 0; i < 5; ++i) {
      Row row = AnyRow(random);
      row[2] = Value::Text("foreign " + std::to_string(i));
      PutEntry(EntryOf(spec, row));
    }
    PutEntry(IndexPrefix(kRegion, spec.id) + "\xff\xff\xff");
    const auto done = Rebuild(spec);
    const auto too = Rebuild(spec);
    RunBesideWrites(random);
    EXPECT_EQ(*done, Status::Ok());
    EXPECT_EQ(*too, Status::Ok());
    CheckComplete(spec);
    garbage_.clear();
    Write(
        [&](auto* batch) { batch->Delete(store_->index(), EntryOf(spec, RowOf("xx", 1, "v1"))); });
  }
}

TEST_F(IndexBuilderTest, UnreadableEntryLeavesTheRegionWithoutAFilter) {
  Random random(1);
  PutRows(random, 20);
  SetState(Sparse(), true, false);
  PutEntry(IndexPrefix(kRegion, Sparse().id) + "\xff\xff\xff");
  builder_->Enqueue(region_, Sparse().id);
  RunToTheEnd();
  EXPECT_FALSE(region_->filter(Sparse().id)->published());
  EXPECT_FALSE(region_->filter(Sparse().id)->building());
  const auto failures = region_->failures(Sparse().id);
  ASSERT_TRUE(failures.has_value());
  EXPECT_TRUE(failures->given_up);
  EXPECT_EQ(failures->last.code(), StatusCode::kDataLoss);
  EXPECT_EQ(*Rebuild(Sparse()), std::nullopt);
  RunToTheEnd();
  CheckComplete(Sparse());
  EXPECT_FALSE(region_->failures(Sparse().id).has_value());
}

TEST_F(IndexBuilderTest, FailedBackfillIsDoneAgainLater) {
  Random random(1);
  PutRows(random, 20);
  Empty(Sparse());
  Empty(Other());
  const std::string victim = RowStoreKey(kTable, KeyOf("k7x"));
  Write([&](auto* batch) { batch->Put(store_->rows(), victim, "\xff\xff\xff"); });
  builder_->Enqueue(region_, Sparse().id);
  builder_->Enqueue(region_, Other().id);
  for (int i = 0; i < 500; ++i) executor_.RunFor(1ms);
  EXPECT_EQ(builder_->pending(), 0u);
  EXPECT_FALSE(region_->IsEntriesComplete(Sparse().id));
  for (uint64_t attempts = 1; attempts <= 3; ++attempts) {
    for (const uint32_t id : {Sparse().id, Other().id}) {
      const auto failures = region_->failures(id);
      ASSERT_TRUE(failures.has_value());
      EXPECT_EQ(failures->attempts, attempts);
      EXPECT_FALSE(failures->given_up);
      EXPECT_EQ(failures->last.code(), StatusCode::kDataLoss);
    }
    executor_.RunFor(1s);
  }
  Write([&](auto* batch) { batch->Delete(store_->rows(), victim); });
  executor_.RunFor(2s);
  RunToTheEnd();
  CheckComplete(Sparse());
  CheckComplete(Other());
  EXPECT_FALSE(region_->failures(Sparse().id).has_value());
  EXPECT_FALSE(region_->failures(Other().id).has_value());
}

TEST_F(IndexBuilderTest, FailedRebuildIsReportedAndNotRetried) {
  Random random(1);
  PutRows(random, 20);
  const std::string victim = RowStoreKey(kTable, KeyOf("k7x"));
  Write([&](auto* batch) { batch->Put(store_->rows(), victim, "\xff\xff\xff"); });
  const auto done = Rebuild(Sparse());
  RunToTheEnd();
  ASSERT_TRUE(done->has_value());
  EXPECT_EQ((*done)->code(), StatusCode::kDataLoss);
  executor_.RunFor(500ms);
  EXPECT_TRUE(region_->filter(Sparse().id)->published()) << "as it was";
  executor_.RunFor(10s);
  EXPECT_EQ(builder_->pending(), 0u);
}

// Entries may be missing until the end: their cells must not be cleared, and the range not
// narrowed.
TEST_F(IndexBuilderTest, RebuildPreventsClearing) {
  const auto clears = [this] { return region_->filter(Sparse().id)->BeginClearing(10).round != 0; };
  const auto put_and_delete = [this](const std::string& value) {
    ASSERT_EQ(CodeOf({Mutation(pb::Mutation::PUT, RowOf("k", 1, value))}), pb::Error::OK);
    ASSERT_EQ(CodeOf({Mutation(pb::Mutation::DELETE, RowOf("k", 1, value))}), pb::Error::OK);
  };
  Random random(1);
  PutRows(random, 20);
  put_and_delete("z1");
  EXPECT_TRUE(clears());
  const std::string victim = RowStoreKey(kTable, KeyOf("k7x"));
  Write([&](auto* batch) { batch->Put(store_->rows(), victim, "\xff\xff\xff"); });
  auto done = Rebuild(Sparse());
  executor_.RunFor(1ms);
  EXPECT_FALSE(done->has_value());
  EXPECT_FALSE(clears());
  RunToTheEnd();
  EXPECT_FALSE((*done)->ok());
  EXPECT_TRUE(clears()) << "the rebuild has failed";
  Write([&](auto* batch) { batch->Delete(store_->rows(), victim); });
  done = Rebuild(Sparse());
  RunToTheEnd();
  EXPECT_TRUE((*done)->ok());
  put_and_delete("z2");
  EXPECT_TRUE(clears());
}

TEST_F(IndexBuilderTest, RebuildReportsThatItsCallerLacksMemory) {
  std::vector<StatusCode> heard;
  builder_->Rebuild(region_, Sparse().id, [&](const Status& status) {
    heard.push_back(status.code());
    if (heard.size() == 1) throw std::bad_alloc();
  });
  const auto other = Rebuild(Sparse());
  RunToTheEnd();
  EXPECT_EQ(heard, (std::vector{StatusCode::kOk, OutOfMemory().code()}));
  EXPECT_EQ(*other, Status::Ok());
}

// No table has a row of the empty key, not even one that another program wrote; a pass would begin
// again after it.
TEST_F(IndexBuilderTest, BackfillSkipsTheEmptyKey) {
  Random random(1);
  PutRows(random, 20);
  Empty(Sparse());
  MakeBuilder(1);
  Write([&](auto* batch) { batch->Put(store_->rows(), RowPrefix(kTable), "\xff"); });
  builder_->Enqueue(region_, Sparse().id);
  RunToTheEnd();
  Write([&](auto* batch) { batch->Delete(store_->rows(), RowPrefix(kTable)); });
  CheckComplete(Sparse());
}

TEST_F(IndexBuilderTest, JobLeavesAClosedOrMovedRegionUnchanged) {
  Random random(1);
  PutRows(random, 20);
  for (const bool closes : {false, true}) {
    Empty(Sparse());
    const auto before = Entries();
    if (closes) {
      region_->Close();
    } else {
      fence_->Advance(kEpoch + 1);
    }
    builder_->Enqueue(region_, Sparse().id);
    const auto done = Rebuild(Other());
    for (int i = 0; i < 300; ++i) executor_.RunFor(1ms);
    EXPECT_EQ(builder_->pending(), 0u);
    EXPECT_EQ(Entries(), before);
    ASSERT_TRUE(done->has_value());
    EXPECT_EQ((*done)->code(), StatusCode::kUnavailable) << **done;
    EXPECT_FALSE(region_->IsEntriesComplete(Sparse().id));
    EXPECT_FALSE(IsMarkedComplete(Sparse()));
  }
}

TEST_F(IndexBuilderTest, RecountOfARegionThatHasMovedPublishesNothing) {
  Random random(1);
  PutRows(random, 20);
  SetState(Sparse(), true, false);
  fence_->Advance(kEpoch + 1);
  builder_->Enqueue(region_, Sparse().id);
  executor_.RunFor(5s);  // it is tried again
  EXPECT_FALSE(region_->filter(Sparse().id)->building());
  EXPECT_FALSE(region_->filter(Sparse().id)->published());
  region_->Close();
  executor_.RunFor(5s);
  EXPECT_EQ(builder_->pending(), 0u);
}

TEST_F(IndexBuilderTest, ACatalogThatKnowsAnotherEpochMarksNothing) {
  Random random(1);
  PutRows(random, 20);
  Empty(Sparse());
  pb::RegionRecord record = *catalog_->Region(kRegion);
  record.set_epoch(kEpoch + 1);
  ASSERT_EQ(catalog_->Commit({.put_regions = {record}}), Status::Ok());
  builder_->Enqueue(region_, Sparse().id);
  for (int i = 0; i < 300; ++i) executor_.RunFor(1ms);
  EXPECT_FALSE(region_->IsEntriesComplete(Sparse().id));
  EXPECT_FALSE(region_->filter(Sparse().id)->published());
  EXPECT_FALSE(IsMarkedComplete(Sparse()));
}

TEST_F(IndexBuilderTest, DroppedIndexIsNotPublished) {
  Random random(1);
  PutRows(random, 20);
  SetState(Sparse(), true, false);
  TableSchema without = schema_;
  std::erase_if(without.indexes, [&](const IndexSpec& spec) { return spec.id == Sparse().id; });
  builder_->Enqueue(region_, Sparse().id);
  executor_.RunFor(1ms);
  ASSERT_EQ(catalog_->Commit({.put_tables = {without}}), Status::Ok());
  RunToTheEnd();
  EXPECT_FALSE(region_->filter(Sparse().id)->published());
  EXPECT_FALSE(region_->filter(Sparse().id)->building());
  // The region does not know it any more.
  Region::Indexes indexes = *region_->indexes();
  indexes.erase(Sparse().id);
  region_->SetSchema(region_->schema(), indexes);
  const auto done = Rebuild(Sparse());
  RunToTheEnd();
  EXPECT_EQ(*done, Status::Ok());
}

TEST_F(IndexBuilderTest, StoreThatIsReadOnlyIsCountedAndNotCompleted) {
  Random random(1);
  PutRows(random, 20);
  Open({}, /*read_only=*/true);
  MakeBuilder(3);
  SetState(Sparse(), true, false);
  SetState(Other(), false, true);
  const auto before = Entries();
  builder_->Enqueue(region_, Sparse().id);
  builder_->Enqueue(region_, Other().id);
  RunToTheEnd();
  CheckComplete(Sparse());
  EXPECT_FALSE(region_->IsEntriesComplete(Other().id));
  EXPECT_FALSE(region_->filter(Other().id)->published());
  ASSERT_TRUE(region_->failures(Other().id).has_value());
  EXPECT_TRUE(region_->failures(Other().id)->given_up);
  EXPECT_FALSE(region_->failures(Sparse().id).has_value());
  EXPECT_EQ(Entries(), before);
}

TEST_F(IndexBuilderTest, CompleteIndexWhoseFilterFitsIsLeftAlone) {
  Random random(1);
  PutRows(random, 20);
  const uint64_t before = feed_->Last();
  builder_->Enqueue(region_, Sparse().id);
  RunToTheEnd();
  EXPECT_EQ(feed_->Last(), before);
}

TEST_F(IndexBuilderTest, FilterThatTurnsOutTooSmallIsCountedAgainToFit) {
  schema_.indexes[0].expected_values = 4;
  Open({});
  MakeBuilder(5);
  std::vector<pb::Mutation> mutations;
  for (int i = 0; i < 300; ++i) {
    mutations.push_back(
        Mutation(pb::Mutation::PUT, RowOf("k" + std::to_string(i), 1, "v" + std::to_string(i))));
  }
  ASSERT_EQ(CodeOf(mutations), pb::Error::OK);
  for (const bool backfill : {true, false}) {
    if (backfill) Empty(Sparse());
    if (!backfill) SetState(Sparse(), true, false);
    builder_->Enqueue(region_, Sparse().id);
    RunToTheEnd();
    CheckComplete(Sparse());
    EXPECT_FALSE(region_->filter(Sparse().id)->WantsRecount({}));
    EXPECT_LE(region_->filter(Sparse().id)->layers(), 2u);
  }
}

TEST_F(IndexBuilderTest, DyingServerAnswersNoRequest) {
  Random random(1);
  PutRows(random, 20);
  const auto done = Rebuild(Sparse());
  const auto waits = Rebuild(Other());
  executor_.RunFor(1ms);
  context_->executor->Kill();
  builder_->Abandon();
  executor_.RunFor(10s);
  EXPECT_FALSE(done->has_value());
  EXPECT_FALSE(waits->has_value());
  EXPECT_EQ(builder_->pending(), 0u);
}

}  // namespace
}  // namespace tamis
