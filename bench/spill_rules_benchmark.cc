// Where the fingerprints go that find no room in their line, and what it costs: cache lines a
// lookup touches when a filter is filled, and after ten times as many keys came and went.
//
//   spill_rules_benchmark [KEYS]       default 500,000
//
// A model, not a filter: lines of 48 fingerprints of 14 bits at the load of BlockedQuotientFilter's
// capacity, under the rules that were considered for it. Seeded: the same figures every time.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "tamis/base/random.h"

namespace tamis {
namespace {

constexpr uint32_t kSlots = 48;
constexpr uint32_t kTagBits = 8;
constexpr uint32_t kFingerprints = 1 << 14;
constexpr double kLoad = 0.92;

enum class Rule {
  kTakeBack,   // spilled to a table; an erase takes the least one back
  kLeave,      // spilled to a table; they stay there, the limit rises when the last one has gone
  kOtherLine,  // displaced into another line of the same table, where they stay
};

struct Line {
  std::vector<uint32_t> own;                 // sorted
  std::multimap<uint64_t, uint32_t> guests;  // home, fingerprint
  std::vector<uint32_t> away;                // sorted
  uint32_t limit = kFingerprints;            // fingerprints at or above it are away

  size_t size() const { return own.size() + guests.size(); }
};

class Model {
 public:
  Model(Rule rule, uint64_t keys)
      : rule_(rule),
        lines_(static_cast<size_t>(static_cast<double>(keys) / (kLoad * kSlots)) + 1) {}

  bool Insert(uint64_t hash) { return Add(Home(hash), Fingerprint(hash), 0); }

  void Erase(uint64_t hash) {
    const uint64_t home = Home(hash);
    const uint32_t fingerprint = Fingerprint(hash);
    Line& line = lines_[home];
    if (Remove(&line.own, fingerprint)) {
      if (rule_ == Rule::kTakeBack && !line.away.empty()) {
        Put(&line.own, line.away.front());
        line.away.erase(line.away.begin());
      }
    } else {
      if (!Remove(&line.away, fingerprint)) std::abort();
      if (rule_ == Rule::kOtherLine) {
        auto& guests = lines_[Other(home, fingerprint)].guests;
        auto [at, end] = guests.equal_range(home);
        while (at->second != fingerprint) ++at;
        guests.erase(at);
      }
    }
    if (rule_ == Rule::kTakeBack && !line.away.empty()) line.limit = line.own.back();
    if (line.away.empty()) line.limit = kFingerprints;
  }

  double LinesOfHits(const std::vector<uint64_t>& held) const {
    double away = 0;
    for (const Line& line : lines_) away += static_cast<double>(line.away.size());
    return 1 + away / static_cast<double>(held.size());
  }
  // A limit is known to the group, as in the filter.
  double LinesOfMisses() const {
    double more = 0;
    for (const Line& line : lines_) {
      if (line.limit == kFingerprints) continue;
      more += static_cast<double>(kFingerprints - (line.limit >> kTagBits << kTagBits));
    }
    return 1 + more / kFingerprints / static_cast<double>(lines_.size());
  }

 private:
  uint64_t Home(uint64_t hash) const { return FastRange(hash, lines_.size()); }
  static uint32_t Fingerprint(uint64_t hash) { return hash % kFingerprints; }
  uint64_t Other(uint64_t home, uint32_t fingerprint) const {
    const uint64_t sum = FastRange(Mix(fingerprint), lines_.size());
    return sum >= home ? sum - home : sum + lines_.size() - home;
  }
  static void Put(std::vector<uint32_t>* sorted, uint32_t value) {
    sorted->insert(std::upper_bound(sorted->begin(), sorted->end(), value), value);
  }
  static bool Remove(std::vector<uint32_t>* sorted, uint32_t value) {
    const auto at = std::lower_bound(sorted->begin(), sorted->end(), value);
    if (at == sorted->end() || *at != value) return false;
    sorted->erase(at);
    return true;
  }

  bool Add(uint64_t home, uint32_t fingerprint, int depth) {
    Line& line = lines_[home];
    Put(&line.own, fingerprint);
    return line.size() <= kSlots || SendAway(home, depth);
  }
  bool SendAway(uint64_t home, int depth) {
    Line& line = lines_[home];
    if (line.own.empty() || depth > 500) return false;
    const uint32_t greatest = line.own.back();
    line.own.pop_back();
    Put(&line.away, greatest);
    line.limit = rule_ == Rule::kTakeBack ? line.own.back() : std::min(line.limit, greatest);
    if (rule_ != Rule::kOtherLine) return true;
    const uint64_t other = Other(home, greatest);
    lines_[other].guests.emplace(home, greatest);
    return lines_[other].size() <= kSlots || SendAway(other, depth + 1);
  }

  Rule rule_;
  std::vector<Line> lines_;
};

void Run(uint64_t keys) {
  fmt::print("{} keys, {} slots a line, load {}; cache lines a lookup\n", keys, kSlots, kLoad);
  fmt::print("{:<44} {:>7} {:>7}   {:>7} {:>7}\n", "", "hit", "miss", "hit", "miss");
  fmt::print("{:<44} {:^15}   {:^15}\n", "what finds no room in its line", "filled", "after 10 x");
  const std::pair<Rule, std::string> rules[] = {
      {Rule::kTakeBack, "to a table, taken back at an erase"},
      {Rule::kLeave, "to a table, left there"},
      {Rule::kOtherLine, "to another line, left there"},
  };
  for (const auto& [rule, name] : rules) {
    Random random(1);
    Model model(rule, keys);
    std::vector<uint64_t> held;
    bool full = false;
    while (held.size() < keys && !full) {
      held.push_back(random());
      full = !model.Insert(held.back());
    }
    const double filled = model.LinesOfMisses();
    std::string row =
        fmt::format("{:<44} {:>7.3f} {:>7.3f}", name, model.LinesOfHits(held), filled);
    for (uint64_t i = 0; i < 10 * keys && !full; ++i) {
      uint64_t& key = held[random.Uniform(held.size())];
      model.Erase(key);
      key = random();
      full = !model.Insert(key);
    }
    fmt::print("{}   {:>7.3f} {:>7.3f}{}\n", row, model.LinesOfHits(held), model.LinesOfMisses(),
               full ? "  (a key found no room)" : "");
    Report(
        {.work = "keys without room in their line " + name + ": lines read by a miss after churn",
         .beside = "the same when the filter was filled",
         .now = fmt::format("{:.3f}; {:.3f}", model.LinesOfMisses(), filled),
         .ratio = fmt::format("{:.2f}x", model.LinesOfMisses() / filled)});
  }
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  const uint64_t keys = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 500'000;
  if (keys < 1000) {
    fmt::print(stderr, "usage: spill_rules_benchmark [KEYS]; at least 1000 keys\n");
    return 2;
  }
  tamis::Run(keys);
  return 0;
}
