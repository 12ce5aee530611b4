#include "tamis/filter/cell_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tamis {
namespace {

CellSet RandomSet(uint32_t cells, uint32_t one_in, std::mt19937_64* random) {
  CellSet set(cells);
  for (uint32_t cell = 0; cell < cells; ++cell) {
    if ((*random)() % one_in == 0) set.Insert(cell);
  }
  return set;
}

TEST(CellSetTest, PartsPutTogetherAreTheSet) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    const CellSet set = RandomSet(random() % 3000, 1 + random() % 300, &random);
    CellSet copy(set.cells());
    const size_t max_bytes = 1 + random() % 100;
    uint32_t first = 0;
    do {
      uint32_t end = 0;
      const std::string bytes = set.Encode(first, max_bytes, &end);
      ASSERT_TRUE(end > first || set.cells() == 0);
      ASSERT_LE(bytes.size(), max_bytes + 16 + (end - first) / 8);
      ASSERT_TRUE(copy.Decode(bytes, first, end));
      first = end;
    } while (first < set.cells());
    ASSERT_EQ(copy, set);
    ASSERT_EQ(copy.count(), set.count());
  }
}

TEST(CellSetTest, AnyBytesAreSafe) {
  std::mt19937_64 random(6);
  const CellSet set = RandomSet(1000, 16, &random);
  uint32_t end = 0;
  const std::string bytes = set.Encode(0, 1 << 20, &end);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = bytes.substr(0, random() % 2 == 0 ? bytes.size() : random() % 20);
    for (size_t i = random() % 3; i > 0 && !damaged.empty(); --i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    CellSet copy(1000);
    const auto first = static_cast<uint32_t>(random() % 1200);
    if (!copy.Decode(damaged, first, static_cast<uint32_t>(random() % 1200))) {
      EXPECT_TRUE(copy.empty());
    } else {
      EXPECT_GE(copy.Next(0), std::min(first, copy.cells()));
    }
  }
}

// The figures of docs/FORMATS.md#cell-sets.
TEST(CellSetTest, BytesForEachCellThatIsSet) {
  std::mt19937_64 random(7);
  for (const auto& [one_in, bits] : {std::pair<uint32_t, double>{16, 5.7}, {256, 9.7}}) {
    const CellSet set = RandomSet(400'000, one_in, &random);
    uint32_t end = 0;
    const auto size = static_cast<double>(set.Encode(0, 1 << 20, &end).size() * 8);
    EXPECT_LE(size / set.count(), bits) << "one in " << one_in;
  }
}

}  // namespace
}  // namespace tamis
