// A crawler: no page is fetched twice, and a page that was seen takes a few bytes.
//
// Shows: ScalableBloomFilter, the choice if the number of keys is not known in advance; that a
// false positive means a page that is left out, so the rate is the share of pages one can do
// without.
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"
#include "tamis/filter/scalable_bloom_filter.h"

namespace {

// A web of so many pages, each with twelve links to pages that its number gives.
constexpr uint64_t kPages = 300'000;
constexpr int kLinks = 12;

std::string Url(uint64_t page) { return "https://example.org/page/" + std::to_string(page); }

}  // namespace

int main() {
  // So many at first; it grows.
  auto seen = tamis::ScalableBloomFilter::Create(
      {.capacity = 50'000, .fpr = 0.001, .seed = tamis::SeedFromSystem()});
  if (!seen.ok()) {
    std::fprintf(stderr, "crawler: %s\n", seen.status().message().c_str());
    return 1;
  }
  const auto see = [&](uint64_t page) {  // true the first time
    const uint64_t hash = tamis::Hash(Url(page), seen->seed());
    return !seen->MayContain(hash) && seen->Insert(hash);
  };

  std::vector<int> fetched(kPages);  // only to tell how well it went
  std::deque<uint64_t> frontier{0};
  see(0);
  while (!frontier.empty()) {
    const uint64_t page = frontier.front();
    frontier.pop_front();
    ++fetched[page];
    tamis::Random links(page);
    for (int i = 0; i < kLinks; ++i) {
      const uint64_t link = links.Uniform(kPages);
      if (see(link)) frontier.push_back(link);
    }
  }

  uint64_t pages = 0;
  uint64_t twice = 0;
  for (const int times : fetched) {
    pages += times > 0;
    twice += times > 1;
  }
  const bool nearly_all = pages >= kPages - kPages / 500;
  std::printf("%s pages were fetched, %llu of them twice\n", nearly_all ? "nearly all" : "not all",
              static_cast<unsigned long long>(twice));
  std::printf("%llu of %llu pages; the filter grew to %zu layers, %.1f bits a page\n",
              static_cast<unsigned long long>(pages), static_cast<unsigned long long>(kPages),
              seen->layers(),
              8.0 * static_cast<double>(seen->SizeBytes()) / static_cast<double>(pages));
  return nearly_all && twice == 0 ? 0 : 1;
}
