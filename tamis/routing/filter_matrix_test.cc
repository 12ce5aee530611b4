#include "tamis/routing/filter_matrix.h"

#include <gtest/gtest.h>

#include <map>

#include "tamis/base/random.h"
#include "tamis/filter/scalable_split_counting_bloom_filter.h"
#include "tamis/filter/testing/targets.h"
#include "tamis/routing/and_rows.h"
#include "tamis/routing/transpose_bits.h"
#include "tamis/routing/within.h"

namespace tamis {
namespace {

bool TestColumn(const std::vector<uint64_t>& columns, uint32_t column) {
  return columns[column / 64] >> (column % 64) & 1;
}

std::vector<uint64_t> RandomProjection(const SplitGeometry& geometry, Random* random) {
  std::vector<uint64_t> bits((geometry.positions() + 63) / 64);
  for (uint64_t& word : bits) word = (*random)();
  if (geometry.positions() % 64 != 0) {
    bits.back() &= (uint64_t{1} << (geometry.positions() % 64)) - 1;
  }
  return bits;
}

TEST(FilterMatrixTest, AnEmptyMatrixAnswersWithNothing) {
  FilterMatrix matrix(SplitGeometry{3, 10});
  std::vector<uint64_t> columns = {1, 2, 3};
  matrix.Probe(7, &columns);
  EXPECT_TRUE(columns.empty());
  EXPECT_EQ(matrix.columns(), 0u);
  EXPECT_EQ(matrix.SizeBytes(), 0u);
}

TEST(FilterMatrixTest, ColumnsAreGivenInOrderAndFreedOnesAgain) {
  FilterMatrix matrix(SplitGeometry{2, 5});
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(matrix.Allocate(), i);
  matrix.Set(77, 3, true);
  matrix.Free(77);
  EXPECT_EQ(matrix.columns_in_use(), 999u);
  EXPECT_EQ(matrix.Allocate(), 77u);
  const FilterMatrix::Filling zeros(77, std::string_view());
  matrix.Load(std::span(&zeros, 1));
  EXPECT_FALSE(matrix.Get(77, 3));
  EXPECT_EQ(matrix.Allocate(), 1000u);
}

// Filters of the same values with fewer slices.
TEST(FilterMatrixTest, ColumnsThatKeepFewerSlicesAnswerAsFiltersOfSoManySlices) {
  constexpr SplitGeometry kAll{5, 700};
  Random random(3);
  FilterMatrix matrix(kAll);
  std::vector<std::vector<uint64_t>> filters;
  const auto add = [&] {
    filters.push_back(RandomProjection(kAll, &random));
    matrix.Load(matrix.Allocate(), filters.back());
  };
  for (int i = 0; i < 700; ++i) add();
  for (uint32_t slices = 5; slices >= 1; --slices) {
    const size_t before = matrix.SizeBytes();
    matrix.KeepSlices(slices).clear();
    EXPECT_EQ(matrix.SizeBytes(), before / (slices + (slices < 5)) * slices);
    for (int i = 0; i < 200; ++i) add();  // whole filters, of which the first slices are kept
    const SplitGeometry kept{slices, kAll.slice_positions};
    ASSERT_EQ(matrix.geometry(), kept);
    for (int probe = 0; probe < 20; ++probe) {
      const uint64_t hash = random();
      std::vector<uint64_t> columns;
      matrix.Probe(hash, &columns);
      for (uint32_t column = 0; column < filters.size(); ++column) {
        bool match = true;
        for (uint32_t slice = 0; slice < slices; ++slice) {
          const uint64_t position = kAll.Position(hash, slice);
          match &= (filters[column][position / 64] >> (position % 64) & 1) != 0;
        }
        ASSERT_EQ(TestColumn(columns, column), match) << slices << " slices, column " << column;
      }
    }
  }
}

TEST(FilterMatrixTest, UnusedColumnsAreFewerThanAnEighthOfTheUsedOnesOrThanOneLargeBlock) {
  FilterMatrix matrix(SplitGeometry{1, 2});
  for (size_t used = 1; used <= 30000; ++used) {
    matrix.Allocate();
    ASSERT_LT(matrix.columns() - used, std::clamp<size_t>(used / 8, 64, 4096)) << used;
  }
}

TEST(FilterMatrixTest, ReserveMakesAllColumnsThatWereAskedForAndFewMore) {
  for (const size_t wanted : {1, 64, 65, 4096, 5000, 10000}) {
    FilterMatrix matrix(SplitGeometry{1, 2});
    matrix.Allocate();
    matrix.Reserve(wanted);
    EXPECT_GE(matrix.columns(), wanted);
    EXPECT_LT(matrix.columns(), wanted + 64);
    EXPECT_EQ(matrix.Allocate(), 1u);
  }
}

TEST(FilterMatrixTest, LoadedColumnsReadBackAndReplaceWhatWasThere) {
  Random random(1);
  for (const SplitGeometry geometry :
       {SplitGeometry{1, 1}, SplitGeometry{3, 64}, SplitGeometry{5, 77}, SplitGeometry{7, 191}}) {
    FilterMatrix matrix(geometry);
    std::map<uint32_t, std::vector<uint64_t>> model;
    for (int i = 0; i < 700; ++i) model[matrix.Allocate()] = {};
    for (int round = 0; round < 3; ++round) {
      std::vector<FilterMatrix::Filling> fillings;
      for (auto& [column, bits] : model) {
        if (round > 0 && random.OneIn(3)) continue;
        bits = RandomProjection(geometry, &random);
        if (random.OneIn(10)) {
          matrix.Load(column, bits);
        } else {
          fillings.push_back({column, bits});
        }
      }
      for (size_t i = fillings.size(); i > 1; --i) {
        std::swap(fillings[i - 1], fillings[random.Uniform(i)]);
      }
      matrix.Load(fillings);
      for (const auto& [column, bits] : model) {
        for (uint64_t p = 0; p < geometry.positions(); ++p) {
          ASSERT_EQ(matrix.Get(column, p), bits[p / 64] >> (p % 64) & 1) << column << " " << p;
        }
      }
    }
  }
}

TEST(FilterMatrixTest, LoadedInPiecesIsLoaded) {
  Random random(4);
  const SplitGeometry geometry{7, 191};
  FilterMatrix whole(geometry), pieces(geometry);
  std::vector<FilterMatrix::Filling> fillings;
  std::vector<std::vector<uint64_t>> projections;
  for (int i = 0; i < 100; ++i) projections.push_back(RandomProjection(geometry, &random));
  for (const auto& projection : projections) {
    fillings.emplace_back(whole.Allocate(), projection);
    ASSERT_EQ(pieces.Allocate(), fillings.back().column);
  }
  whole.Load(fillings);
  for (uint64_t first = 0; first < geometry.positions(); first += 128) {
    pieces.Load(fillings, first, first + 128);
  }
  for (const auto& filling : fillings) {
    for (uint64_t p = 0; p < geometry.positions(); ++p) {
      ASSERT_EQ(whole.Get(filling.column, p), pieces.Get(filling.column, p));
    }
  }
}

TEST(FilterMatrixTest, GrowthBytesIsTheLaterGrowth) {
  Random random(5);
  FilterMatrix matrix(SplitGeometry{3, 64});
  for (int i = 0; i < 200; ++i) {
    const size_t columns = random.Uniform(300);
    const size_t before = matrix.SizeBytes();
    const size_t growth = matrix.GrowthBytes(columns);
    std::vector<FilterMatrix::Column> given;
    for (size_t j = 0; j < columns; ++j) given.push_back(matrix.Allocate());
    ASSERT_EQ(matrix.SizeBytes(), before + growth);
    for (const auto column : given) {
      if (random.OneIn(3)) matrix.Free(column);
    }
  }
}

// Scalable filters change and send their flips; the matrix must answer as they do, one by one.
TEST(FilterMatrixTest, AnswersAsTheFiltersDoWhileTheyChange) {
  Random random(2);
  const auto geometry = SplitGeometry::For(0.05, 40);
  FilterMatrix matrix(geometry);
  struct Region {
    ScalableSplitCountingBloomFilter filter;
    std::vector<FilterMatrix::Column> columns;
    std::vector<uint64_t> held;
  };
  std::vector<Region> regions;
  std::vector<uint64_t> answer;
  uint64_t matches = 0;
  uint64_t freed = 0;
  const auto zeros = [&matrix] {
    const FilterMatrix::Filling filling(matrix.Allocate(), std::string_view());
    matrix.Load(std::span(&filling, 1));
    return filling.column;
  };
  for (int step = 0; step < 60000; ++step) {
    if (regions.size() < 10 || (regions.size() < 400 && random.OneIn(50))) {
      regions.push_back({ScalableSplitCountingBloomFilter(geometry), {zeros()}, {}});
    }
    const size_t r = random.Uniform(regions.size());
    Region& region = regions[r];
    const auto on_flip = [&](uint32_t layer, uint64_t position, bool set) {
      while (region.columns.size() <= layer) region.columns.push_back(zeros());
      ASSERT_NE(matrix.Get(region.columns[layer], position), set);
      matrix.Set(region.columns[layer], position, set);
    };
    if (random.OneIn(300)) {  // it closes
      for (const auto column : region.columns) matrix.Free(column);
      freed += region.columns.size();
      std::swap(region, regions.back());
      regions.pop_back();
    } else if (random.OneIn(100)) {  // its projections are fetched again
      for (uint32_t i = 0; i < region.columns.size(); ++i) {
        matrix.Load(region.columns[i], region.filter.Projection(i));
      }
    } else if (region.held.empty() || !random.OneIn(3)) {
      region.held.push_back(Mix(random.Uniform(2000)));
      region.filter.Insert(region.held.back(), on_flip);
    } else {
      std::swap(region.held[random.Uniform(region.held.size())], region.held.back());
      region.filter.Erase(region.held.back(), on_flip);
      region.held.pop_back();
    }
    if (step % 20 != 0) continue;
    const uint64_t hash = Mix(random.Uniform(4000));
    matrix.Probe(hash, &answer);
    ASSERT_EQ(answer.size() * 64, matrix.columns());
    uint64_t bits = 0;
    for (const Region& other : regions) {
      for (uint32_t i = 0; i < other.columns.size(); ++i) {
        const bool expected = other.filter.layer(i).MayContain(hash);
        ASSERT_EQ(TestColumn(answer, other.columns[i]), expected);
        bits += expected;
      }
    }
    matches += bits;
  }
  EXPECT_GT(matches, 10000u);
  EXPECT_GT(freed, 100u);
}

TEST(FilterMatrixTest, ABatchIsAnsweredAsItsHashesOneByOneAndScalarAsVector) {
  Random random(3);
  for (const size_t count : {1, 64, 65, 200, 700, 9000}) {
    const SplitGeometry geometry{6, 13};
    FilterMatrix matrix(geometry);
    std::vector<std::vector<uint64_t>> projections;
    std::vector<FilterMatrix::Filling> fillings;
    for (size_t i = 0; i < count; ++i) {
      projections.push_back(RandomProjection(geometry, &random));
      fillings.push_back({matrix.Allocate(), projections.back()});
    }
    matrix.Load(fillings);
    std::vector<uint64_t> hashes(37);
    for (uint64_t& hash : hashes) hash = random();
    std::vector<uint64_t> batch;
    matrix.Probe(hashes, &batch);
    const size_t words = matrix.columns() / 64;
    ASSERT_EQ(batch.size(), hashes.size() * words);
    std::vector<uint64_t> one;
    for (const bool scalar : {false, true}) {
      matrix.set_scalar_for_test(scalar);
      for (size_t i = 0; i < hashes.size(); ++i) {
        matrix.Probe(hashes[i], &one);
        EXPECT_EQ(
            one, std::vector<uint64_t>(batch.begin() + i * words, batch.begin() + (i + 1) * words));
      }
    }
    matrix.Probe(std::span<const uint64_t>(), &batch);
    EXPECT_TRUE(batch.empty());
  }
}

TEST(AndRowsTest, EveryTargetGivesTheBitsOfTheScalarLoop) {
  Random random(4);
  std::vector<std::vector<uint64_t>> rows(10, std::vector<uint64_t>(70));
  for (auto& row : rows) {
    for (uint64_t& word : row) word = random() | random();
  }
  ForEachTarget([&] {
    for (size_t count = 1; count <= rows.size(); ++count) {
      for (size_t words = 0; words + 3 <= 70; ++words) {
        std::vector<const uint64_t*> pointers;
        for (size_t r = 0; r < count; ++r) pointers.push_back(rows[r].data() + r % 3);
        std::vector<uint64_t> vector(words + 1, 42);
        std::vector<uint64_t> scalar(words + 1, 42);
        AndRows(pointers.data(), count, words, vector.data());
        AndRowsScalar(pointers.data(), count, words, scalar.data());
        ASSERT_EQ(vector, scalar) << count << " " << words;
      }
    }
  });
}

TEST(TransposeBitsTest, EveryTargetTurnsEachSquare) {
  Random random(5);
  BitSquares squares;
  for (auto& line : squares.lines) {
    for (uint64_t& word : line) word = random();
  }
  ForEachTarget([&] {
    BitSquares turned = squares;
    TransposeBits(&turned);
    for (size_t s = 0; s < BitSquares::kSquares; ++s) {
      for (size_t i = 0; i < BitSquares::kSide; ++i) {
        for (size_t j = 0; j < BitSquares::kSide; ++j) {
          ASSERT_EQ(turned.lines[i][s] >> j & 1, squares.lines[j][s] >> i & 1) << s;
        }
      }
    }
  });
}

TEST(FindWithinTest, EveryTargetGivesTheBitsOfTheScalarLoop) {
  Random random(6);
  constexpr size_t kWords = 5;
  std::vector<uint64_t> least(64 * kWords), most(64 * kWords);
  const auto number = [&] {
    return random.OneIn(8) ? 0 - random.Uniform(2) : random.Uniform(20) << random.Uniform(60);
  };
  ForEachTarget([&] {
    for (int round = 0; round < 200; ++round) {
      for (uint64_t& x : least) x = number();
      for (uint64_t& x : most) x = number();
      const uint64_t low = number(), high = number();
      std::vector<uint64_t> inside(kWords), edge(kWords), scalar_inside(kWords),
          scalar_edge(kWords);
      FindWithin(least.data(), most.data(), kWords, low, high, inside.data(), edge.data());
      FindWithinScalar(least.data(), most.data(), kWords, low, high, scalar_inside.data(),
                       scalar_edge.data());
      ASSERT_EQ(inside, scalar_inside);
      ASSERT_EQ(edge, scalar_edge);
    }
  });
}

}  // namespace
}  // namespace tamis
