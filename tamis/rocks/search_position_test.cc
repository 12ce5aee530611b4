#include "tamis/rocks/search_position.h"

#include <gtest/gtest.h>

#include "tamis/base/random.h"

namespace tamis {
namespace {

using Order = SearchPosition::Order;
using std::string_literals::operator""s;

TEST(SearchPositionTest, BytesAreAsDocumented) {
  for (const auto& [position, bytes] :
       {std::pair(SearchPosition{}, "\x02\x00\x00\x00"s),
        {{.branch = 300, .order = Order::kRowKey, .last = "k\0y"s}, "\x02\xac\x02\x00\x00k\0y"s},
        {{.branch = 1, .order = Order::kEntry, .index_id = 200, .last = "\xff"s},
         "\x02\x01\x01\xc8\x01\xff"s}}) {
    EXPECT_EQ(position.Serialize(), bytes);
    EXPECT_EQ(SearchPosition::Parse(bytes), position);
  }
}

TEST(SearchPositionTest, ParseReadsWhatSerializeWrites) {
  Random random(3);
  for (int i = 0; i < 2000; ++i) {
    SearchPosition position{.branch = random() >> random.Uniform(64)};
    if (random.OneIn(2)) position.order = Order::kEntry;
    position.index_id = static_cast<uint32_t>(random() >> (32 + random.Uniform(32)));
    for (uint64_t n = random.Uniform(40); n > 0; --n) {
      position.last.push_back(static_cast<char>(random.Uniform(256)));
    }
    EXPECT_EQ(SearchPosition::Parse(position.Serialize()), position);
  }
}

TEST(SearchPositionTest, NoBytesAreEmpty) {
  // An empty continuation says that nothing follows.
  EXPECT_FALSE(SearchPosition{}.Serialize().empty());
}

TEST(SearchPositionTest, DamagedBytesAndOtherVersionsAreRefused) {
  for (const std::string& bytes :
       {""s, "\x02"s, "\x02\x00"s, "\x02\x00\x01"s, "\x01\x00\x00\x00"s, "\x02\x00\x04\x00"s,
        "\x02\xff"s, "\x02\xff\xff\xff\xff\xff\xff"s, "\x02\x00\x01\x80\x80\x80\x80\x10"s}) {
    EXPECT_FALSE(SearchPosition::Parse(bytes).has_value());
  }
}

TEST(SearchPositionTest, AnyBytesGiveAPositionThatReadsAsItWasWrittenOrNone) {
  const uint64_t seed = SeedFromSystem();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes;
    for (uint64_t n = random.Uniform(16); n > 0; --n) {
      bytes.push_back(static_cast<char>(random.OneIn(3) ? random.Uniform(3) : random.Uniform(256)));
    }
    const auto position = SearchPosition::Parse(bytes);
    if (position.has_value()) {
      EXPECT_EQ(SearchPosition::Parse(position->Serialize()), position);
    }
  }
}

}  // namespace
}  // namespace tamis
