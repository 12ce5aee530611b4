// The one seeded hash of bytes: XXH3-64. Every filter takes its 64-bit result; the seed is part of
// a filter's bytes. XXH3 is not a keyed pseudo-random function: a random seed stops strangers from
// preparing colliding keys in advance, but not an attacker who can watch the answers for long.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tamis {

uint64_t Hash(std::string_view bytes, uint64_t seed);

// The hashes of pieces of a text: hashes[i] is that of the bytes from starts[i] to one before
// starts[i + 1], where a delimiter is. Faster than one by one where the pieces are short.
// REQUIRES: starts.size() > hashes.size().
void HashPieces(const char* text, std::span<const uint32_t> starts, uint64_t seed,
                std::span<uint64_t> hashes);

// A bijection of 64-bit words in which every input bit reaches every output bit (the finalizer of
// SplitMix64, Steele et al., OOPSLA 2014).
constexpr uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Maps a uniform 64-bit word to [0, n) without division, using the high bits (Lemire 2019).
constexpr uint64_t FastRange(uint64_t word, uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(word) * n) >> 64);
}

}  // namespace tamis
