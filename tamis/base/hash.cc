#include "tamis/base/hash.h"

#define XXH_INLINE_ALL  // no call for a short key, and no library to link
#include <xxhash.h>

#include <algorithm>

namespace tamis {

uint64_t Hash(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

// XXH3 has other code for 9 to 16 bytes than for fewer. Which one comes next is hard to foresee, so
// the pieces are sorted by it first, without a branch.
void HashPieces(const char* text, std::span<const uint32_t> starts, uint64_t seed,
                std::span<uint64_t> hashes) {
  constexpr size_t kGroup = 256;
  const auto size = [&](size_t i) { return starts[i + 1] - starts[i] - 1; };
  for (size_t begin = 0; begin < hashes.size(); begin += kGroup) {
    const size_t end = std::min(begin + kGroup, hashes.size());
    uint32_t order[kGroup];  // pieces of 9 to 16 bytes from the front, the others from the back
    size_t front = 0;
    size_t back = kGroup - 1;
    for (size_t i = begin; i < end; ++i) {
      order[front] = order[back] = static_cast<uint32_t>(i);
      const bool medium = size(i) - 9 <= 7;
      front += medium;
      back -= !medium;
    }
    for (size_t j = 0; j < front; ++j) {
      const uint32_t i = order[j];
      if (size(i) < 9 || size(i) > 16) __builtin_unreachable();  // drops branches
      hashes[i] = XXH3_64bits_withSeed(text + starts[i], size(i), seed);
    }
    for (size_t j = back + 1; j < kGroup; ++j) {
      const uint32_t i = order[j];
      hashes[i] = XXH3_64bits_withSeed(text + starts[i], size(i), seed);
    }
  }
}

}  // namespace tamis
