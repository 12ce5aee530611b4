#include "tamis/base/growing_pause.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

using std::chrono::milliseconds;

TEST(GrowingPauseTest, DoublesUpToItsBoundAndBeginsAnewWhenReset) {
  GrowingPause pauses(milliseconds(20), milliseconds(100));
  for (const int64_t expected : {20, 40, 80, 100, 100}) {
    EXPECT_EQ(pauses.Next(), milliseconds(expected));
  }
  EXPECT_EQ(pauses.tries(), 5);
  pauses.Reset();
  EXPECT_EQ(pauses.Next(), milliseconds(20));
}

TEST(GrowingPauseTest, ManyTriesDoNotOverflow) {
  constexpr GrowingPause kPauses(milliseconds(1), std::chrono::hours(1));
  EXPECT_EQ(kPauses.At(1'000'000), std::chrono::hours(1));
  EXPECT_EQ(GrowingPause(milliseconds(9), milliseconds(5)).At(0), milliseconds(5));
}

}  // namespace
}  // namespace tamis
