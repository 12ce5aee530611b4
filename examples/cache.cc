// Two caches that help each other: before a cache fetches from far away it asks its sibling, but
// only when the sibling's filter says that it may have the page.
//
// Shows: BlockedQuotientFilter, the choice where keys leave, mirroring the keys of a cache that
// drops what was not used for longest; that an insert can be refused, and what to do then; that a
// filter is sent as bytes. (Fan, Cao, Almeida and Broder, "Summary Cache", SIGCOMM 1998.)
#include <cstdio>
#include <list>
#include <string>
#include <unordered_map>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"
#include "tamis/filter/blocked_quotient_filter.h"

namespace {

constexpr size_t kCachePages = 5'000;
constexpr uint64_t kWebPages = 60'000;
constexpr int kRequests = 400'000;

// Least recently used, with a filter of its keys.
class Cache {
 public:
  explicit Cache(tamis::BlockedQuotientFilter filter) : filter_(std::move(filter)) {}

  bool Use(const std::string& url) {
    const auto found = places_.find(url);
    if (found == places_.end()) return false;
    order_.splice(order_.begin(), order_, found->second);
    return true;
  }

  void Put(const std::string& url) {
    if (places_.size() == kCachePages) {
      filter_.Erase(Hash(order_.back()));
      places_.erase(order_.back());
      order_.pop_back();
    }
    // An entry that the filter has no room for is not cached: the filter would say no to it.
    if (!filter_.Insert(Hash(url))) return;
    order_.push_front(url);
    places_[url] = order_.begin();
  }

  bool Has(const std::string& url) const { return places_.contains(url); }
  bool MayHave(const std::string& url) const { return filter_.MayContain(Hash(url)); }
  std::string Summary() const { return filter_.Serialize(); }
  size_t size() const { return places_.size(); }

 private:
  uint64_t Hash(const std::string& url) const { return tamis::Hash(url, filter_.seed()); }

  std::list<std::string> order_;  // the last used one first
  std::unordered_map<std::string, std::list<std::string>::iterator> places_;
  tamis::BlockedQuotientFilter filter_;
};

}  // namespace

int main() {
  const auto filter =
      tamis::BlockedQuotientFilter::Create({.capacity = kCachePages, .fpr = 0.003, .seed = 1});
  if (!filter.ok()) {
    std::fprintf(stderr, "cache: %s\n", filter.status().message().c_str());
    return 1;
  }
  Cache caches[2] = {Cache(*filter), Cache(*filter)};

  tamis::Random random(1);
  int hits = 0;
  int asked = 0;
  int helped = 0;
  int missed = 0;  // the sibling had it and was not asked
  for (int i = 0; i < kRequests; ++i) {
    // Some pages are asked for far more often than others.
    const double u = random.UniformDouble();
    const auto page = static_cast<uint64_t>(u * u * u * static_cast<double>(kWebPages));
    const std::string url = "https://example.org/" + std::to_string(page);
    Cache& mine = caches[i % 2];
    const Cache& sibling = caches[1 - i % 2];
    if (mine.Use(url)) {
      ++hits;
      continue;
    }
    if (sibling.MayHave(url)) {
      ++asked;
      helped += sibling.Has(url);
    } else {
      missed += sibling.Has(url);
    }
    mine.Put(url);
  }

  // The filter that another machine reads from the bytes says the same.
  const auto summary = tamis::BlockedQuotientFilter::Deserialize(caches[0].Summary());
  const bool same = summary.ok() && summary->Count() == caches[0].size();

  std::printf("missed %d pages that the sibling had; the filter holds what the cache holds: %s\n",
              missed, same ? "yes" : "no");
  std::printf("%d requests, %d hits; the sibling was asked %d times and helped %d times\n",
              kRequests, hits, asked, helped);
  return missed == 0 && same && asked - helped < kRequests / 100 ? 0 : 1;
}
