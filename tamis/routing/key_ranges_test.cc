#include "tamis/routing/key_ranges.h"

#include <gtest/gtest.h>

#include <array>

#include "tamis/base/random.h"

namespace tamis {
namespace {

TEST(KeyRangesTest, TouchingRangesBecomeOne) {
  KeyRanges ranges = KeyRanges::Of({"a", "c"});
  ranges.Add({"c", "e"});
  ranges.Add({"g", ""});
  EXPECT_EQ(ranges.ranges(), (std::vector<KeyRange>{{"a", "e"}, {"g", ""}}));
  ranges.Add({"", "g"});
  EXPECT_EQ(ranges, KeyRanges::All());
}

TEST(KeyRangesTest, AllMinusItselfIsEmpty) {
  KeyRanges ranges = KeyRanges::All();
  ranges.Subtract({"m", ""});
  EXPECT_FALSE(ranges.empty());
  ranges.Subtract({"", "m"});
  EXPECT_TRUE(ranges.empty());
}

// Keys are the letters a..z; a bitmap is the model.
TEST(KeyRangesTest, RandomOperationsAgreeWithABitmap) {
  const uint64_t seed = 20260101;
  Random random(seed);
  auto random_range = [&]() -> KeyRange {
    const auto letter = [&] { return std::string(1, static_cast<char>('a' + random.Uniform(26))); };
    return {random.OneIn(8) ? "" : letter(), random.OneIn(8) ? "" : letter()};
  };
  for (int round = 0; round < 2000; ++round) {
    KeyRanges ranges, other;
    std::array<bool, 26> model{}, other_model{};
    for (int step = 0; step < 8; ++step) {
      const KeyRange range = random_range();
      const uint64_t action = random.Uniform(4);
      if (action == 0) ranges.Subtract(range);
      if (action == 1) ranges.Add(range);
      if (action == 2) other.Add(range);
      if (action == 3 && step > 4) ranges = ranges.Intersect(range);
      for (int i = 0; i < 26; ++i) {
        const bool in = range.Contains(std::string(1, static_cast<char>('a' + i)));
        if (action == 0 && in) model[i] = false;
        if (action == 1 && in) model[i] = true;
        if (action == 2 && in) other_model[i] = true;
        if (action == 3 && step > 4 && !in) model[i] = false;
      }
    }
    const KeyRange asked = random_range();
    ASSERT_EQ(ranges.Overlaps(asked), !ranges.Intersect(asked).empty()) << "round " << round;
    KeyRanges either = ranges;
    either.Add(other);
    KeyRanges difference = ranges;
    difference.Subtract(other);
    const KeyRanges both = ranges.Intersect(other);
    for (int i = 0; i < 26; ++i) {
      const std::string key(1, static_cast<char>('a' + i));
      ASSERT_EQ(ranges.Contains(key), model[i]) << "seed " << seed << " round " << round;
      ASSERT_EQ(either.Contains(key), model[i] || other_model[i]) << "round " << round;
      ASSERT_EQ(difference.Contains(key), model[i] && !other_model[i]) << "round " << round;
      ASSERT_EQ(both.Contains(key), model[i] && other_model[i]) << "round " << round;
    }
    for (const KeyRanges& set : {ranges, either}) {
      for (size_t i = 1; i < set.ranges().size(); ++i) {
        ASSERT_FALSE(set.ranges()[i - 1].end.empty());
        ASSERT_LT(set.ranges()[i - 1].end, set.ranges()[i].start) << "not merged";
      }
    }
  }
}

}  // namespace
}  // namespace tamis
