#include "tamis/filter/split_geometry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tamis/base/random.h"
#include "tamis/filter/fpr.h"

namespace tamis {
namespace {

TEST(SplitGeometryTest, SlicesAndCapacitiesAreThoseOfTheSourcesTable) {
  struct Row {
    double fpr;
    uint32_t slices;
    uint32_t slice_positions;
  };
  for (const Row& row :
       {Row{1e-3, 10, 36864}, Row{1e-4, 14, 26331}, Row{1e-5, 17, 21684}, Row{1e-6, 20, 18432}}) {
    const SplitGeometry wanted{row.slices, row.slice_positions};
    EXPECT_NEAR(static_cast<double>(wanted.Capacity()), row.slice_positions * std::log(2.0), 2);
    const auto made = SplitGeometry::For(row.fpr, wanted.Capacity());
    EXPECT_EQ(made.slices, row.slices);
    EXPECT_NEAR(made.slice_positions, row.slice_positions, 1);  // both hold as many whole keys
  }
}

TEST(SplitGeometryTest, ForKeepsTheRateForAnyCapacity) {
  for (uint64_t capacity = 1; capacity < 3'000'000; capacity += capacity / 3 + 1) {
    for (const double fpr : {0.5, 0.1, 0.01, 1e-3, 1e-6}) {
      const auto g = SplitGeometry::For(fpr, capacity);
      EXPECT_LE(fpr::Split(g.slice_positions, static_cast<double>(capacity), g.slices),
                fpr * (1 + 1e-6));
      EXPECT_GE(g.Capacity(), capacity);
      EXPECT_LE(g.Capacity(), capacity + 1);
    }
  }
}

TEST(SplitGeometryTest, ForTakesAnyArguments) {
  for (const double fpr :
       {0.0, -1.0, 1.0, 1e9, 1e-300, std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (const uint64_t capacity : {uint64_t{0}, ~uint64_t{0}}) {
      const auto geometry = SplitGeometry::For(fpr, capacity);
      EXPECT_TRUE(geometry.IsValid()) << fpr << " " << capacity;
      EXPECT_GE(geometry.slice_positions, 2u);
    }
  }
}

TEST(SplitGeometryTest, PositionsStayInTheirSlice) {
  Random random(3);
  for (const SplitGeometry geometry :
       {SplitGeometry{1, 1}, SplitGeometry{7, 3}, SplitGeometry{32, UINT32_MAX}}) {
    for (int i = 0; i < 1000; ++i) {
      const uint64_t hash = i == 0 ? 0 : random();
      for (uint32_t s = 0; s < geometry.slices; ++s) {
        EXPECT_LT(geometry.Offset(hash, s), geometry.slice_positions);
        EXPECT_EQ(geometry.Position(hash, s) / geometry.slice_positions, s);
      }
    }
  }
}

// Other programs compute the same positions from the same hash: these never change.
TEST(SplitGeometryTest, OffsetsAreFixed) {
  const SplitGeometry geometry{10, 14428};
  std::vector<uint32_t> offsets;
  for (uint32_t s = 0; s < 10; ++s) offsets.push_back(geometry.Offset(0x0123456789abcdef, s));
  EXPECT_EQ(offsets,
            (std::vector<uint32_t>{1210, 12029, 2680, 9176, 70, 1168, 10425, 7732, 14062, 2170}));
}

}  // namespace
}  // namespace tamis
