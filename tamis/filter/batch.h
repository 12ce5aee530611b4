// Asking a filter about many hashes at once: the memory of a later question is fetched while an
// earlier one is answered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "tamis/filter/filter_options.h"

namespace tamis {

// prefetch(hash) starts loading; test(hash) answers. The distance covers the latency of memory
// without using up the line-fill buffers of a core. prefetch_more(hash), in between, may look at
// what has been loaded and start loading what it leads to.
template <class Prefetch, class PrefetchMore, class Test>
Bitmap AnswerBatch(std::span<const uint64_t> hashes, Prefetch&& prefetch,
                   PrefetchMore&& prefetch_more, Test&& test) {
  constexpr size_t kDistance = 16;
  constexpr size_t kDistanceOfMore = 8;
  const size_t n = hashes.size();
  Bitmap answers((n + 63) / 64);
  for (size_t i = 0; i < std::min(n, kDistance); ++i) prefetch(hashes[i]);
  for (size_t i = 0; i < n; ++i) {
    if (i + kDistance < n) prefetch(hashes[i + kDistance]);
    if (i + kDistanceOfMore < n) prefetch_more(hashes[i + kDistanceOfMore]);
    answers[i / 64] |= uint64_t{test(hashes[i])} << (i % 64);
  }
  return answers;
}

template <class Prefetch, class Test>
Bitmap AnswerBatch(std::span<const uint64_t> hashes, Prefetch&& prefetch, Test&& test) {
  return AnswerBatch(
      hashes, prefetch, [](uint64_t) {}, test);
}

}  // namespace tamis
