// Asking a filter about many hashes at once: the memory of a later question is fetched while an
// earlier one is answered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "tamis/filter/filter_options.h"

namespace tamis {

// prefetch(hash) starts loading; test(hash) answers. The distance covers the latency of memory
// without using up the line-fill buffers of a core.
template <class Prefetch, class Test>
Bitmap AnswerBatch(std::span<const uint64_t> hashes, Prefetch&& prefetch, Test&& test) {
  constexpr size_t kDistance = 16;
  const size_t n = hashes.size();
  Bitmap answers((n + 63) / 64);
  for (size_t i = 0; i < std::min(n, kDistance); ++i) prefetch(hashes[i]);
  for (size_t i = 0; i < n; ++i) {
    if (i + kDistance < n) prefetch(hashes[i + kDistance]);
    answers[i / 64] |= uint64_t{test(hashes[i])} << (i % 64);
  }
  return answers;
}

}  // namespace tamis
