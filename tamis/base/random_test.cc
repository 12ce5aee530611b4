#include "tamis/base/random.h"

#include <gtest/gtest.h>

#include <array>

namespace tamis {
namespace {

TEST(RandomTest, SameSeedGivesTheSameNumbersForEver) {
  // Fixed here, since a seed that a test has printed must go on giving the same run.
  Random random(42);
  EXPECT_EQ(random(), 1546998764402558742u);
}

TEST(RandomTest, UniformFillsEveryBucketEvenly) {
  Random random(7);
  std::array<int, 16> buckets{};
  for (int i = 0; i < 160'000; ++i) ++buckets[random.Uniform(buckets.size())];
  for (int count : buckets) EXPECT_NEAR(count, 10'000, 5 * 97);  // five sigmas
}

}  // namespace
}  // namespace tamis
