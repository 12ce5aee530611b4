// Cells of a filter and its range of values follow the entries in the store, beside writes, and
// never exclude a row.
#include "tamis/rocks/filter_clearer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tamis/base/random.h"
#include "tamis/filter/cell_set.h"
#include "tamis/rocks/testing/one_region.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

using namespace std::chrono_literals;

class FilterClearerTest : public OneRegionTest {
 protected:
  FilterClearerTest() { UseFaults({}); }

  void UseFaults(const Faults& faults) {
    std::vector<std::string> sample;
    for (int i = 0; i < 100; ++i) {
      AppendOrdered(Value::Text("v" + std::to_string(i)), &sample.emplace_back());
    }
    std::ranges::sort(sample);
    map_ = std::make_shared<const CellMap>(CellMap::Fit(sample, {.cells = 40, .knots = 30}));
    filter_ = std::make_shared<IndexFilter>(feed_.get(), Spec(), kRegion, kEpoch, faults);
    filter_->SetCellMap(map_);
    filter_->BeginGeneration(false);
    filter_->Publish();
    Region::Indexes indexes = *region_->indexes();
    indexes[Spec().id].filter = filter_;
    region_->SetSchema(region_->schema(), std::move(indexes));
    context_->options.faults = faults;
    context_->options.clear_delay = 5ms;
    clearer_ = std::make_shared<FilterClearer>(context_);
    context_->after_write = [this](const std::shared_ptr<Region>& region) {
      if (filter_->WantsClearing()) clearer_->Enqueue(region, Spec().id);
    };
  }
  const IndexSpec& Spec() const { return schema_.indexes[0]; }

  void Put(const std::string& key, int value) {
    EXPECT_EQ(CodeOf({Mutation(pb::Mutation::PUT, RowOf(key, 1, "v" + std::to_string(value)))}),
              pb::Error::OK);
  }
  void Delete(const std::string& key) {
    EXPECT_EQ(CodeOf({Mutation(pb::Mutation::DELETE, RowOf(key, 1, {}))}), pb::Error::OK);
  }
  static std::string Encoded(const std::string& text) {
    std::string encoded;
    AppendOrdered(Value::Text(text), &encoded);
    return encoded;
  }
  uint32_t CellOf(int value) const { return map_->CellOf(Encoded("v" + std::to_string(value))); }

  std::set<uint32_t> Cells() const {
    pb::ColumnId wanted;
    wanted.set_cells(true);
    const pb::Projection bits = *filter_->Project(wanted);
    CellSet set(bits.cell_count());
    EXPECT_TRUE(set.Decode(bits.cells(), 0, bits.end_cell()));
    std::set<uint32_t> cells;
    for (uint32_t c = set.Next(0); c < set.cells(); c = set.Next(c + 1)) cells.insert(c);
    return cells;
  }
  std::optional<std::pair<std::string, std::string>> Range() const {
    const pb::Projection bits = *filter_->Project();
    if (!bits.has_range()) return std::nullopt;
    return std::pair(bits.min(), bits.max());
  }
  // Exactly what the rows need.
  void ExpectExact() const {
    std::set<uint32_t> cells;
    std::set<std::string> values;
    for (const auto& [key, row] : Rows()) {
      if (row[2].is_null() || !region_->info().Contains(key)) continue;
      values.insert(Encoded(row[2].str()));
      cells.insert(map_->CellOf(*values.find(Encoded(row[2].str()))));
    }
    EXPECT_EQ(Cells(), cells);
    EXPECT_EQ(Range().has_value(), !values.empty());
    if (values.empty()) return;
    EXPECT_EQ(Range(), std::pair(*values.begin(), *values.rbegin()));
  }
  bool ExcludesARow() const {
    return std::ranges::any_of(Rows(), [this](const auto& at) {
      const auto entry = IndexEntry::Of(schema_, Spec(), at.second);
      return entry.has_value() && region_->info().Contains(at.first) &&
             !filter_->MayContain(entry->filter_key);
    });
  }

  // Writes to few cells, many at a time. Returns whether a row was excluded at any time.
  bool WriteAtRandom(uint64_t seed, int writes) {
    Random random(seed);
    std::vector<std::shared_ptr<Result>> results;
    bool excluded = false;
    for (int i = 0; i < writes; ++i) {
      const std::string key = "k" + std::to_string(random.Uniform(6));
      const Row row = RowOf(key, 1, "v" + std::to_string(random.Uniform(8)));
      const auto kind = random.OneIn(3) ? pb::Mutation::DELETE : pb::Mutation::PUT;
      results.push_back(Start({Mutation(kind, row)}));
      executor_.RunFor(std::chrono::milliseconds(random.Uniform(8)));
      excluded |= ExcludesARow();
    }
    executor_.RunFor(1s);
    for (const auto& result : results) EXPECT_TRUE(result->has_value());
    return excluded || ExcludesARow();
  }

  std::shared_ptr<const CellMap> map_;
  std::shared_ptr<IndexFilter> filter_;
  std::shared_ptr<FilterClearer> clearer_;
};

TEST_F(FilterClearerTest, RemovalsAreFollowed) {
  for (const int value : {10, 20, 30, 40}) Put("k" + std::to_string(value), value);
  Put("other", 20);
  ExpectExact();
  Delete("k10");
  Delete("k20");
  ExpectExact();
  EXPECT_TRUE(Cells().contains(CellOf(20)));
  Delete("other");
  Put("k40", 25);
  ExpectExact();
  EXPECT_EQ(Range(), std::pair(Encoded("v25"), Encoded("v30")));
  Delete("k30");
  Delete("k40");
  EXPECT_TRUE(Cells().empty());
  EXPECT_FALSE(Range().has_value());
  Put("k", 50);
  ExpectExact();
  EXPECT_EQ(clearer_->pending(), 0u);
}

TEST_F(FilterClearerTest, FollowsManyRemovals) {
  for (int i = 0; i < 100; ++i) Put("k" + std::to_string(i), i);
  std::vector<pb::Mutation> deletes;
  for (int i = 10; i < 100; ++i) {
    deletes.push_back(Mutation(pb::Mutation::DELETE, RowOf("k" + std::to_string(i), 1, {})));
  }
  EXPECT_EQ(CodeOf(deletes), pb::Error::OK);
  ExpectExact();
}

TEST_F(FilterClearerTest, WritesMeanwhileAreNeverExcluded) {
  for (uint64_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    EXPECT_FALSE(WriteAtRandom(seed, 60));
    ExpectExact();
  }
}

TEST_F(FilterClearerTest, EachRuleIsNeeded) {
  for (const auto rule : {&Faults::leave_before_commit, &Faults::clear_amid_writes,
                          &Faults::clear_by_old_snapshot, &Faults::clear_despite_writes}) {
    Faults faults;
    faults.*rule = true;
    UseFaults(faults);
    bool excluded = false;
    for (uint64_t seed = 1; seed <= 200 && !excluded; ++seed) excluded = WriteAtRandom(seed, 60);
    EXPECT_TRUE(excluded) << "rule " << (rule == &Faults::clear_by_old_snapshot ? "(c)" : "other");
    for (const auto& [key, row] : Rows()) Delete(row[1].str());
  }
}

// The entries of the upper half after a split stand among those of the region.
TEST_F(FilterClearerTest, GarbageOccupiesNoCell) {
  for (const int entries : {10, 100}) {
    for (const bool rule : {true, false}) {
      Faults faults;
      faults.undecided_is_empty = !rule;
      UseFaults(faults);
      rocksdb::WriteBatch batch;
      for (int i = 0; i < entries; ++i) {
        const Row row = RowOf("y" + std::to_string(i), 1, "v10");
        batch.Put(store_->index(),
                  IndexEntry::Of(schema_, Spec(), row)
                      ->StoreKey(kRegion, Spec().id, *KeyFormat(schema_).Encode(row)),
                  "");
      }
      ASSERT_TRUE(store_->Write(&batch).ok());
      Put("k", 10);
      Put("k", 20);
      // With many of them nothing is decided, which is as if an entry stood.
      EXPECT_EQ(Cells().contains(CellOf(10)), entries == 100 && rule);
      EXPECT_EQ(Range()->first, entries == 100 ? Encoded("v10") : Encoded("v20"));
      Delete("k");
      rocksdb::WriteBatch clear;
      clear.DeleteRange(store_->index(), IndexPrefix(kRegion, Spec().id),
                        IndexPrefix(kRegion, Spec().id + 1));
      ASSERT_TRUE(store_->Write(&clear).ok());
      // Undecided cells and ranges are looked at again after a later write.
      Put("k", 30);
      Delete("k");
      EXPECT_EQ(Cells().size(), 0u);
      EXPECT_FALSE(Range().has_value());
    }
  }
}

TEST_F(FilterClearerTest, WriteOfUnknownOutcomeKeepsItsCell) {
  Put("k", 10);
  env_.set_failing(true);
  EXPECT_EQ(CodeOf({Mutation(pb::Mutation::PUT, RowOf("other", 1, "v10"))}),
            pb::Error::DEADLINE_EXCEEDED);
  filter_->Remove({});
  const EntryKey entry = IndexEntry::Of(schema_, Spec(), RowOf("k", 1, "v10"))->filter_key;
  filter_->Remove(std::span(&entry, 1));
  clearer_->Enqueue(region_, Spec().id);
  executor_.RunFor(1s);
  EXPECT_TRUE(Cells().contains(CellOf(10)));
  EXPECT_EQ(clearer_->pending(), 0u);
}

}  // namespace
}  // namespace tamis
