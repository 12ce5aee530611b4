#include "tamis/table/value_sample.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tamis/base/coding.h"

namespace tamis {
namespace {

std::string Encoded(uint64_t value) {
  std::string bytes;
  PutBig64(&bytes, value);
  return bytes;
}

// The values from `first` on, `step` apart.
ValueSample SampleOf(uint64_t first, uint64_t step, size_t count, uint64_t distinct) {
  ValueSample sample{.values = {}, .distinct = distinct};
  for (size_t i = 0; i < count; ++i) sample.values.push_back(Encoded(first + i * step));
  return sample;
}

// A map of so many cells for the values of its sample.
uint32_t CellsOf(uint32_t within) {
  return CellMap::Fit(SampleOf(0, 10, 50, 50).values, {.cells = within}).cells();
}

TEST(ValueSampleTest, CellsAreForARegionOfMeanSize) {
  const auto map = FitCellMap({SampleOf(0, 10, 1000, 1000), SampleOf(5, 10, 3000, 3000)}, 2, 16);
  EXPECT_EQ(map.cells(), CellsOf(2000 * 16));
  EXPECT_EQ(FitCellMap({SampleOf(0, 10, 100, 4000)}, 2, 4).cells(), CellsOf(2000 * 4));
  EXPECT_EQ(FitCellMap({SampleOf(0, 10, 1, 1)}, 1, 16).cells(), 64 + 64 / 4 + 2);
  EXPECT_EQ(FitCellMap({SampleOf(0, 10, 10, uint64_t{1} << 40)}, 1, 16).cells(),
            CellsOf(CellMap::kMaxCells / 2));
}

TEST(ValueSampleTest, MapOfNoValuesKeepsTheCellsPerValue) {
  for (const CellMap& map : {FitCellMap({}, 0, 4), FitCellMap({ValueSample()}, 1, 4),
                             *CellMap::Deserialize(UnfittedCellMap(4).Serialize())}) {
    EXPECT_FALSE(IsFitted(map));
    EXPECT_EQ(CellsPerValueFor(&map), 4);
    EXPECT_EQ(map.CellOf(Encoded(0)), map.CellOf(Encoded(~uint64_t{0})));
  }
  const CellMap fitted = FitCellMap({SampleOf(0, 10, 1, 1)}, 1, 4);
  EXPECT_TRUE(IsFitted(fitted));
  EXPECT_EQ(CellsPerValueFor(&fitted), kDefaultCellsPerValue);
  EXPECT_EQ(CellsPerValueFor(nullptr), kDefaultCellsPerValue);
  EXPECT_EQ(UnfittedCellMap(0).cells(), 1);
  EXPECT_EQ(UnfittedCellMap(~0u).cells(), kMaxCellsPerValue);
}

// A region of 9,000 values and one of 1,000 have given 100 values each.
TEST(ValueSampleTest, ARegionCountsAsMuchAsItHasValues) {
  const CellMap map =
      FitCellMap({SampleOf(0, 90, 100, 9000), SampleOf(1'000'000, 10, 100, 1000)}, 2, 16);
  const double share = static_cast<double>(map.CellOf(Encoded(500'000))) / map.cells();
  // A quarter more cells lie beyond the largest value.
  EXPECT_NEAR(share, 0.9 / 1.25, 0.05);
}

TEST(ValueSamplerTest, TheSmallestAndTheLargestValueAreAlwaysInTheSample) {
  for (const uint64_t count : {1, 2, 10, 11, 5000}) {
    ValueSampler sampler(10);
    for (uint64_t i = 0; i < count; ++i) sampler.Add(Encoded((count / 2 + i) % count));
    const ValueSample sample = std::move(sampler).Take();
    EXPECT_EQ(sample.distinct, count);
    ASSERT_EQ(sample.values.size(), std::min<uint64_t>(count, 10));
    EXPECT_EQ(sample.values.front(), Encoded(0));
    EXPECT_EQ(sample.values.back(), Encoded(count - 1));
    EXPECT_TRUE(std::ranges::is_sorted(sample.values));
    EXPECT_EQ(std::ranges::adjacent_find(sample.values), sample.values.end());
  }
  EXPECT_TRUE(ValueSampler(10).Take().values.empty());
}

// The largest value of all is in a region whose sample is thinned.
TEST(ValueSampleTest, SmallestAndLargestValuesOfRegionsAreWithinTheCells) {
  for (const bool thinned_is_larger : {false, true}) {
    ValueSample thinned = SampleOf(5'000'000, 10, 100, 100);
    ValueSample whole = SampleOf(6'000'000, 10, 100, 9000);
    thinned.values.front() = Encoded(1'000);
    thinned.values.back() = Encoded(thinned_is_larger ? 1'000'000'000 : 5'900'000);
    const CellMap map = FitCellMap({thinned, whole}, 2, 16);
    EXPECT_GT(map.CellOf(thinned.values.front()), 0);
    for (const ValueSample& sample : {thinned, whole}) {
      EXPECT_LT(map.CellOf(sample.values.back()), map.cells() - 1) << thinned_is_larger;
    }
  }
}

}  // namespace
}  // namespace tamis
