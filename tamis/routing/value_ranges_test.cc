#include "tamis/routing/value_ranges.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tamis/base/random.h"

namespace tamis {
namespace {

std::string RandomValue(Random* random) {
  // Values share prefixes, and often all of the bytes that are compared first.
  std::string value(random->Uniform(4) == 0 ? "pre" : "prefix");
  for (uint64_t i = random->Uniform(11); i > 0; --i) {
    value.push_back(static_cast<char>('a' + random->Uniform(2)));
  }
  return value;
}

TEST(ValueRangesTest, AnswersAreThoseOfComparingWholeValues) {
  Random random(7);
  constexpr uint32_t kSlots = 100;
  struct Range {
    bool known = false;
    std::string min, max;
  };
  ValueRanges ranges;
  std::vector<Range> expected(kSlots);
  const RegionBits all(kSlots, true);
  for (uint32_t slot = 0; slot < kSlots; ++slot) ranges.Reserve(slot);
  for (int round = 0; round < 2000; ++round) {
    const auto slot = static_cast<uint32_t>(random.Uniform(kSlots));
    if (random.Uniform(5) == 0) {
      ranges.Clear(slot);
      expected[slot] = {};
    } else {
      std::string a = RandomValue(&random), b = RandomValue(&random);
      if (b < a) std::swap(a, b);
      (void)ranges.Set(slot, true, a, b);
      expected[slot] = {true, a, b};
    }
    const std::string low = RandomValue(&random);
    const std::string high = random.Uniform(4) == 0 ? "" : RandomValue(&random);
    RegionBits cover(128), within(128);
    ranges.AddThoseThatCover(low, &cover);
    ranges.AddThoseWithin(low, high, all, &within);
    for (uint32_t i = 0; i < kSlots; ++i) {
      const Range& range = expected[i];
      EXPECT_EQ(cover.Get(i), range.known && range.min <= low && low <= range.max);
      if (!high.empty() && high <= low) continue;  // no value lies there
      EXPECT_EQ(within.Get(i),
                range.known && range.max >= low && (high.empty() || range.min < high))
          << i << " " << range.min << " " << range.max << " in " << low << " " << high;
      EXPECT_EQ(ranges.EndOf(i, false), range.known ? std::optional(range.min) : std::nullopt);
      EXPECT_EQ(ranges.EndOf(i, true), range.known ? std::optional(range.max) : std::nullopt);
    }
  }
}

}  // namespace
}  // namespace tamis
