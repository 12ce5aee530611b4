// BloomLink: one link of a BloomChain, a plain Bloom filter with a capacity, as headers and RDB
// values describe it. Functions that a lookup calls are inline.
//
//   Layout      probe i of an item is bit (a + i * b) modulo bits, of the item's two hashes
//   Memory      bits; -ln(rate) / ln(2)^2 an item of capacity
//   Threads     const members may run concurrently; others need exclusive access
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tamis/base/coding.h"
#include "tamis/base/status.h"
#include "tamis/redis/byte_array.h"
#include "tamis/redis/murmur_hash.h"

namespace tamis::redis {

// The two hashes of an item.
struct BloomHash {
  BloomHash() = default;
  // Both parts are 64 bits wide, whatever the hash is.
  BloomHash(std::string_view item, bool hash64) {
    if (hash64) {
      a = MurmurHash64A(item, 0xc6a4a7935bd1e995u);
      b = MurmurHash64A(item, a);
    } else {
      a = MurmurHash2(item, 0x9747b28cu);
      b = MurmurHash2(item, static_cast<uint32_t>(a));
    }
  }

  uint64_t a;
  uint64_t b;
};

struct BloomLink {
  static constexpr uint64_t kGreatestBits = uint64_t{1} << 62;
  static constexpr size_t kHeaderSize = 53;
  // A miss ends after two probes in a link that is half full.
  static constexpr uint32_t kFirst = 2;
  static constexpr uint32_t kAhead = 16;  // probes after these are not fetched ahead

  struct Geometry {
    double bits_per_entry;
    uint64_t bits;
    uint32_t hashes;
  };
  // nullopt when the bits cannot be counted.
  static std::optional<Geometry> GeometryFor(double error_rate, uint64_t entries);
  // An empty link; nullopt when memory does not suffice, or the bits cannot be counted.
  static std::optional<BloomLink> Create(double error_rate, uint64_t entries);
  // nullopt when memory does not suffice.
  std::optional<BloomLink> Copy() const;

  // Checks the description; the bytes are not looked at.
  Status Check() const;
  // The description in the header of a dump. False when the bytes are not those of the bits.
  bool ReadHeader(Reader* reader);
  void AppendHeader(std::string* header) const;
  // To be called when `bits` was set.
  void SetReciprocal() { reciprocal = ~uint64_t{0} / bits; }

  uint64_t Bytes() const { return (bits + 7) / 8; }
  // hash % bits. The quotient by multiplication is right or one too small.
  uint64_t BitOf(uint64_t hash) const {
    const auto quotient =
        static_cast<uint64_t>(static_cast<unsigned __int128>(hash) * reciprocal >> 64);
    const uint64_t rest = hash - quotient * bits;
    return rest < bits ? rest : rest - bits;
  }
  bool Has(uint64_t bit) const { return (bytes.data()[bit >> 3] & (1 << (bit & 7))) != 0; }
  void Set(uint64_t bit) { bytes.data()[bit >> 3] |= static_cast<uint8_t>(1 << (bit & 7)); }
  // Whether the bits of probes [first, hashes) are set.
  bool Test(const BloomHash& hash, uint32_t first = 0) const {
    uint64_t a = hash.a + first * hash.b;
    for (uint32_t i = first; i < hashes; ++i, a += hash.b) {
      if (!Has(BitOf(a))) return false;
    }
    return true;
  }
  // Prefetches the first probes.
  void FetchFirst(const BloomHash& hash) const {
    for (uint32_t i = 0; i < kFirst; ++i) {
      __builtin_prefetch(bytes.data() + (BitOf(hash.a + i * hash.b) >> 3));
    }
  }

  uint64_t bits = 0;
  uint64_t size = 0;  // items that were new to the chain
  double error_rate = 0;
  double bits_per_entry = 0;
  uint32_t hashes = 0;
  uint64_t entries = 0;  // capacity
  uint8_t n2 = 0;        // log2(bits) of filters that were rounded to it, else 0
  ByteArray bytes;
  uint64_t reciprocal = 0;  // the reciprocal of bits: a division costs as much as a probe
};

}  // namespace tamis::redis
