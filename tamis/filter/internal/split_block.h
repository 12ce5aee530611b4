// Split blocks: the bits of a blocked Bloom filter and how a hash meets them. A block is 8 or 16
// lanes of 32 bits, half a cache line or a whole one; a hash has one bit in every lane of one
// block, so all bits are set or tested by one or two vector instructions.
//
// The block is chosen by the hash's high bits, the bits in it by the low 32, so that the two are
// independent. In lane l the bit is the top 5 bits of low32 * kLaneSalts[l].
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tamis/base/hash.h"
#include "tamis/filter/filter_options.h"

namespace tamis {

// Odd, so that every bit of the low half counts.
inline constexpr auto kLaneSalts = [] {
  std::array<uint32_t, 16> salts{};
  for (uint32_t i = 0; i < salts.size(); ++i) {
    salts[i] = static_cast<uint32_t>(Mix(i + 1) >> 32) | 1;
  }
  return salts;
}();

class SplitBlocks {
 public:
  // On one block and the low half of a hash.
  struct Functions {
    bool (*test)(const uint64_t* block, uint32_t low);
    void (*set)(uint64_t* block, uint32_t low);
  };

  // REQUIRES: lanes is 8 or 16, blocks >= 1.
  SplitBlocks(uint32_t lanes, uint64_t blocks);

  uint32_t lanes() const { return lanes_; }
  uint64_t blocks() const { return blocks_; }
  uint64_t words_per_block() const { return lanes_ / 2; }
  uint64_t words() const { return blocks_ * words_per_block(); }
  uint64_t Block(uint64_t hash) const { return FastRange(hash, blocks_); }
  // Where the block of a hash begins.
  uint64_t Word(uint64_t hash) const { return Block(hash) * words_per_block(); }

  // The mask of a lane, one at a time: what the vectors below do for all lanes.
  static uint32_t LaneMask(uint64_t hash, uint32_t lane) {
    return uint32_t{1} << LaneBit(hash, lane);
  }
  static uint32_t LaneBit(uint64_t hash, uint32_t lane) {
    return static_cast<uint32_t>(hash) * kLaneSalts[lane] >> 27;
  }

  // The mean false-positive rate over the blocks as they are.
  double ExpectedFpr(const uint64_t* words) const;

  // `words` are words() long. The widest vectors of this processor are used.
  bool Test(const uint64_t* words, uint64_t hash) const {
    return functions_.test(words + Word(hash), static_cast<uint32_t>(hash));
  }
  void Set(uint64_t* words, uint64_t hash) const {
    functions_.set(words + Word(hash), static_cast<uint32_t>(hash));
  }
  // These fetch the blocks of later hashes while earlier ones are worked on.
  Bitmap Test(const uint64_t* words, std::span<const uint64_t> hashes) const;
  void Set(uint64_t* words, std::span<const uint64_t> hashes) const;

 private:
  uint32_t lanes_;
  uint64_t blocks_;
  // Chosen once for this processor: a lookup is so short that choosing at every call would keep
  // fewer of them under way at once.
  Functions functions_;
};

}  // namespace tamis
