#include "tamis/table/value_sample.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tamis
