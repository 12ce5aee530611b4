#include "tamis/base/backoff.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

using std::chrono::milliseconds;

TEST(BackoffTest, DoublesUpToItsBoundAndBeginsAnewWhenReset) {
  Backoff pauses(milliseconds(20), milliseconds(100));
  for (const int64_t expected : {20, 40, 80, 100, 100}) {
    EXPECT_EQ(pauses.Next(), milliseconds(expected));
  }
  EXPECT_EQ(pauses.tries(), 5);
  pauses.Reset();
  EXPECT_EQ(pauses.Next(), milliseconds(20));
}

TEST(BackoffTest, ManyTriesDoNotOverflow) {
  constexpr Backoff kPauses(milliseconds(1), std::chrono::hours(1));
  EXPECT_EQ(kPauses.At(1'000'000), std::chrono::hours(1));
  EXPECT_EQ(Backoff(milliseconds(9), milliseconds(5)).At(0), milliseconds(5));
}

TEST(BackoffTest, FirstAttemptAfterARetryIsImmediate) {
  Backoff pauses = Backoff::AfterARetry(milliseconds(20), milliseconds(50));
  for (const int64_t expected : {0, 20, 40, 50}) EXPECT_EQ(pauses.Next(), milliseconds(expected));
  pauses.Reset();
  EXPECT_EQ(pauses.Next(), milliseconds(0));
}

TEST(BackoffTest, JitterTakesAtMostAQuarter) {
  Random random(1);
  Backoff pauses(milliseconds(10), std::chrono::seconds(1));
  Backoff::Duration full = pauses.first();
  bool differs = false;
  for (int i = 0; i < 50; ++i) {
    const Backoff::Duration pause = pauses.Next(random);
    EXPECT_LE(pause, full);
    EXPECT_GE(pause, full * 3 / 4);
    differs |= pause != full;
    full = std::min(pauses.longest(), full * 2);
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace tamis
