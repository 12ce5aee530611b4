// Cache penetration: requests for rows that do not exist, with and without a filter in front of the
// store. The case of the article on cache systems, and of the one on d-left filters.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <unordered_set>

#include "papers/bloom_of.h"
#include "papers/sections.h"
#include "tamis/base/random.h"
#include "tamis/filter/any_filter.h"
#include "tamis/filter/fpr.h"

namespace tamis {
namespace {

constexpr uint64_t kRows = 80'000;
constexpr uint64_t kRequests = 4'000'000;
constexpr uint64_t kOneInExists = 20;  // of the requests
constexpr double kRequestsADay = 2e9;

// Row i, as the article composes its keys: type||content. Rows from kRows on do not exist.
class RowKey {
 public:
  std::string_view Write(uint64_t i) {
    char* end = std::to_chars(text_, text_ + 8, i % 7).ptr;
    end = std::copy_n("||", 2, end);
    end = std::to_chars(end, text_ + sizeof(text_), i).ptr;
    return {text_, static_cast<size_t>(end - text_)};
  }

 private:
  char text_[32] = {};
};

// The database: every Get is a request that reached it.
class Store {
 public:
  void Put(std::string_view key) { rows_.emplace(key); }
  void Delete(std::string_view key) { rows_.erase(std::string(key)); }
  bool Get(std::string_view key) {
    ++requests_;
    return rows_.count(std::string(key)) != 0;
  }
  uint64_t requests() const { return requests_; }

 private:
  std::unordered_set<std::string> rows_;
  uint64_t requests_ = 0;
};

// A store behind a filter of its rows; no filter: every request reaches it.
struct Guarded {
  std::string name;
  std::optional<AnyFilter> filter;
  std::string printed_rate;
  double rate = 1;  // by formula
  Store store;
  uint64_t wrongly_refused = 0;

  // Asks for the rows; those that the filter does not let through are known not to exist.
  void Request(std::span<const uint64_t> rows, std::span<const uint64_t> hashes) {
    const Bitmap pass = filter ? filter->MayContain(hashes) : Bitmap();
    RowKey key;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!filter || TestBit(pass, i)) {
        store.Get(key.Write(rows[i]));
      } else {
        wrongly_refused += rows[i] < kRows;
      }
    }
  }
};

// A store of all rows. rate 0: by the filter's own formula, from its fill.
Guarded Guard(std::string name, std::string_view type, const FilterOptions& options, double rate,
              std::string printed_rate) {
  Guarded guarded{.name = std::move(name), .printed_rate = std::move(printed_rate), .rate = rate};
  if (!type.empty()) {
    guarded.filter = *AnyFilter::Create(type, options);
    std::vector<uint64_t> hashes;
    RowKey key;
    for (uint64_t i = 0; i < kRows; ++i) hashes.push_back(Hash(key.Write(i), options.seed));
    (void)guarded.filter->Insert(hashes);
    if (rate == 0) guarded.rate = guarded.filter->ExpectedFpr();
  }
  RowKey key;
  for (uint64_t i = 0; i < kRows; ++i) guarded.store.Put(key.Write(i));
  return guarded;
}

std::vector<Guarded> Guards(uint64_t seed) {
  const auto bloom = [seed](double hashes) {
    FilterOptions options = BloomOptionsFor(20.0 * kRows, hashes);
    options.seed = seed;
    return options;
  };
  const auto at = [seed](double rate) { return FilterOptions{kRows, rate, seed}; };
  std::vector<Guarded> guards;
  guards.push_back(Guard("none", "", {}, 1, ""));
  guards.push_back(
      Guard("bloom, k = 6", "bloom", bloom(6), fpr::Bloom(20.0 * kRows, kRows, 6), "0.0303 %"));
  guards.push_back(
      Guard("bloom, k = 14", "bloom", bloom(14), fpr::Bloom(20.0 * kRows, kRows, 14), "0.014 %"));
  guards.push_back(Guard("blocked", "blocked", at(3.03e-4), 0, ""));
  guards.push_back(Guard("blocked-quotient", "blocked-quotient", at(0.003), 0, ""));
  guards.push_back(Guard("cuckoo", "cuckoo", at(3.03e-4), 0, ""));
  guards.push_back(Guard("d-left", "d-left", at(1e-6), 0, ""));
  return guards;
}

double BitsPerKey(const Guarded& guarded) {
  return static_cast<double>(guarded.filter->SizeBytes()) * 8 / kRows;
}

// Requests that reached the store; `existing` of them were for rows that exist.
Table Reached(const std::vector<Guarded>& guards, uint64_t existing) {
  Table table{.title =
                  "Requests that reached the store, of 4,000,000 for rows of which one in 20 "
                  "exists",
              .what = {"filter in front of it", "erases", "bits a row"},
              .formulas = {"formula"},
              .numbers = Table::Numbers::kCounts};
  for (const Guarded& guarded : guards) {
    const uint64_t absent = kRequests - existing;
    const Measurement share = Share(guarded.store.requests() - existing, absent);
    const auto requests = [&](double rate) {
      return static_cast<double>(existing) + rate * static_cast<double>(absent);
    };
    const bool draws = guarded.filter.has_value();
    table.rows.push_back({{guarded.name,
                           !draws                          ? "-"
                           : guarded.filter->type().erases ? "yes"
                                                           : "no",
                           draws ? fmt::format("{:.0f}", BitsPerKey(guarded)) : "0"},
                          "",
                          {requests(guarded.rate)},
                          draws ? Measurement{requests(share.value), requests(share.low),
                                              requests(share.high), kRequests}
                                : Exactly(requests(share.value)),
                          ""});
  }
  return table;
}

// The day's requests, if all of them were for rows that do not exist.
Table ADay(const std::vector<Guarded>& guards, uint64_t existing) {
  Table table{.title = "Requests that reach it, of 2 billion a day for rows that do not exist",
              .what = {"filter in front of it"},
              .formulas = {"formula"},
              .numbers = Table::Numbers::kCounts};
  for (const Guarded& guarded : guards) {
    if (!guarded.filter) continue;
    const Measurement share = Share(guarded.store.requests() - existing, kRequests - existing);
    const double printed = PrintedValue(guarded.printed_rate) * kRequestsADay;
    table.rows.push_back({{guarded.name},
                          guarded.printed_rate.empty() ? "" : fmt::format("{:.0f}", printed),
                          {guarded.rate * kRequestsADay},
                          Measurement{share.value * kRequestsADay, share.low * kRequestsADay,
                                      share.high * kRequestsADay, kRequests - existing},
                          ""});
  }
  return table;
}

// A tenth of the rows is deleted, from the store and, where that can be done, from the filter; then
// these rows are asked for.
Table Deleted(std::vector<Guarded>* guards, uint64_t seed) {
  constexpr uint64_t kDeleted = kRows / 10;
  std::vector<uint64_t> rows;
  std::vector<uint64_t> hashes;
  RowKey key;
  for (uint64_t i = 0; i < kDeleted; ++i) {
    rows.push_back(i);
    hashes.push_back(Hash(key.Write(i), seed));
  }
  Table table{
      .title = "A tenth of the rows deleted: requests for these that reach the store, of 8,000",
      .what = {"filter in front of it", "erases"},
      .formulas = {"formula"},
      .numbers = Table::Numbers::kCounts};
  for (Guarded& guarded : *guards) {
    if (!guarded.filter) continue;
    const bool erases = guarded.filter->type().erases;
    for (const uint64_t row : rows) guarded.store.Delete(key.Write(row));
    if (erases) (void)guarded.filter->Erase(hashes);
    const double rate = erases ? guarded.filter->ExpectedFpr() : 1;
    const uint64_t before = guarded.store.requests();
    guarded.Request(rows, hashes);
    const Measurement share = Share(guarded.store.requests() - before, kDeleted);
    table.rows.push_back({{guarded.name, erases ? "yes" : "no"},
                          "",
                          {rate * kDeleted},
                          erases ? Measurement{share.value * kDeleted, share.low * kDeleted,
                                               share.high * kDeleted, kDeleted}
                                 : Exactly(share.value * kDeleted),
                          ""});
  }
  return table;
}

// Sends every store the same requests; how many were for rows that exist.
uint64_t SendRequests(uint64_t seed, std::vector<Guarded>* guards) {
  Random random(seed);
  RowKey key;
  uint64_t existing = 0;
  uint64_t next_absent = kRows;
  std::vector<uint64_t> rows;
  std::vector<uint64_t> hashes;
  for (uint64_t begin = 0; begin < kRequests; begin += rows.size()) {
    rows.clear();
    hashes.clear();
    while (rows.size() < std::min<uint64_t>(4096, kRequests - begin)) {
      rows.push_back(random.OneIn(kOneInExists) ? random.Uniform(kRows) : next_absent++);
      existing += rows.back() < kRows;
      hashes.push_back(Hash(key.Write(rows.back()), seed));
    }
    for (Guarded& guarded : *guards) guarded.Request(rows, hashes);
  }
  return existing;
}

}  // namespace

Section Penetration(uint64_t seed) {
  std::vector<Guarded> guards = Guards(seed);
  const uint64_t existing = SendRequests(seed, &guards);
  uint64_t wrongly_refused = 0;
  for (const Guarded& guarded : guards) wrongly_refused += guarded.wrongly_refused;
  Section section{
      "Cache penetration",
      {"The case of both articles: a store of 80,000 rows is asked for rows that mostly do not "
       "exist, and a filter of the rows' keys in front of it answers these itself. Here the store "
       "is simulated, it counts what reaches it; keys are text, as in the article "
       "(type||content). The filters are made for the rate of the article's case, the d-left "
       "filter for the one in a million of the other article. Where the printed rate is wrong, so "
       "is what follows from it.",
       Reached(guards, existing), ADay(guards, existing)}};
  section.blocks.emplace_back(
      "Requests for rows that exist and were refused: " + std::to_string(wrongly_refused) +
      ". The printed column is the printed rate times 2 billion. The formula column has the rate "
      "by formula times the requests; for filters other than the Bloom filter the formula of the "
      "filter at its fill ([FILTERS.md](FILTERS.md)).");
  section.blocks.emplace_back(Deleted(&guards, seed));
  section.blocks.emplace_back(
      "Rows come and go; a filter that does not erase lets requests for deleted rows through "
      "until it is built again.");
  return section;
}

}  // namespace tamis
