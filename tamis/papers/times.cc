#include "tamis/papers/times.h"

#include <fmt/core.h>

#include <cassert>
#include <chrono>
#include <vector>

#include "tamis/filter/bloom_filter.h"
#include "tamis/filter/d_left_counting_bloom_filter.h"
#include "tamis/papers/bloom_of.h"
#include "tamis/papers/measurement.h"

namespace tamis {
namespace {

constexpr uint64_t kCalls = 1'000'000;

// Microseconds of one call of call(i).
double Microseconds(uint64_t calls, auto&& call) {
  const auto begin = std::chrono::steady_clock::now();
  uint64_t sum = 0;
  for (uint64_t i = 0; i < calls; ++i) sum += call(i);
  const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - begin;
  assert(sum <= calls);
  volatile uint64_t used = sum;  // so that the calls are not left out
  (void)used;
  return passed.count() / static_cast<double>(calls);
}

std::string Line(const char* what, const char* quoted, double here) {
  return fmt::format("{:<66} {:>14} {:>12.3f}\n", what, quoted, here);
}

std::string DLeftTimes(uint64_t seed) {
  constexpr uint64_t kKeys = 500'000;
  constexpr uint64_t kMore = 100'000;
  const Keys keys(seed);
  auto filter = *DLeftCountingBloomFilter::Create({.capacity = kKeys + kMore, .fpr = 1e-6});
  InsertKeys(&filter, keys, 1, kKeys);
  std::string text;
  text += Line("d-left, 500,000 keys: an insert", "200 to 300",
               Microseconds(kMore, [&](uint64_t i) { return filter.Insert(keys(1, kKeys + i)); }));
  text += Line("  a query", "100",
               Microseconds(kCalls, [&](uint64_t i) { return filter.MayContain(keys(2, i)); }));
  text += Line("  an erase", "300 to 400",
               Microseconds(kMore, [&](uint64_t i) { return filter.Erase(keys(1, i)); }));
  return text;
}

std::string BloomTimes(uint64_t seed, double hashes, const char* what, const char* quoted) {
  const Keys keys(seed);
  auto filter = *BloomFilter::Create(BloomOptionsFor(1.6e6, hashes));
  InsertKeys(&filter, keys, 1, 80'000);
  return Line(what, quoted, Microseconds(kCalls, [&](uint64_t i) {
                // Of text, as there.
                char text[24] = "type-1||content-";
                const uint64_t number = keys(2, i);
                std::char_traits<char>::copy(text + 16, reinterpret_cast<const char*>(&number), 8);
                return filter.MayContain(Hash({text, sizeof(text)}, seed));
              }));
}

}  // namespace

std::string PublishedTimes(uint64_t seed) {
  return fmt::format("{:<66} {:>14} {:>12}\n", "Microseconds of", "quoted, Java", "here") +
         DLeftTimes(seed) +
         BloomTimes(seed, 6, "Bloom, 80,000 keys in 1.6 million bits: a query, k = 6", "2.5") +
         BloomTimes(seed, 14, "  k = 14", "3.7 to 4.2");
}

}  // namespace tamis
