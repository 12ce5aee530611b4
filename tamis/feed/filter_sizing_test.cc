#include "tamis/feed/filter_sizing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>

#include "tamis/base/hash.h"

namespace tamis {
namespace {

constexpr double kFpr = 0.01;
constexpr uint64_t kExpected = 50;
constexpr uint64_t kSeed = 9;

class FilterSizingTest : public testing::Test {
 protected:
  static SplitGeometry GeometryFor(uint64_t values) { return SplitGeometry::For(kFpr, values); }
  // With so many distinct values.
  static FilterGeneration Generation(SplitGeometry geometry, bool bits_only, uint64_t values) {
    FilterGeneration generation{
        .filter = bits_only ? IndexCounters(BitLayers(geometry))
                            : IndexCounters(ScalableSplitCountingBloomFilter(geometry, kSeed))};
    for (uint64_t i = 0; i < values; ++i) {
      generation.filter.Insert(Mix(i), [](uint32_t, uint64_t, bool) {});
    }
    return generation;
  }
  FilterSizing& SizingWith(std::shared_ptr<FilterBudget> budget) {
    return sizing_.emplace(index_, faults_, std::move(budget));
  }
  FilterSizing& SizingWithin(size_t bytes) {
    return SizingWith(std::make_shared<FilterBudget>(bytes));
  }

  const IndexSpec index_ = {.id = 1,
                            .name = "i",
                            .columns = {0},
                            .fpr = kFpr,
                            .expected_values = kExpected,
                            .seed = kSeed};
  const Faults faults_;
  std::optional<FilterSizing> sizing_;
};

TEST_F(FilterSizingTest, FirstGenerationIsForTheExpectedValuesAndWithoutABudgetOfCounters) {
  const IndexCounters first = SizingWith(nullptr).NewCounters(nullptr);
  EXPECT_EQ(first.geometry(), GeometryFor(kExpected));
  EXPECT_FALSE(first.bits_only());
  EXPECT_TRUE(sizing_->HasRoomFor(first));
  EXPECT_FALSE(sizing_->WantsOtherForm(Generation(GeometryFor(kExpected), true, 0)));
  const FilterGeneration generation = Generation(GeometryFor(kExpected), false, 0);
  sizing_->Account(&generation, nullptr);
}

TEST_F(FilterSizingTest, NextGenerationHoldsItsValuesInAtMostHalfMore) {
  FilterSizing& sizing = SizingWith(nullptr);
  for (const uint64_t values : {1, 40, 60, 200, 1000, 7000}) {
    const FilterGeneration current = Generation(GeometryFor(values), false, values);
    const uint64_t distinct = std::max(kExpected, current.filter.Distinct());
    const SplitGeometry next = sizing.NewCounters(&current).geometry();
    EXPECT_EQ(next.slices, GeometryFor(1).slices);
    EXPECT_GE(next.slice_positions, GeometryFor(distinct).slice_positions) << values;
    EXPECT_LE(next.slice_positions, GeometryFor(distinct * 3 / 2).slice_positions) << values;
  }
}

TEST_F(FilterSizingTest, CountersAreMadeWhileTheyFitTheBudget) {
  // Budgets go by quarters.
  const size_t size = (IndexCounters::CounterBytes(GeometryFor(kExpected)) + 3) / 4 * 4;
  EXPECT_FALSE(SizingWithin(size).NewCounters(nullptr).bits_only());
  EXPECT_TRUE(SizingWithin(size - 4).NewCounters(nullptr).bits_only());
  EXPECT_EQ(sizing_->NewCounters(nullptr).geometry(), GeometryFor(kExpected));
  const IndexCounters counters = Generation(GeometryFor(kExpected), false, 0).filter;
  EXPECT_TRUE(SizingWithin(size).HasRoomFor(counters));
  EXPECT_FALSE(SizingWithin(size - 4).HasRoomFor(counters));
}

TEST_F(FilterSizingTest, BitsGetCountersWhereAQuarterOfTheBudgetIsLeft) {
  const FilterGeneration bits = Generation(GeometryFor(kExpected), true, 40);
  const FilterGeneration counters = Generation(GeometryFor(kExpected), false, 40);
  const size_t size = IndexCounters::CounterBytes(GeometryFor(kExpected));
  const size_t with_a_quarter = (size + 2) / 3 * 4;
  for (const auto& [bytes, of_bits, of_counters] :
       {std::tuple(with_a_quarter, false, false), std::tuple(with_a_quarter - 4, true, false),
        std::tuple((size + 3) / 4 * 4, true, false), std::tuple(size / 4 * 4 - 4, true, true)}) {
    FilterSizing& sizing = SizingWithin(bytes);
    EXPECT_EQ(sizing.NewCounters(&bits).bits_only(), of_bits) << bytes;
    EXPECT_EQ(sizing.NewCounters(&counters).bits_only(), of_counters) << bytes;
    EXPECT_EQ(sizing.WantsOtherForm(bits), !of_bits) << bytes;
    EXPECT_EQ(sizing.WantsOtherForm(counters), of_counters) << bytes;
  }
}

TEST_F(FilterSizingTest, CountersThatWouldNotFitForTheNextSizeStayAway) {
  // The filter of bits is small for what it holds: its counters would fit, larger ones would not.
  const FilterGeneration bits = Generation(GeometryFor(kExpected), true, 400);
  const size_t larger =
      IndexCounters::CounterBytes(SizingWith(nullptr).NewCounters(&bits).geometry());
  ASSERT_GT(larger, bits.filter.SizeBytes());
  EXPECT_TRUE(SizingWithin((larger + 2) / 3 * 4).WantsOtherForm(bits));
  EXPECT_FALSE(SizingWithin((larger + 2) / 3 * 4 - 4).WantsOtherForm(bits));
}

TEST_F(FilterSizingTest, CountersTurnIntoBitsOnlyIfNeitherTheyNorTheNextOnesFit) {
  for (const FilterGeneration& counters :
       {Generation(GeometryFor(1000), false, 40), Generation(GeometryFor(kExpected), false, 148)}) {
    const size_t now = counters.filter.SizeBytes();
    const size_t next =
        IndexCounters::CounterBytes(SizingWith(nullptr).NewCounters(&counters).geometry());
    ASSERT_NE(now, next);
    const size_t smaller = (std::min(now, next) + 3) / 4 * 4;
    ASSERT_LT(smaller, std::max(now, next));
    EXPECT_FALSE(SizingWithin(smaller).WantsOtherForm(counters)) << now << " " << next;
    EXPECT_TRUE(SizingWithin(smaller - 4).WantsOtherForm(counters)) << now << " " << next;
  }
}

TEST_F(FilterSizingTest, BudgetIsThatOfAllAndItsOwnShareIsItsGenerations) {
  const FilterGeneration current = Generation(GeometryFor(kExpected), false, 40);
  const FilterGeneration next = Generation(GeometryFor(200), true, 10);
  const size_t size = IndexCounters::CounterBytes(GeometryFor(kExpected));
  auto budget = std::make_shared<FilterBudget>((size + 3) / 4 * 4);
  FilterSizing& sizing = SizingWith(budget);
  sizing.Account(&current, &next);
  EXPECT_EQ(budget->used_bytes(), current.filter.SizeBytes() + next.filter.SizeBytes());
  EXPECT_FALSE(sizing.NewCounters(&current).bits_only()) << "what is replaced does not count";
  sizing.Account(nullptr, &next);
  EXPECT_EQ(budget->used_bytes(), next.filter.SizeBytes());
  sizing.Account(&current, nullptr);
  EXPECT_EQ(budget->used_bytes(), current.filter.SizeBytes());
  const FilterSizing other(index_, faults_, budget);
  EXPECT_TRUE(other.NewCounters(nullptr).bits_only()) << "it is used up";
  sizing.Account(nullptr, nullptr);
  EXPECT_EQ(budget->used_bytes(), 0u);
  EXPECT_FALSE(other.NewCounters(nullptr).bits_only());
}

TEST_F(FilterSizingTest, ThreeLayersAreTooSmall) {
  FilterSizing& sizing = SizingWith(nullptr);
  for (uint64_t values = 40; values < 400; values += 5) {
    const FilterGeneration generation = Generation(GeometryFor(kExpected), false, values);
    EXPECT_EQ(sizing.WantsOtherSize(generation), generation.filter.layers() >= 3) << values;
  }
  EXPECT_GE(Generation(GeometryFor(kExpected), false, 400).filter.layers(), 4u);
}

TEST_F(FilterSizingTest, LessThanAQuarterInUseIsTooLargeOnceAllIsIn) {
  FilterSizing& sizing = SizingWith(nullptr);
  FilterGeneration few = Generation(GeometryFor(1000), false, 100);
  ASSERT_LT(few.filter.Fill(0), 0.25);
  EXPECT_FALSE(sizing.WantsOtherSize(few)) << "more may come";
  few.added = GeometryFor(1000).Capacity() - 1;
  EXPECT_FALSE(sizing.WantsOtherSize(few));
  few.added = GeometryFor(1000).Capacity();
  EXPECT_TRUE(sizing.WantsOtherSize(few));
  few.added = 0;
  few.counted = true;
  EXPECT_TRUE(sizing.WantsOtherSize(few));
  FilterGeneration enough = Generation(GeometryFor(1000), false, 600);
  ASSERT_GT(enough.filter.Fill(0), 0.25);
  enough.counted = true;
  EXPECT_FALSE(sizing.WantsOtherSize(enough));
  FilterGeneration least = Generation(GeometryFor(kExpected), false, 1);
  least.counted = true;
  EXPECT_FALSE(sizing.WantsOtherSize(least)) << "there is no smaller one";
}

}  // namespace
}  // namespace tamis
