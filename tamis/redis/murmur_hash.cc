#include "tamis/redis/murmur_hash.h"

#include <bit>
#include <cstring>

namespace tamis::redis {

static_assert(std::endian::native == std::endian::little, "words are read as they lie");

uint64_t MurmurHash64A(std::string_view bytes, uint64_t seed) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995u;
  constexpr int kShift = 47;
  uint64_t hash = seed ^ (bytes.size() * kMultiplier);
  const char* data = bytes.data();
  const char* const words_end = data + bytes.size() / 8 * 8;
  for (; data != words_end; data += 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    word *= kMultiplier;
    word ^= word >> kShift;
    word *= kMultiplier;
    hash = (hash ^ word) * kMultiplier;
  }
  if (const size_t rest = bytes.size() % 8; rest != 0) {
    uint64_t word = 0;
    std::memcpy(&word, data, rest);
    hash = (hash ^ word) * kMultiplier;
  }
  hash ^= hash >> kShift;
  hash *= kMultiplier;
  return hash ^ (hash >> kShift);
}

uint32_t MurmurHash2(std::string_view bytes, uint32_t seed) {
  constexpr uint32_t kMultiplier = 0x5bd1e995u;
  constexpr int kShift = 24;
  uint32_t hash = seed ^ static_cast<uint32_t>(bytes.size());
  const char* data = bytes.data();
  const char* const words_end = data + bytes.size() / 4 * 4;
  for (; data != words_end; data += 4) {
    uint32_t word;
    std::memcpy(&word, data, 4);
    word *= kMultiplier;
    word ^= word >> kShift;
    word *= kMultiplier;
    hash = (hash * kMultiplier) ^ word;
  }
  if (const size_t rest = bytes.size() % 4; rest != 0) {
    uint32_t word = 0;
    std::memcpy(&word, data, rest);
    hash = (hash ^ word) * kMultiplier;
  }
  hash ^= hash >> 13;
  hash *= kMultiplier;
  return hash ^ (hash >> 15);
}

}  // namespace tamis::redis
