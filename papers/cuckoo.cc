// An article on cuckoo filters.
#include <fmt/core.h>

#include <array>
#include <cmath>
#include <numbers>

#include "papers/sections.h"
#include "tamis/filter/bloom_filter.h"
#include "tamis/filter/cuckoo_filter.h"
#include "tamis/filter/fpr.h"

namespace tamis {
namespace {

constexpr uint64_t kKeys = 200'000;
constexpr double kLoad = 0.95;

template <class Filter>
double BitsPerKey(const Filter& filter) {
  return static_cast<double>(filter.SizeBytes()) * 8 / static_cast<double>(filter.Count());
}

CuckooFilter Filled(uint32_t tag_bits, bool semi_sorted, const Keys& keys) {
  auto filter =
      *CuckooFilter::Create({.capacity = kKeys, .tag_bits = tag_bits, .semi_sorted = semi_sorted});
  InsertKeys(&filter, keys, 3000, kKeys);
  return filter;
}

Table Rates(const Keys& keys) {
  Table table{.title = "False positives of a full filter, 1 - (1 - 1/(2^F - 1))^(8 a)",
              .what = {"tags", "table"},
              .formulas = {"formula"}};
  struct Shape {
    uint32_t tag_bits;
    bool semi_sorted;
    uint64_t asked;
  };
  for (const Shape shape : {Shape{8, false, 1 << 21},
                            {12, false, 1 << 22},
                            {13, true, 1 << 22},
                            {16, false, 1 << 24}}) {
    const CuckooFilter filter = Filled(shape.tag_bits, shape.semi_sorted, keys);
    table.rows.push_back(
        {{fmt::format("{} bits", shape.tag_bits), shape.semi_sorted ? "semi-sorted" : "plain"},
         "",
         {fpr::Cuckoo(shape.tag_bits, filter.Fill())},
         FalsePositives(filter, keys, 3001, shape.asked),
         ""});
  }
  return table;
}

// The share of the slots in use when the first insert is refused.
Measurement LoadAtRefusal(const Keys& keys) {
  std::vector<double> loads;
  for (uint64_t run = 0; run < 5; ++run) {
    auto filter = *CuckooFilter::Create({.capacity = kKeys / 4, .tag_bits = 12});
    InsertKeys(&filter, keys, 3010 + run, kKeys);
    loads.push_back(filter.Fill());
  }
  return Mean(loads);
}

// How often one key is taken.
double Copies(const Keys& keys) {
  auto filter = *CuckooFilter::Create({.capacity = 1000, .tag_bits = 12});
  double copies = 0;
  while (filter.Insert(keys(3020, 0))) ++copies;
  return copies;
}

// Bits of a tag that keeping the 4 tags of a bucket in order saves: of the 16^4 sequences of their
// upper 4 bits it leaves the C(19, 4) ascending ones.
double SavedBySorting() {
  constexpr double kAscending = 19.0 * 18 * 17 * 16 / 24;
  return (16 - std::ceil(std::log2(kAscending))) / 4;
}

Table Quantities(const Keys& keys) {
  const CuckooFilter plain = Filled(13, false, keys);
  const CuckooFilter sorted = Filled(13, true, keys);
  const double slots = static_cast<double>(kKeys) / plain.Fill();
  const double saved = static_cast<double>(plain.SizeBytes() - sorted.SizeBytes()) * 8 / slots;
  return {.title = "Limits",
          .what = {"quantity"},
          .formulas = {"formula"},
          .rows = {{{"copies of one key that fit, 2 buckets of 4 slots"},
                    "",
                    {8},
                    Exactly(Copies(keys)),
                    ""},
                   {{"bits a tag saved by sorting a bucket (Fan et al.)"},
                    "1",
                    {SavedBySorting()},
                    Exactly(saved),
                    ""},
                   {{"load when an insert is first refused (Fan et al.)"},
                    "95 %",
                    {NAN},
                    LoadAtRefusal(keys),
                    "right, for ours a little more"}}};
}

// Where (log2(1/p) + c) / a is as much as log2(1/p) / ln 2.
double CrossingRate(double c) { return std::exp2(-c / (kLoad / std::numbers::ln2 - 1)); }

Table Crossing() {
  return {.title = "The rate below which a cuckoo filter is smaller than a Bloom filter",
          .what = {"of the two"},
          .formulas = {"plain", "semi-sorted"},
          .rows = {{{"with tags of any width, load 95 %"},
                    "3 %",
                    {CrossingRate(3), CrossingRate(2)},
                    {},
                    ""}}};
}

Table Bits(const Keys& keys) {
  Table table{.title = "Bits a key",
              .what = {"rate", "filter"},
              .formulas = {"formula, tags of any width"}};
  struct Rate {
    double rate;
    const char* percent;
  };
  for (const Rate rate : {Rate{0.03, "3 %"}, {0.01, "1 %"}, {0.001, "0.1 %"}, {0.0001, "0.01 %"}}) {
    auto bloom = *BloomFilter::Create({.capacity = kKeys, .fpr = rate.rate});
    InsertKeys(&bloom, keys, 3030, kKeys);
    table.rows.push_back({{rate.percent, "Bloom"},
                          "",
                          {fpr::BloomBits(1, rate.rate)},
                          Exactly(BitsPerKey(bloom)),
                          ""});
    for (const bool semi_sorted : {false, true}) {
      auto filter =
          *CuckooFilter::Create({.capacity = kKeys, .fpr = rate.rate, .semi_sorted = semi_sorted});
      InsertKeys(&filter, keys, 3030, kKeys);
      table.rows.push_back({{rate.percent, semi_sorted ? "cuckoo, semi-sorted" : "cuckoo"},
                            "",
                            {fpr::CuckooBits(rate.rate, kLoad, semi_sorted)},
                            Exactly(BitsPerKey(filter)),
                            ""});
    }
  }
  return table;
}

Table Overfilled(const Keys& keys) {
  Table table{.title = "A Bloom filter for 200,000 keys at 1 % that is given more",
              .what = {"keys / capacity"},
              .formulas = {"formula"}};
  auto filter = *BloomFilter::Create({.capacity = kKeys, .fpr = 0.01});
  uint64_t n = 0;
  for (const uint32_t times : {1, 2, 4, 8}) {
    for (; n < times * kKeys; ++n) filter.Insert(keys(3040, n));
    const auto bits = static_cast<double>(filter.bits());
    table.rows.push_back({{std::to_string(times)},
                          "",
                          {fpr::Bloom(bits, static_cast<double>(n), filter.hashes())},
                          FalsePositives(filter, keys, 3041, uint64_t{1} << 21),
                          ""});
  }
  return table;
}

// The tables that a lookup of an absent key reads in vain: one Bloom filter a table, or one cuckoo
// filter for all of as many bits a key, which names the table beside each tag.
Table LsmTree(const Keys& keys) {
  constexpr uint64_t kTableKeys = 20'000;
  constexpr double kTagBits = 12;
  Table table{
      .title = "Tables of an LSM-tree read in vain, in a lookup of a key that does not exist",
      .what = {"tables", "filters"},
      .formulas = {"formula"}};
  for (const uint32_t tables : {1, 5, 20}) {
    auto whole = *CuckooFilter::Create(
        {.capacity = tables * kTableKeys, .tag_bits = static_cast<uint32_t>(kTagBits)});
    std::vector<BloomFilter> filters;
    const double bits = kTagBits / kLoad;
    for (uint32_t t = 0; t < tables; ++t) {
      filters.push_back(*BloomFilter::Create(
          {.capacity = kTableKeys, .fpr = fpr::Bloom(bits, 1, fpr::BloomHashes(bits, 1))}));
      InsertKeys(&filters.back(), keys, 3050 + t, kTableKeys);
      InsertKeys(&whole, keys, 3050 + t, kTableKeys);
    }
    constexpr uint64_t kAsked = 1 << 20;
    uint64_t reads = 0;
    double expected = 0;
    for (const BloomFilter& filter : filters) {
      reads += CountKeys(filter, keys, 3090, kAsked);
      expected += fpr::Bloom(static_cast<double>(filter.bits()), kTableKeys, filter.hashes());
    }
    const Measurement share = Share(reads, kAsked * tables);
    const auto count = std::to_string(tables);
    table.rows.push_back(
        {{count, "a Bloom filter each"},
         "",
         {expected},
         Measurement{share.value * tables, share.low * tables, share.high * tables, kAsked},
         ""});
    table.rows.push_back({{count, "one cuckoo filter"},
                          "",
                          {fpr::Cuckoo(static_cast<uint32_t>(kTagBits), whole.Fill())},
                          FalsePositives(whole, keys, 3090, uint64_t{1} << 22),
                          ""});
  }
  return table;
}

}  // namespace

Section Cuckoo(uint64_t seed) {
  const Keys keys(seed);
  return {
      "Cuckoo filters",
      {"*Cuckoo filter: principle, implementation, LSM-tree optimization* (高级数据结构与算法 | "
       "布谷鸟过滤器(Cuckoo Filter):原理、实现、LSM Tree 优化), an article after B. Fan et al., "
       "*Cuckoo Filter: "
       "Practically Better Than Bloom*, CoNEXT 2014, and N. Dayan, M. Twitto, *Chucky: A Succinct "
       "Cuckoo Filter for LSM-Tree*, SIGMOD 2021. It has no tables; here are the figures of its "
       "text.",
       Rates(keys), Quantities(keys),
       "**Semi-sorting** is explained wrongly in the article: it takes two tags of 4 bits that "
       "were kept in a byte each and puts them side by side. That is packing, which a plain table "
       "does as well. The order saves a bit: the 4 tags of a bucket are a set, and of the "
       "65,536 sequences of their upper 4 bits only C(19, 4) = 3,876 ascend. These need 12 bits, "
       "not 16.",
       Crossing(),
       ("**Smaller below 3 %.** A Bloom filter needs log2(1/p) / ln 2 bits a key, a cuckoo filter "
        "(log2(1/p) + 3) / 0.95, one bit of it less when semi-sorted. With these the bound is 2.4 "
        "% semi-sorted and 0.37 % plain; the 3 % are a round figure for the former. With tags of "
        "whole bits:"),
       Bits(keys),
       "**Duplicates.** A key that is inserted again and again moves tags to no end, the article "
       "says, unless every insert looks first. Two buckets hold 8 copies; ours then refuses and "
       "is unchanged, so that as many erases as inserts are exact.",
       "**Growth of the error.** The article says that a Bloom filter's rate grows exponentially "
       "with its keys. It grows as a power, at most 2^k for each doubling, and ends at 1:",
       Overfilled(keys),
       "**LSM-tree.** With a Bloom filter for each table the tables that are read in vain add up; "
       "one cuckoo filter for the whole tree, which names the table beside each tag, keeps their "
       "number where it is. At the same 12.6 bits a key, without the bits that name the table:",
       LsmTree(keys)}};
}

}  // namespace tamis
