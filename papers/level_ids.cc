// Level IDs: what it would cost to store beside each fingerprint of one filter for an LSM-tree in
// which level the key lies.
//
// Source: N. Dayan, M. Twitto: Chucky: A Succinct Cuckoo Filter for LSM-Tree, SIGMOD 2021, which
// codes the levels of a bucket of four together. Nothing of the library stores them (docs/LSM.md).
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "papers/sections.h"
#include "tamis/base/random.h"

namespace tamis {
namespace {

constexpr int kSlots = 4;  // of a bucket
constexpr int kRuns = 25;
constexpr int kBuckets = 8'000;  // a run
constexpr int kManyLevels = 60;

using Shares = std::vector<double>;

// The share of the keys in level 1, 2, ...: each level holds `ratio` times as many as the one above
// it.
Shares SharesOfLevels(int ratio, int levels) {
  Shares shares(static_cast<size_t>(levels));
  double share = 1;
  double sum = 0;
  for (size_t i = shares.size(); i-- > 0; share /= ratio) sum += shares[i] = share;
  for (double& one : shares) one /= sum;
  return shares;
}

double Entropy(const Shares& shares) {
  double bits = 0;
  for (const double share : shares) bits -= share * std::log2(share);
  return bits;
}

double EntropyOfAllLevels(int ratio) {
  const double t = ratio;
  return std::log2(t) / (t - 1) + std::log2(t / (t - 1));
}

// The lengths of a code with the least mean length.
std::vector<int> HuffmanLengths(const Shares& shares) {
  struct Node {
    double share;
    size_t number;
    bool operator>(const Node& other) const {
      return std::pair(share, number) > std::pair(other.share, other.number);
    }
  };
  std::priority_queue<Node, std::vector<Node>, std::greater<>> open;
  std::vector<size_t> parents(2 * shares.size(), 0);
  size_t next = 0;
  for (; next < shares.size(); ++next) open.push({shares[next], next});
  while (open.size() > 1) {
    const Node least = open.top();
    open.pop();
    const Node second = open.top();
    open.pop();
    parents[least.number] = parents[second.number] = next;
    open.push({least.share + second.share, next++});
  }
  const size_t root = next - 1;
  std::vector<int> lengths(shares.size(), 0);
  for (size_t i = 0; i < shares.size(); ++i) {
    for (size_t at = i; at != root; at = parents[at]) ++lengths[i];
  }
  return lengths;
}

double MeanLength(const Shares& shares, const std::vector<int>& lengths) {
  double mean = 0;
  for (size_t i = 0; i < shares.size(); ++i) mean += shares[i] * lengths[i];
  return mean;
}

// The levels of a bucket, whose order says nothing: the multisets of four of them.
class Buckets {
 public:
  using Levels = std::array<int, kSlots>;  // ascending

  explicit Buckets(const Shares& of_levels) {
    Levels levels{};
    Add(of_levels, levels, 0, 0);
    lengths_ = HuffmanLengths(shares_);
  }

  size_t size() const { return shares_.size(); }
  double BitsASlot() const { return MeanLength(shares_, lengths_) / kSlots; }
  int LengthOf(Levels levels) const {
    std::ranges::sort(levels);
    return lengths_[numbers_.at(levels)];
  }

 private:
  void Add(const Shares& of_levels, Levels& levels, size_t slot, int first) {
    if (slot == kSlots) {
      double share = 24;  // 4!
      int equal = 0;
      for (size_t i = 0; i < kSlots; ++i) {
        equal = i > 0 && levels[i] == levels[i - 1] ? equal + 1 : 1;
        share *= of_levels[static_cast<size_t>(levels[i])] / equal;
      }
      numbers_[levels] = shares_.size();
      shares_.push_back(share);
      return;
    }
    for (int level = first; level < static_cast<int>(of_levels.size()); ++level) {
      levels[slot] = level;
      Add(of_levels, levels, slot + 1, level);
    }
  }

  Shares shares_;
  std::map<Levels, size_t> numbers_;
  std::vector<int> lengths_;
};

// Keys fall into levels as the shares say; bits(bucket) for each bucket of four. Bits a key.
Measurement Simulate(const Shares& shares, Random* random,
                     const std::function<double(const Buckets::Levels&)>& bits) {
  Shares below(shares.size());
  double sum = 0;
  for (size_t i = 0; i < shares.size(); ++i) below[i] = sum += shares[i];
  std::vector<double> runs;
  for (int run = 0; run < kRuns; ++run) {
    double total = 0;
    for (int i = 0; i < kBuckets; ++i) {
      Buckets::Levels levels;
      for (int& level : levels) {
        const auto at = std::ranges::upper_bound(below, random->UniformDouble());
        level = static_cast<int>(
            std::min<size_t>(static_cast<size_t>(at - below.begin()), shares.size() - 1));
      }
      total += bits(levels);
    }
    runs.push_back(total / (kBuckets * kSlots));
  }
  return Mean(runs);
}

// bits(level), for each slot by itself.
auto EachSlot(auto bits) {
  return [bits](const Buckets::Levels& levels) {
    double sum = 0;
    for (const int level : levels) sum += bits(static_cast<size_t>(level));
    return sum;
  };
}

void AddRows(int ratio, int levels, Random* random, Table* table) {
  const Shares shares = SharesOfLevels(ratio, levels);
  const auto add = [&](const char* code, double formula, Measurement measured) {
    table->rows.push_back(
        {{std::to_string(ratio), std::to_string(levels), code}, "", {formula}, measured, ""});
  };
  const double fixed = std::ceil(std::log2(levels));
  add("fixed", fixed, Exactly(fixed));
  add("entropy", Entropy(shares),
      Simulate(shares, random, EachSlot([&](size_t level) { return -std::log2(shares[level]); })));
  const std::vector<int> lengths = HuffmanLengths(shares);
  add("Huffman, an ID", MeanLength(shares, lengths),
      Simulate(shares, random, EachSlot([&](size_t level) { return double(lengths[level]); })));
  const Buckets buckets(shares);
  add("Huffman, four IDs", buckets.BitsASlot(),
      Simulate(shares, random, [&](const Buckets::Levels& levels_of_bucket) {
        return static_cast<double>(buckets.LengthOf(levels_of_bucket));
      }));
}

}  // namespace

Section LevelIds(uint64_t seed) {
  Table table{.title = "Bits a key of a level ID",
              .what = {"T", "levels", "code"},
              .formulas = {"formula"}};
  Random random(seed);
  for (const int ratio : {2, 3, 4, 5, 10}) {
    for (const int levels : {5, 6, 7}) AddRows(ratio, levels, &random, &table);
    // A number of levels beyond which more make no difference.
    const Shares shares = SharesOfLevels(ratio, kManyLevels);
    table.rows.push_back({{std::to_string(ratio), "any", "entropy, its limit"},
                          "",
                          {EntropyOfAllLevels(ratio)},
                          Simulate(shares, &random, EachSlot([&](size_t level) {
                                     return -std::log2(shares[level]);
                                   })),
                          ""});
  }
  return {
      "Level IDs of an LSM-tree",
      {"N. Dayan, M. Twitto: *Chucky: A Succinct Cuckoo Filter for LSM-Tree*, SIGMOD 2021, puts "
       "one "
       "filter in front of all sorted runs, which tells for a key the level that it lies in. In a "
       "tree whose levels grow by a factor T, a share (T - 1)/T of all keys lies in the last "
       "level, and T times fewer in each one above it; so an ID of few bits holds little "
       "information: log2 T / (T - 1) + log2(T / (T - 1)) bits at most, however many levels there "
       "are.",
       fmt::format(
           "A Huffman code of each ID by itself takes a bit at least. The slots of a bucket are in "
           "no order, so the IDs of four can be coded together as a multiset: of L levels there "
           "are C(L + 3, 4), {} for L = 6. Per slot that is less than the entropy of an ID, since "
           "the order of the four is not stored.",
           Buckets(SharesOfLevels(2, 6)).size()),
       fmt::format("Simulated are {},000 keys in buckets of four for each row; fixed IDs take what "
                   "they take.",
                   kRuns * kBuckets * kSlots / 1000),
       table,
       "Nothing of this library stores levels: a stock RocksDB cannot be asked at one level, so an "
       "ID would spare nothing there, at whatever price."}};
}

}  // namespace tamis
