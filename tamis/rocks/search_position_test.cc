#include "tamis/rocks/search_position.h"

#include <gtest/gtest.h>

#include "tamis/base/random.h"

namespace tamis {
namespace {

TEST(SearchPositionTest, WhatIsSerializedIsParsed) {
  Random random(3);
  for (int i = 0; i < 2000; ++i) {
    SearchPosition position{.branch = random() >> random.Uniform(64)};
    if (random.OneIn(2)) position.order = SearchPosition::Order::kEntry;
    for (uint64_t n = random.Uniform(40); n > 0; --n) {
      position.last.push_back(static_cast<char>(random.Uniform(256)));
    }
    const auto parsed = SearchPosition::Parse(position.Serialize());
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->branch, position.branch);
    EXPECT_EQ(parsed->order, position.order);
    EXPECT_EQ(parsed->last, position.last);
  }
}

TEST(SearchPositionTest, NoBytesAreEmpty) {
  // An empty continuation says that nothing follows.
  EXPECT_FALSE(SearchPosition{}.Serialize().empty());
}

TEST(SearchPositionTest, DamagedBytesAreRefused) {
  EXPECT_FALSE(SearchPosition::Parse("").has_value());
  EXPECT_FALSE(SearchPosition::Parse(std::string(1, '\0')).has_value());  // no order
  const std::string unknown_order = {0, 7};
  EXPECT_FALSE(SearchPosition::Parse(unknown_order).has_value());
  EXPECT_FALSE(SearchPosition::Parse(std::string(11, '\xff')).has_value());
}

TEST(SearchPositionTest, AnyBytesGiveAPositionOrNothing) {
  Random random(4);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes;
    for (uint64_t n = random.Uniform(16); n > 0; --n) {
      bytes.push_back(static_cast<char>(random.Uniform(256)));
    }
    const auto parsed = SearchPosition::Parse(bytes);
    if (!parsed.has_value()) continue;
    EXPECT_EQ(SearchPosition::Parse(parsed->Serialize())->last, parsed->last);
  }
}

}  // namespace
}  // namespace tamis
