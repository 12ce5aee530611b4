#include "tamis/table/cell_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tamis/base/coding.h"

namespace tamis {
namespace {

std::string Number(uint64_t n) {
  std::string bytes("\x05");
  PutBig64(&bytes, n);
  return bytes;
}

// Strings of a few letters, so that common prefixes, zeros and prefixes of one another occur.
std::string RandomText(std::mt19937_64* random, size_t max_size) {
  std::string text;
  for (size_t size = (*random)() % (max_size + 1); text.size() < size;) {
    text.push_back("\0\1a\xff"[(*random)() % 4]);
  }
  return text;
}

CellMap RandomMap(std::mt19937_64* random) {
  const auto kind = (*random)() % 3;
  std::vector<std::string> sample;
  for (size_t i = 0, n = (*random)() % 300; i < n; ++i) {
    const uint64_t number = (*random)() >> (*random)() % 64;
    sample.push_back(kind == 0 ? Number(number) : RandomText(random, kind == 1 ? 4 : 14));
  }
  std::ranges::sort(sample);
  return CellMap::Fit(sample, {.cells = static_cast<uint32_t>(1 + (*random)() % 5000),
                               .knots = 2 + (*random)() % 40});
}

std::string RandomValue(const CellMap& map, std::mt19937_64* random) {
  std::string value = (*random)() % 2 == 0 || map.knots().empty()
                          ? RandomText(random, 14)
                          : map.knots()[(*random)() % map.knots().size()].value;
  if ((*random)() % 2 == 0) value += RandomText(random, 3);
  if ((*random)() % 3 == 0) value = Number((*random)() >> (*random)() % 64);
  if ((*random)() % 4 == 0 && !value.empty()) ++value.back();
  return value;
}

TEST(CellMapTest, IsMonotoneAndItsInverseIsALowerBound) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    const CellMap map = RandomMap(&random);
    std::vector<std::string> values;
    for (int i = 0; i < 60; ++i) values.push_back(RandomValue(map, &random));
    std::ranges::sort(values);
    uint32_t before = 0;
    for (const std::string& value : values) {
      const uint32_t cell = map.CellOf(value);
      ASSERT_GE(cell, before) << "round " << round;
      ASSERT_LT(cell, map.cells());
      before = cell;
      ASSERT_LE(map.LowestOf(cell), value) << "round " << round << " cell " << cell;
      if (cell > 0) {
        ASSERT_LE(map.LowestOf(cell - 1), map.LowestOf(cell));
      }
    }
  }
}

// A seek from LowestOf finds the values of the cell at once, or a clearer would give up.
TEST(CellMapTest, FewValuesBetweenTheInverseAndTheCell) {
  std::mt19937_64 random(2);
  std::vector<std::string> sample;
  for (int i = 0; i < 20'000; ++i) sample.push_back(Number((random() >> 34) * (random() >> 34)));
  std::ranges::sort(sample);
  const CellMap map = CellMap::Fit(sample, {.cells = 320'000, .knots = 2048});
  uint64_t skipped = 0;
  for (const std::string& value : sample) {
    const std::string lowest = map.LowestOf(map.CellOf(value));
    for (auto at = std::ranges::lower_bound(sample, lowest);
         at != sample.end() && map.CellOf(*at) < map.CellOf(value); ++at) {
      ++skipped;
    }
  }
  EXPECT_LE(skipped, sample.size() / 100);
}

TEST(CellMapTest, CellsHoldAboutEquallyManyValuesHoweverTheyCluster) {
  std::mt19937_64 random(3);
  std::vector<std::string> sample;
  for (int i = 0; i < 100'000; ++i) sample.push_back(Number(random() >> random() % 64));
  std::ranges::sort(sample);
  sample.erase(std::unique(sample.begin(), sample.end()), sample.end());
  const CellMap map = CellMap::Fit(sample, {.cells = 1000, .knots = 500});
  std::vector<size_t> held(map.cells());
  for (const std::string& value : sample) ++held[map.CellOf(value)];
  EXPECT_LE(*std::ranges::max_element(held), 2 * sample.size() / 1000);
}

TEST(CellMapTest, GoesOnBeyondTheLastKnotWithTheLastSlope) {
  std::vector<std::string> sample;
  for (uint64_t i = 0; i < 10'000; ++i) sample.push_back(Number((1ull << 40) + i * 1000));
  const CellMap map = CellMap::Fit(sample, {.cells = 10'000, .knots = 100});
  const uint32_t last = map.CellOf(sample.back());
  // A fifth as many values more get cells of their own, across a carry too.
  uint32_t before = last;
  for (uint64_t i = 10'010; i < 12'000; i += 10) {
    const uint32_t cell = map.CellOf(Number((1ull << 40) + i * 1000));
    EXPECT_GE(cell, before + 9);
    EXPECT_LE(cell, before + 11 + (i == 10'010 ? 1 : 0));
    before = cell;
  }
  EXPECT_EQ(map.CellOf(Number(~uint64_t{0})), map.cells() - 1);
  EXPECT_EQ(map.CellOf("\x06"), map.cells() - 1);
  EXPECT_EQ(map.CellOf("\x04"), 0u);
}

TEST(CellMapTest, BytesGiveTheSameMapAndVersion) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 300; ++round) {
    const CellMap map = RandomMap(&random);
    const std::string bytes = map.Serialize();
    const auto read = CellMap::Deserialize(bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, map);
    EXPECT_EQ(read->version(), map.version());
    std::string damaged = bytes;
    damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    const auto other = CellMap::Deserialize(damaged);
    if (other.ok()) {
      EXPECT_NE(other->version(), map.version());
      EXPECT_EQ(other->Serialize(), damaged);
    }
    EXPECT_FALSE(CellMap::Deserialize(bytes + '\0').ok());
  }
}

TEST(CellMapTest, FindsKnotsWhoseNextEightBytesAreEqual) {
  const std::string_view zeros("\0\0\0\0\0\0\0\0\0", 9);
  const std::vector<std::string> values = {"pre",
                                           "pre" + std::string(zeros.substr(0, 3)),
                                           "pre" + std::string(zeros),
                                           "pre12345678",
                                           "pre12345678a",
                                           "pre12345678b",
                                           "prez"};
  std::vector<CellMap::Knot> knots;
  for (const std::string& value : values) {
    knots.push_back({value, static_cast<uint32_t>(10 * (knots.size() + 1))});
  }
  const CellMap map = *CellMap::Create(knots, 100);
  for (const CellMap::Knot& knot : knots) EXPECT_EQ(map.CellOf(knot.value), knot.cell);
  const uint32_t between = map.CellOf("pre12345678aa");
  EXPECT_GE(between, 50);
  EXPECT_LT(between, 60);
  for (const char* below : {"", "p", "pr", "pqzz"}) EXPECT_EQ(map.CellOf(below), 0) << below;
  EXPECT_EQ(map.CellOf("ps"), 99);
}

TEST(CellMapTest, RefusesKnotsThatDoNotRise) {
  EXPECT_TRUE(CellMap::Create({{"a", 1}, {"b", 2}}, 3).ok());
  EXPECT_FALSE(CellMap::Create({{"a", 1}, {"b", 2}}, 2).ok());
  EXPECT_FALSE(CellMap::Create({{"a", 0}}, 2).ok());
  EXPECT_FALSE(CellMap::Create({{"a", 1}, {"a", 2}}, 4).ok());
  EXPECT_FALSE(CellMap::Create({{"b", 1}, {"a", 2}}, 4).ok());
  EXPECT_FALSE(CellMap::Create({{"a", 2}, {"b", 2}}, 4).ok());
  EXPECT_FALSE(CellMap::Create({}, 0).ok());
  EXPECT_FALSE(CellMap::Create({}, CellMap::kMaxCells + 1).ok());
}

}  // namespace
}  // namespace tamis
