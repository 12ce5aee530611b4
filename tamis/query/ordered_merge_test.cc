#include "tamis/query/ordered_merge.h"

#include <gtest/gtest.h>

#include <list>

#include "tamis/table/codec.h"

namespace tamis {
namespace {

// A table of (id, a, b) with an index on (a, b); sub-ranges of ten ids each.
class OrderedMergeTest : public testing::Test {
 protected:
  OrderedMergeTest() {
    TableSchema schema;
    schema.id = 1;
    schema.name = "t";
    schema.columns = {{.id = 1, .name = "id", .type = Type::kInt64, .nullable = false},
                      {.id = 2, .name = "a", .type = Type::kInt64},
                      {.id = 3, .name = "b", .type = Type::kText}};
    schema.key = {0};
    schema.indexes = {{.id = 7, .name = "a_b", .columns = {1, 2}},
                      {.id = 8, .name = "b", .columns = {2}}};
    schema_ = std::make_shared<const TableSchema>(schema);
  }

  void Begin(const std::vector<OrderTerm>& terms, size_t index, size_t columns, int sub_ranges,
             bool each_once = false, bool stop_early = false,
             size_t most_tied_bytes = size_t{1} << 20) {
    merge_.reset();
    sub_ranges_.clear();
    pb::IndexStream stream;
    stream.add_ranges();
    merge_.emplace(schema_, OrderedMerge::Options{.terms = terms,
                                                  .order = {.index = &schema_->indexes[index],
                                                            .descending = terms[0].descending,
                                                            .columns = columns},
                                                  .stream = stream,
                                                  .each_once = each_once,
                                                  .most_tied_bytes = most_tied_bytes,
                                                  .stop_early = stop_early});
    for (int i = 0; i < sub_ranges; ++i) sub_ranges_.push_back({.range = Keys(i)});
  }
  void Bound(const std::vector<std::optional<int64_t>>& values) {
    std::vector<GlobalIndex::Bound> bounds;
    for (size_t i = 0; i < values.size(); ++i) {
      std::optional<std::string> value;
      if (values[i].has_value()) {
        value.emplace();
        AppendIndexed(Value::Int64(*values[i]), &*value);
      }
      bounds.push_back({Keys(static_cast<int>(i)), value});
    }
    merge_->SetBounds(std::move(bounds));
  }
  void PlaceAll() {
    for (auto at = sub_ranges_.begin(); at != sub_ranges_.end(); ++at) merge_->Place(at);
  }

  std::string Key(int64_t id) const { return EncodeKey(*schema_, {Value::Int64(id)}); }
  KeyRange Keys(int i) const { return {Key(10 * i), Key(10 * i + 10)}; }
  SubRangeAt At(int i) { return std::next(sub_ranges_.begin(), i); }

  void Answer(int i, const std::vector<Row>& rows, bool done, bool in_order = true) {
    std::vector<std::string> keys;
    for (const Row& row : rows) keys.push_back(Key(row[0].int64()));
    At(i)->done = done;
    std::vector<RowGroup> groups;
    for (const Row& row : rows) groups.push_back({.row = row});
    merge_->AddRows(At(i), std::move(groups), keys, in_order);
  }
  static Row RowOf(int64_t id, int64_t a, std::string b = "x") {
    return {Value::Int64(id), Value::Int64(a), Value::Text(std::move(b))};
  }
  // The ids of the rows that can be given out.
  std::vector<int64_t> Given() {
    std::vector<int64_t> ids;
    while (auto row = merge_->Next([this](SubRangeAt at) {
      if (at->done) merge_->Remove(at);
    })) {
      ids.push_back((*row)[0].int64());
    }
    return ids;
  }
  std::set<int> Needed(uint64_t rows) {
    std::set<int> needed;
    for (const SubRangeAt at : merge_->Needed(rows)) {
      needed.insert(static_cast<int>(std::distance(sub_ranges_.begin(), at)));
    }
    return needed;
  }

  SchemaPtr schema_;
  std::list<SubRange> sub_ranges_;
  std::optional<OrderedMerge> merge_;
};

using Ids = std::vector<int64_t>;

TEST_F(OrderedMergeTest, AsksTheRegionsWithTheSmallestBoundsInOneRound) {
  Begin({{.column = 1}}, 0, 1, 5);
  Bound({50, 10, 40, 20, 30});
  PlaceAll();
  EXPECT_EQ(Needed(1), (std::set<int>{1}));
  EXPECT_EQ(Needed(3), (std::set<int>{1, 3, 4}));
  Answer(1, {RowOf(11, 10)}, false);
  EXPECT_EQ(Given(), (Ids{11}));
  EXPECT_EQ(Needed(1), (std::set<int>{1})) << "the region may have another row with the value";
}

TEST_F(OrderedMergeTest, RegionsWithoutABoundAreAlwaysAsked) {
  Begin({{.column = 1}}, 0, 1, 4);
  Bound({30, 20});
  PlaceAll();
  EXPECT_EQ(Needed(1), (std::set<int>{2, 3}));
  Answer(2, {RowOf(21, 25)}, true);
  Answer(3, {}, true);
  merge_->Remove(At(3));
  EXPECT_EQ(Given(), Ids{}) << "a region may have 20";
  EXPECT_EQ(Needed(1), (std::set<int>{1}));
  Answer(1, {RowOf(11, 24), RowOf(12, 26)}, true);
  EXPECT_EQ(Given(), (Ids{11, 21, 12}));
  EXPECT_EQ(Needed(1), (std::set<int>{0}));
}

TEST_F(OrderedMergeTest, ARowThatWasWrittenTooLateForItsPlaceIsLeftOut) {
  Begin({{.column = 1}}, 0, 1, 3);
  Bound({10, 20, 30});
  PlaceAll();
  Answer(0, {RowOf(1, 10), RowOf(2, 15)}, true);
  EXPECT_EQ(Given(), (Ids{1, 2}));
  Answer(1, {RowOf(11, 12), RowOf(12, 15), RowOf(13, 20)}, true);
  EXPECT_EQ(Given(), (Ids{12, 13})) << "12 comes before 15, which was given out";
}

TEST_F(OrderedMergeTest, ARowDoesNotWaitForRegionsThatBeginWithItsValue) {
  Begin({{.column = 1, .descending = true}}, 0, 1, 3);
  Bound({7, 7, 7});
  PlaceAll();
  Answer(0, {RowOf(1, 7), RowOf(2, 6)}, true);
  EXPECT_EQ(Given(), (Ids{1}));
}

TEST_F(OrderedMergeTest, ABoundOnTheFirstColumnSaysNothingOfTheSecond) {
  for (const bool descending : {false, true}) {
    const std::vector<OrderTerm> terms = {{.column = 1, .descending = descending},
                                          {.column = 2, .descending = descending}};
    Begin(terms, 0, 2, 2);
    Bound({7, 7});
    PlaceAll();
    Answer(0, {RowOf(1, 7, "m")}, true);
    EXPECT_EQ(Given(), Ids{});
    EXPECT_EQ(Needed(1), (std::set<int>{1}));
    Answer(1, {RowOf(11, 7, descending ? "z" : "a")}, true);
    EXPECT_EQ(Given(), (Ids{11, 1}));
  }
}

TEST_F(OrderedMergeTest, ARegionWithoutEntriesIsNotAsked) {
  Begin({{.column = 1}}, 0, 1, 2);
  Bound({5, std::nullopt});
  EXPECT_FALSE(merge_->without_entries().Contains(Key(5)));
  EXPECT_TRUE(merge_->without_entries().Contains(Key(15)));
}

TEST_F(OrderedMergeTest, CutValuesComeInTheOrderOfTheWholeValues) {
  const std::string head(kIndexValueLimit, 'x');
  for (const bool descending : {false, true}) {
    Begin({{.column = 2, .descending = descending}}, 1, 1, 2);
    PlaceAll();
    Answer(0, {RowOf(1, 0, head + "b"), RowOf(2, 0, head + "d")}, false);
    EXPECT_EQ(Given(), Ids{}) << "nothing is known of the other region";
    std::vector<Row> other = {RowOf(12, 0, head), RowOf(11, 0, head + "c")};
    if (descending) std::ranges::reverse(other);
    Answer(1, other, true);
    EXPECT_EQ(Given(), descending ? Ids{} : Ids{12}) << "the first region may have more of these";
    EXPECT_EQ(Needed(1), (std::set<int>{0}));
    Answer(0, {RowOf(3, 0, head + "a")}, true);
    EXPECT_EQ(Given(), descending ? (Ids{2, 11, 1, 3, 12}) : (Ids{3, 1, 11, 2}));
  }
}

TEST_F(OrderedMergeTest, EqualCutValuesTakeBoundedMemory) {
  const std::string common(kIndexValueLimit, 'x');
  const auto answer = [&](uint64_t limit) {
    Begin({{.column = 2}}, 1, 1, 2, false, false, /*most_tied_bytes=*/9 * kIndexValueLimit);
    merge_->SetLimit(limit);
    PlaceAll();
    std::vector<Row> rows;
    for (int64_t i = 0; i < 10; ++i) {
      rows.push_back(RowOf(i, 0, common + static_cast<char>('a' + i * 7 % 10)));
    }
    Answer(0, rows, true);
    Answer(1, {}, true);
    merge_->Remove(At(1));
    return Given();
  };
  EXPECT_EQ(answer(0), Ids{});
  EXPECT_EQ(merge_->status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(merge_->status().message().find("index \"b\""), std::string::npos);
  const Ids first = answer(3);
  ASSERT_GE(first.size(), 3u);
  EXPECT_EQ(Ids(first.begin(), first.begin() + 3), (Ids{0, 3, 6}));
  EXPECT_TRUE(merge_->status().ok());
}

TEST_F(OrderedMergeTest, RowsOfAServerThatKnowsNoOrderAreSortedOnceAllAreThere) {
  Begin({{.column = 1}}, 0, 1, 1);
  PlaceAll();
  Answer(0, {RowOf(1, 9), RowOf(2, 3)}, false, /*in_order=*/false);
  EXPECT_EQ(Given(), Ids{});
  EXPECT_EQ(Needed(1), (std::set<int>{0}));
  Answer(0, {RowOf(3, 5)}, true, /*in_order=*/false);
  EXPECT_EQ(Given(), (Ids{2, 3, 1}));
}

TEST_F(OrderedMergeTest, RowThatMovesForwardComesOnceWithEachOnce) {
  Begin({{.column = 1}}, 0, 1, 1, /*each_once=*/true);
  PlaceAll();
  Answer(0, {RowOf(1, 3)}, false);
  EXPECT_EQ(Given(), (Ids{1}));
  Answer(0, {RowOf(2, 4), RowOf(1, 5)}, true);
  EXPECT_EQ(Given(), (Ids{2}));
}

TEST_F(OrderedMergeTest, FaultStopBeforeBoundsGivesARowTooEarly) {
  Begin({{.column = 1}}, 0, 1, 2, false, /*stop_early=*/true);
  Bound({1, 2});
  PlaceAll();
  Answer(1, {RowOf(11, 2)}, true);
  EXPECT_EQ(Given(), (Ids{11})) << "the fault that stop_before_bounds plants";
}

}  // namespace
}  // namespace tamis
