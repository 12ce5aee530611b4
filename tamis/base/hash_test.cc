#include "tamis/base/hash.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <string>
#include <vector>

#include "tamis/base/random.h"

namespace tamis {
namespace {

TEST(HashTest, SeedChangesEveryHash) {
  EXPECT_NE(Hash("a", 1), Hash("a", 2));
  EXPECT_NE(Hash("a", 1), Hash("b", 1));
  // XXH3-64 of the empty string with seed 0, as published with the algorithm.
  EXPECT_EQ(Hash("", 0), 0x2d06800538d394c2u);
}

TEST(HashTest, IsThatOfTheXxHashLibrary) {
  Random random(1);
  std::string bytes;
  for (size_t size = 0; size < 1100; ++size) {
    for (const uint64_t seed : {uint64_t{0}, random()}) {
      EXPECT_EQ(Hash(bytes, seed), XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed));
    }
    bytes.push_back(static_cast<char>(random()));
  }
}

TEST(HashTest, PiecesHashAsAlone) {
  Random random(2);
  for (const size_t count : {0, 1, 2, 255, 256, 257, 512, 1000}) {
    for (const uint64_t longest : {3, 8, 9, 16, 17, 20, 300}) {
      std::string text;
      std::vector<uint32_t> starts{0};
      std::vector<uint64_t> expected;
      for (size_t i = 0; i < count; ++i) {
        std::string piece(random.Uniform(longest + 1), 0);
        for (char& c : piece) c = static_cast<char>(random());
        text += piece + "|";
        starts.push_back(static_cast<uint32_t>(text.size()));
        expected.push_back(Hash(piece, 5));
      }
      std::vector<uint64_t> hashes(count);
      HashPieces(text.data(), starts, 5, hashes);
      EXPECT_EQ(hashes, expected) << count << " of up to " << longest;
    }
  }
}

}  // namespace
}  // namespace tamis
