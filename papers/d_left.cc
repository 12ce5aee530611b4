// Tests of a d-left counting Bloom filter in a web article.
#include <cmath>

#include "papers/bloom_of.h"
#include "papers/sections.h"
#include "tamis/filter/bloom_filter.h"
#include "tamis/filter/counting_bloom_filter.h"
#include "tamis/filter/d_left_counting_bloom_filter.h"
#include "tamis/filter/fpr.h"
#include "tamis/filter/projected_counting_bloom_filter.h"

namespace tamis {
namespace {

constexpr uint64_t kKeys = 500'000;
constexpr uint64_t kBuckets = 1 << 15;  // of a subtable

// Our filters are made for 24 keys in the four buckets of one number.
DLeftCountingBloomFilter Filter(uint32_t remainder_bits) {
  constexpr uint64_t kCapacity = kBuckets * 24 - 1000;
  return *DLeftCountingBloomFilter::Create(
      {.capacity = kCapacity, .fpr = 1.001 * 24 / std::exp2(remainder_bits)});
}

Table Subtables(const Keys& keys) {
  constexpr std::array<const char*, 4> kPrinted = {"135203", "128226", "122795", "113776"};
  constexpr uint32_t kRuns = 10;
  std::array<std::vector<double>, 4> cells;
  for (uint32_t run = 0; run < kRuns; ++run) {
    auto filter = Filter(24);
    InsertKeys(&filter, keys, 1000 + run, kKeys);
    const auto used = filter.CellsInUse();
    for (size_t i = 0; i < 4; ++i) cells[i].push_back(static_cast<double>(used[i]));
  }
  const std::array<double, 4> shares = fpr::DLeftShares(kKeys, double{kBuckets});
  const std::array<double, 4> half = fpr::DLeftShares(kKeys, double{kBuckets} / 2);
  const std::array<double, 4> twice = fpr::DLeftShares(kKeys, double{kBuckets} * 2);
  Table table{.title = "Cells in use of each subtable, 500,000 keys",
              .what = {"subtable"},
              .formulas = {"2^14 buckets", "2^16 buckets", "2^15 buckets"},
              .numbers = Table::Numbers::kCounts};
  for (size_t i = 0; i < 4; ++i) {
    table.rows.push_back({{std::to_string(i)},
                          kPrinted[i],
                          {half[i] * kKeys, twice[i] * kKeys, shares[i] * kKeys},
                          Mean(cells[i]),
                          ""});
  }
  return table;
}

Table ErrorRates(const Keys& keys) {
  Table table{.title = "False positives of 500,000 keys, 2^15 buckets a subtable",
              .what = {"fingerprint"},
              .formulas = {"formula"}};
  for (const uint32_t bits : {16, 20, 24}) {
    auto filter = Filter(bits);
    InsertKeys(&filter, keys, 1100, kKeys);
    table.rows.push_back({{std::to_string(bits) + " bits"},
                          bits == 24 ? "\"about one in a million\"" : "",
                          {fpr::Fingerprints(kKeys, static_cast<double>(filter.buckets()), bits)},
                          FalsePositives(filter, keys, 1101, uint64_t{1} << (bits == 24 ? 25 : 22)),
                          bits == 24 ? "right" : ""});
  }
  return table;
}

Table Erased(const Keys& keys) {
  constexpr uint32_t kBits = 16;
  auto filter = Filter(kBits);
  InsertKeys(&filter, keys, 1200, kKeys);
  for (uint64_t i = 0; i < kKeys / 2; ++i) filter.Erase(keys(1200, i));
  const uint64_t found = CountKeys(filter, keys, 1200, kKeys);
  const uint64_t gone = CountKeys(filter, keys, 1200, kKeys / 2);
  const double rate = fpr::Fingerprints(kKeys / 2.0, static_cast<double>(filter.buckets()), kBits);
  return {.title = "After half of the 500,000 keys were erased, fingerprints of 16 bits",
          .what = {"share of the keys"},
          .formulas = {"formula"},
          .rows = {{{"of those that stayed, found"},
                    "",
                    {1},
                    Exactly(static_cast<double>(found - gone) / (kKeys / 2.0)),
                    ""},
                   {{"of those erased, found"}, "", {rate}, Share(gone, kKeys / 2), ""}}};
}

// The rate of a Bloom filter with so many bits for each key.
Table Memory(const Keys& keys) {
  Table table{.title = "False positives at a number of bits a key",
              .what = {"bits a key"},
              .formulas = {"least of any filter", "Bloom filter"}};
  constexpr double kBloomKeys = 200'000;
  for (const double bits : {1.0, 5.0, 10.0, 15.0}) {
    const double hashes = fpr::BloomHashes(bits, 1);
    auto filter = *BloomFilter::Create(BloomOptionsFor(bits * kBloomKeys, hashes));
    InsertKeys(&filter, keys, 1300, static_cast<uint64_t>(kBloomKeys));
    table.rows.push_back({{std::to_string(static_cast<int>(bits))},
                          "",
                          {std::exp2(-bits), fpr::Bloom(bits, 1, hashes)},
                          FalsePositives(filter, keys, 1301, uint64_t{1} << 21),
                          ""});
  }
  return table;
}

template <class Filter>
double BitsOf() {
  return static_cast<double>(Filter::Create({.capacity = kKeys, .fpr = 0.01})->SizeBytes());
}

Table CounterMemory() {
  const double plain = BitsOf<BloomFilter>();
  return {.title = "Memory of a filter with counters of 4 bits, in Bloom filters",
          .what = {"filter"},
          .formulas = {"formula"},
          .rows = {{{"counting"}, "5", {4}, Exactly(BitsOf<CountingBloomFilter>() / plain), ""},
                   {{"counting, and the bits beside for readers"},
                    "",
                    {NAN},
                    Exactly(BitsOf<ProjectedCountingBloomFilter>() / plain),
                    ""}}};
}

}  // namespace

Section DLeft(uint64_t seed) {
  const Keys keys(seed);
  return {
      "d-left counting Bloom filters",
      {"*BloomFilter applications and an implementation of the D-Left BloomFilter* "
       "(BloomFilter应用与D-Left BloomFilter实现), an article on chepoo.com, after F. Bonomi et "
       "al., "
       "*An Improved Construction for Counting Bloom Filters*, ESA 2006. Four subtables, buckets "
       "of 8 cells, a cell is a fingerprint and a counter; a key goes to the emptiest of its four "
       "buckets, the leftmost of several.",
       Subtables(keys),
       "The article does not say how many buckets there were. The number follows from its "
       "figures: a key goes to the first subtable when that has a bucket as empty as any, so the "
       "shares depend on the load alone. With x(i, h) the share of buckets of subtable i that "
       "hold h keys or more, a key finds h keys in its bucket of subtable i and goes there with "
       "probability (x(i, h) - x(i, h+1)) times the product of x(l, h+1) over l < i and of x(l, "
       "h) over l > i; this is the growth of x(i, h+1). Integrated over 500,000 keys it gives the "
       "printed figures for 2^15 buckets a subtable, and for no other power of two: 3.8 of 8 "
       "cells in use. Measured is the mean of ten of our filters with as many buckets.",
       ErrorRates(keys),
       ("A key is found falsely when one of n others has the same of B 2^r values: 1 - (1 - 1/(B "
        "2^r))^n. \"About one in a million\" is what fingerprints of 24 bits give in 2^15 buckets; "
        "the article names no width."),
       Erased(keys),
       "An erase takes the key's own fingerprint or an equal one, so no other key is lost; an "
       "erased key is found as often as any key that never was there.",
       "**Black lists.** 10^8 names of 10 bytes are 1 GB, and the article needs \"1 GB / 80\" for "
       "them with a Bloom filter. That is one bit a key. No filter of one bit a key answers "
       "wrongly less often than every second time; a Bloom filter does at 63 %. With 10 bits a "
       "key, 1 GB / 8, it is 1 %.",
       Memory(keys),
       "**Counters.** A counter of 4 bits in the place of each bit takes four times the memory, "
       "not five, unless the bits are kept beside the counters.",
       CounterMemory(),
       "The article also gives times in Java, after 500,000 keys: of one insert, of one query, of "
       "one erase. `bench/run published_figures tables` prints them beside those of our filter on "
       "the machine it runs on."}};
}

}  // namespace tamis
