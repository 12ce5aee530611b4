#include "tamis/guard/key_repeats.h"

#include <gtest/gtest.h>

#include <string>

namespace tamis {
namespace {

double ShareOf(int different, int rounds) {
  KeyRepeats repeats;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < different; ++i) repeats.Add(std::to_string(i));
  }
  return repeats.Share();
}

TEST(KeyRepeatsTest, UniqueKeysHaveNone) {
  EXPECT_EQ(ShareOf(0, 1), 0);
  EXPECT_EQ(ShareOf(1000, 1), 0);
  EXPECT_EQ(ShareOf(1'000'000, 1), 0);
}

TEST(KeyRepeatsTest, RepeatsAreCounted) {
  EXPECT_EQ(ShareOf(1, 100), 0.99);
  EXPECT_EQ(ShareOf(1000, 4), 0.75);
  EXPECT_NEAR(ShareOf(300'000, 4), 0.75, 0.001);
}

}  // namespace
}  // namespace tamis
