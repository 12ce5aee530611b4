// The times that publications quote, beside those of our filters on this machine: d-left with
// 500,000 keys, and the Bloom filter of 80,000 keys in 1.6 million bits whose query is to be 100
// times as fast at k = 6. `bench/run published_figures tables` prints the same.
#include <cstdio>

#include "bench/figures.h"
#include "papers/times.h"

int main() {
  const auto times = tamis::MeasurePublishedTimes(1);
  std::fputs(tamis::TableOf(times).c_str(), stdout);
  for (const tamis::PublishedTime& time : times) {
    tamis::Report({.work = time.work,
                   .beside = "published: " + time.quoted + " us, in Java",
                   .now = tamis::Printed("%.4f us", time.here_us),
                   .ratio = tamis::Printed("%.0fx as fast", time.times),
                   .goal = time.work.ends_with("k = 6") ? ">= 100x" : ""});
  }
  return 0;
}
