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

// The ratio is to the least of the quoted times.
std::string Line(const char* what, double quoted, const char* to, double here) {
  return fmt::format("{:<64} {:>14} {:>8.4f} {:>8.0f}\n", what, fmt::format("{}{}", quoted, to),
                     here, quoted / here);
}

std::string DLeftTimes(uint64_t seed) {
  constexpr uint64_t kKeys = 500'000;
  constexpr uint64_t kMore = 100'000;
  const Keys keys(seed);
  auto filter = *DLeftCountingBloomFilter::Create({.capacity = kKeys + kMore, .fpr = 1e-6});
  InsertKeys(&filter, keys, 1, kKeys);
  std::string text;
  text += Line("d-left, 500,000 keys: an insert", 200, " to 300",
               Microseconds(kMore, [&](uint64_t i) { return filter.Insert(keys(1, kKeys + i)); }));
  text += Line("  a query", 100, "",
               Microseconds(kCalls, [&](uint64_t i) { return filter.MayContain(keys(2, i)); }));
  text += Line("  an erase", 300, " to 400",
               Microseconds(kMore, [&](uint64_t i) { return filter.Erase(keys(1, i)); }));
  return text;
}

std::string BloomTimes(uint64_t seed, double hashes, const char* what, double quoted,
                       const char* to) {
  const Keys keys(seed);
  auto filter = *BloomFilter::Create(BloomOptionsFor(1.6e6, hashes));
  InsertKeys(&filter, keys, 1, 80'000);
  return Line(what, quoted, to, Microseconds(kCalls, [&](uint64_t i) {
                // Text of the form that the publication uses.
                char text[24] = "type-1||content-";
                const uint64_t number = keys(2, i);
                std::char_traits<char>::copy(text + 16, reinterpret_cast<const char*>(&number), 8);
                return filter.MayContain(Hash({text, sizeof(text)}, seed));
              }));
}

}  // namespace

std::string PublishedTimes(uint64_t seed) {
  return fmt::format("{:<64} {:>14} {:>8} {:>8}\n", "Microseconds of one call", "quoted, Java",
                     "here", "times") +
         DLeftTimes(seed) +
         BloomTimes(seed, 6, "Bloom, 80,000 keys in 1.6 million bits: hash and query, k = 6", 2.5,
                    "") +
         BloomTimes(seed, 14, "  k = 14", 3.7, " to 4.2");
}

}  // namespace tamis
