#include "papers/times.h"

#include <fmt/core.h>

#include <cassert>
#include <ctime>
#include <vector>

#include "papers/bloom_of.h"
#include "papers/measurement.h"
#include "tamis/filter/bloom_filter.h"
#include "tamis/filter/d_left_counting_bloom_filter.h"

namespace tamis {
namespace {

constexpr uint64_t kCalls = 1'000'000;

// Microseconds of one call of call(i), of processor time, so that what else the machine does counts
// less.
double Microseconds(uint64_t calls, auto&& call) {
  const std::clock_t begin = std::clock();
  uint64_t sum = 0;
  for (uint64_t i = 0; i < calls; ++i) sum += call(i);
  const auto passed = static_cast<double>(std::clock() - begin);
  assert(sum <= calls);
  volatile uint64_t used = sum;  // so that the calls are not left out
  (void)used;
  return passed / CLOCKS_PER_SEC * 1e6 / static_cast<double>(calls);
}

PublishedTime Time(std::string work, double least_quoted, const std::string& more, double here_us) {
  return {.work = std::move(work),
          .quoted = fmt::format("{}{}", least_quoted, more),
          .here_us = here_us,
          .times = least_quoted / here_us};
}

void AddDLeftTimes(uint64_t seed, std::vector<PublishedTime>* times) {
  constexpr uint64_t kKeys = 500'000;
  constexpr uint64_t kMore = 100'000;
  const Keys keys(seed);
  auto filter = *DLeftCountingBloomFilter::Create({.capacity = kKeys + kMore, .fpr = 1e-6});
  InsertKeys(&filter, keys, 1, kKeys);
  const std::string with = "d-left, 500,000 keys: ";
  times->push_back(Time(with + "an insert", 200, " to 300", Microseconds(kMore, [&](uint64_t i) {
                          return filter.Insert(keys(1, kKeys + i));
                        })));
  times->push_back(Time(with + "a query", 100, "", Microseconds(kCalls, [&](uint64_t i) {
                          return filter.MayContain(keys(2, i));
                        })));
  times->push_back(Time(with + "an erase", 300, " to 400",
                        Microseconds(kMore, [&](uint64_t i) { return filter.Erase(keys(1, i)); })));
}

PublishedTime BloomTime(uint64_t seed, int hashes, double least_quoted, const std::string& more) {
  const Keys keys(seed);
  auto filter = *BloomFilter::Create(BloomOptionsFor(1.6e6, hashes));
  InsertKeys(&filter, keys, 1, 80'000);
  const double here_us = Microseconds(kCalls, [&](uint64_t i) {
    // Text of the form that the publication uses.
    char text[24] = "type-1||content-";
    const uint64_t number = keys(2, i);
    std::char_traits<char>::copy(text + 16, reinterpret_cast<const char*>(&number), 8);
    return filter.MayContain(Hash({text, sizeof(text)}, seed));
  });
  return Time(fmt::format("Bloom, 80,000 keys in 1.6 million bits: hash and query, k = {}", hashes),
              least_quoted, more, here_us);
}

}  // namespace

std::vector<PublishedTime> MeasurePublishedTimes(uint64_t seed) {
  std::vector<PublishedTime> times;
  AddDLeftTimes(seed, &times);
  times.push_back(BloomTime(seed, 6, 2.5, ""));
  times.push_back(BloomTime(seed, 14, 3.7, " to 4.2"));
  return times;
}

std::string TableOf(const std::vector<PublishedTime>& times) {
  std::string text = fmt::format("{:<64} {:>14} {:>8} {:>8}\n", "Microseconds of one call",
                                 "quoted, Java", "here", "times");
  for (const PublishedTime& time : times) {
    text += fmt::format("{:<64} {:>14} {:>8.4f} {:>8.0f}\n", time.work, time.quoted, time.here_us,
                        time.times);
  }
  return text;
}

}  // namespace tamis
