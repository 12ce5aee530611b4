// How a table of a d-left counting Bloom filter is laid out: four subtables of n buckets of eight
// cells, a cell is a remainder of r bits and a counter of c. The parts of a bucket are such that
// four buckets are searched without a look at each cell:
//
//   8 bytes      the tags: of each cell the low 8 bits of its remainder
//   c bytes      the counters, c bits each; 0 = the cell is empty
//   r - 8 bytes  the rests: of each cell the high r - 8 bits of its remainder
//
// Counters and rests lie one behind the other, the first in the lowest bits.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tamis/base/hash.h"

namespace tamis {

class DLeftLayout {
 public:
  static constexpr uint32_t kSubtables = 4;
  static constexpr uint32_t kCells = 8;  // cells of a bucket
  static constexpr uint32_t kMinRemainderBits = 8;
  static constexpr uint32_t kMaxRemainderBits = 40;

  // The value of a hash: one of n 2^r.
  struct Value {
    uint64_t bucket;
    uint64_t remainder;
  };
  // Where its remainder may lie: the first bytes of four buckets, one in each subtable.
  struct Place {
    uint64_t remainder;
    std::array<uint64_t, kSubtables> buckets;
  };

  // REQUIRES: buckets >= 1, counter_bits is 2 or 4, remainder_bits as above.
  DLeftLayout(uint64_t buckets, uint32_t remainder_bits, uint32_t counter_bits)
      : buckets_(buckets),
        remainder_bits_(remainder_bits),
        counter_bits_(counter_bits),
        counters_mask_(~uint32_t{0} >> (32 - kCells * counter_bits)),
        counter_ones_(counters_mask_ / max_counter()) {}

  uint64_t buckets() const { return buckets_; }  // buckets of a subtable
  uint32_t remainder_bits() const { return remainder_bits_; }
  uint32_t counter_bits() const { return counter_bits_; }
  uint32_t max_counter() const { return (1u << counter_bits_) - 1; }
  uint64_t cells() const { return kSubtables * buckets_ * kCells; }
  uint64_t bucket_bytes() const { return remainder_bits_ + counter_bits_; }
  uint64_t bytes() const { return kSubtables * buckets_ * bucket_bytes(); }
  // A word behind the last bucket lets all parts be read as whole words.
  uint64_t words() const { return (bytes() + 7) / 8 + 1; }
  friend bool operator==(const DLeftLayout&, const DLeftLayout&) = default;

  Value ValueOf(uint64_t hash) const {
    const auto product = static_cast<unsigned __int128>(hash) * buckets_;
    return {static_cast<uint64_t>(product >> 64),
            static_cast<uint64_t>(product) >> (64 - remainder_bits_)};
  }
  // While the remainder grows from 0 to its end, the step grows from 0 to all buckets.
  uint64_t Step(uint64_t remainder) const {
    return FastRange(remainder << (64 - remainder_bits_), buckets_);
  }
  Place PlaceOf(const Value& value) const {
    Place place{value.remainder, {}};
    const uint64_t step = Step(value.remainder) * bucket_bytes();
    const uint64_t end = buckets_ * bucket_bytes();
    uint64_t byte = value.bucket * bucket_bytes();
    for (uint32_t subtable = 0; subtable < kSubtables; ++subtable) {
      place.buckets[subtable] = subtable * end + byte;
      byte += step;
      byte = std::min(byte, byte - end);  // round the end, without a branch to mispredict
    }
    return place;
  }
  // Starts to load the buckets; each may lie in two lines.
  void Prefetch(const char* table, const Place& place) const {
    for (const uint64_t bucket : place.buckets) {
      __builtin_prefetch(table + bucket);
      __builtin_prefetch(table + bucket + bucket_bytes() - 1);
    }
  }

  // Bit 8 i + j: cell i of the place's bucket j may have the tag of the remainder. All that have it
  // are marked, and some above one that has; usually there is none.
  static uint64_t MayHaveTag(const char* table, const Place& place) {
    constexpr uint64_t kOnes = 0x0101010101010101;
    const uint64_t tags = (place.remainder & 255) * kOnes;
    uint64_t marks = 0;
    for (uint32_t j = 0; j < kSubtables; ++j) {
      const uint64_t x = Load<uint64_t>(table + place.buckets[j]) ^ tags;
      marks |= ((x - kOnes) & ~x & (kOnes << 7)) >> (7 - j);
    }
    return marks;
  }
  // A cell in use with this remainder.
  bool Holds(const char* bucket, uint32_t cell, uint64_t remainder) const {
    return Remainder(bucket, cell) == remainder && Counter(bucket, cell) != 0;
  }

  uint32_t CountUsed(const char* bucket) const {
    uint32_t used = Used(bucket);
    used = (used & 0x33333333) + (used >> 2 & 0x33333333);
    return ((used + (used >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
  }
  // REQUIRES: there is one.
  uint32_t FirstEmpty(const char* bucket) const {
    return static_cast<uint32_t>(std::countr_zero(~Used(bucket) & counter_ones_)) / counter_bits_;
  }

  uint32_t Counter(const char* bucket, uint32_t cell) const {
    return Load<uint32_t>(bucket + kCells) >> (cell * counter_bits_) & max_counter();
  }
  void SetCounter(char* bucket, uint32_t cell, uint32_t counter) const {
    const uint32_t shift = cell * counter_bits_;
    const uint32_t counters = Load<uint32_t>(bucket + kCells) & ~(max_counter() << shift);
    Store(bucket + kCells, counters | counter << shift);
  }
  uint64_t Remainder(const char* bucket, uint32_t cell) const {
    const uint64_t bit = RestBit(cell);
    const uint64_t rest = Load<uint64_t>(bucket + bit / 8) >> (bit % 8) & RestMask();
    return rest << 8 | static_cast<uint8_t>(bucket[cell]);
  }
  void SetRemainder(char* bucket, uint32_t cell, uint64_t remainder) const {
    bucket[cell] = static_cast<char>(remainder);
    const uint64_t bit = RestBit(cell);
    const uint64_t word = Load<uint64_t>(bucket + bit / 8) & ~(RestMask() << (bit % 8));
    Store(bucket + bit / 8, word | (remainder >> 8) << (bit % 8));
  }

 private:
  template <class T>
  static T Load(const char* at) {
    T value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  template <class T>
  static void Store(char* at, T value) {
    std::memcpy(at, &value, sizeof(value));
  }
  uint64_t RestBit(uint32_t cell) const {
    return uint64_t{kCells + counter_bits_} * 8 + uint64_t{cell} * (remainder_bits_ - 8);
  }
  uint64_t RestMask() const { return (uint64_t{1} << (remainder_bits_ - 8)) - 1; }
  // The lowest bit of every counter's place, where the counter is not 0.
  uint32_t Used(const char* bucket) const {
    uint32_t counters = Load<uint32_t>(bucket + kCells) & counters_mask_;
    counters |= counters >> 1;
    if (counter_bits_ == 4) counters |= counters >> 2;
    return counters & counter_ones_;
  }

  uint64_t buckets_;
  uint32_t remainder_bits_;
  uint32_t counter_bits_;
  uint32_t counters_mask_;
  uint32_t counter_ones_;  // the lowest bit of every counter's place
};

// Sets bit i of the answers where the table holds the value of hashes[i]; fetches buckets ahead.
// The widest vectors of this processor are used.
void FindInDLeftTable(const DLeftLayout& layout, const char* table, const uint64_t* hashes,
                      size_t n, uint64_t* answers);

}  // namespace tamis
