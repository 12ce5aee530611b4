// Asking a filter about many hashes at once: the memory of a later question is fetched while an
// earlier one is answered.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "tamis/filter/filter_options.h"

namespace tamis {

// place_of(hash) finds out where the hash belongs and starts loading; test(place) answers. The
// distance covers the latency of memory without using up the line-fill buffers of a core; the
// places are kept for that time. prefetch_more(place), in between, may look at what has been loaded
// and start loading what it leads to.
template <class PlaceOf, class PrefetchMore, class Test>
Bitmap AnswerBatchByPlaces(std::span<const uint64_t> hashes, PlaceOf&& place_of,
                           PrefetchMore&& prefetch_more, Test&& test) {
  constexpr size_t kDistance = 16;
  constexpr size_t kDistanceOfMore = 8;
  const size_t n = hashes.size();
  Bitmap answers((n + 63) / 64);
  if (n == 0) return answers;
  std::array<decltype(place_of(hashes[0])), kDistance> places;
  for (size_t i = 0; i < std::min(n, kDistance); ++i) places[i] = place_of(hashes[i]);
  for (size_t begin = 0; begin < n; begin += 64) {
    const size_t end = std::min(n, begin + 64);
    uint64_t word = 0;
    for (size_t i = begin; i < end; ++i) {
      if (i + kDistanceOfMore < n) prefetch_more(places[(i + kDistanceOfMore) % kDistance]);
      auto& place = places[i % kDistance];
      word |= uint64_t{test(place)} << (i % 64);
      if (i + kDistance < n) place = place_of(hashes[i + kDistance]);
    }
    answers[begin / 64] = word;
  }
  return answers;
}

template <class PlaceOf, class Test>
Bitmap AnswerBatchByPlaces(std::span<const uint64_t> hashes, PlaceOf&& place_of, Test&& test) {
  return AnswerBatchByPlaces(
      hashes, place_of, [](const auto&) {}, test);
}

// prefetch(hash) starts loading; test(hash) answers.
template <class Prefetch, class Test>
Bitmap AnswerBatch(std::span<const uint64_t> hashes, Prefetch&& prefetch, Test&& test) {
  return AnswerBatchByPlaces(
      hashes,
      [&](uint64_t hash) {
        prefetch(hash);
        return hash;
      },
      test);
}

}  // namespace tamis
