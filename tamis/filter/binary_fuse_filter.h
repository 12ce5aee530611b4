// A binary fuse filter: an approximate set of 64-bit hashes that is built once, of all its keys.
//
// Choose it when the set never changes, or is built again when it does: it is the smallest here
// (docs/FILTERS.md#choosing).
//
//   Layout      segments of 2^s fingerprints of F bits        (docs/FORMATS.md#binary-fuse)
//   Memory      1.13 F bits/key for a million keys and more, 1.28 F for 10,000
//   FP rate     2^-F                   F = 7: 0.8 %, 10: 0.1 %
//   MayContain  three cache lines      Build  about 45 bytes a key of memory meanwhile
//   Insert      none                   Erase  none
//   Threads     const members may run concurrently; others need exclusive access
//   Source      Graf and Lemire, JEA 2022, sections 3 and 4, 3-wise
//               Differs: positions of a segment are drawn by XOR as there, from a hash mixed again
//               at every attempt; keys may repeat
//
// Why three fingerprints: each key has three slots in neighbouring segments, and the XOR of what is
// in them is the key's fingerprint. Slots are given out in an order in which each key still has a
// slot of its own when its turn comes, found by taking away, again and again, a key that alone uses
// a slot; with an eighth more slots than keys this ends with no key left, nearly always.
#pragma once

#include <string>
#include <string_view>

#include "tamis/base/hash.h"
#include "tamis/filter/filter_bytes.h"
#include "tamis/filter/filter_options.h"
#include "tamis/filter/internal/word_array.h"

namespace tamis {

class BinaryFuseFilter {
 public:
  using Options = FilterOptions;  // the capacity is not looked at: the keys are there
  static constexpr FilterKind kKind = FilterKind::kBinaryFuse;

  static Result<BinaryFuseFilter> Build(std::span<const uint64_t> hashes, const Options& options);

  bool MayContain(uint64_t hash) const;
  Bitmap MayContain(std::span<const uint64_t> hashes) const;

  size_t SizeBytes() const { return words_.size_bytes(); }
  uint64_t Count() const { return count_; }  // distinct keys
  double Fill() const;                       // keys over slots
  double ExpectedFpr() const;
  uint64_t seed() const { return seed_; }
  uint32_t fingerprint_bits() const { return shape_.fingerprint_bits; }

  static uint64_t CapacityFor(size_t size_bytes, double fpr);
  static double FprFor(size_t size_bytes, uint64_t capacity);

  std::string Serialize() const;
  static Result<BinaryFuseFilter> Deserialize(std::string_view bytes,
                                              OpenMode mode = OpenMode::kCopy);

 private:
  struct Shape {
    uint32_t fingerprint_bits = 0;  // 1 to 30
    uint32_t segment_bits = 0;      // a segment has 2^segment_bits slots
    uint64_t starts = 1;            // segments in which the first of a key's slots can be

    uint64_t slots() const { return (starts + 2) << segment_bits; }
    // With a word behind the last, so that 8 bytes can be read where a fingerprint begins.
    size_t words() const { return (slots() * fingerprint_bits + 63) / 64 + 1; }
    uint64_t mask() const { return (uint64_t{1} << fingerprint_bits) - 1; }
  };
  static Shape ShapeFor(uint64_t keys, uint32_t fingerprint_bits);

  // Where a key's fingerprint is, and what it is.
  struct Place {
    uint64_t slots[3];
    uint64_t fingerprint;
  };
  static uint64_t Mixed(uint64_t hash, uint64_t attempt) {
    return Mix(hash + attempt * uint64_t{0x9e3779b97f4a7c15});
  }
  Place Find(uint64_t mixed) const;
  bool TryToBuild(std::span<const uint64_t> mixed);

  uint64_t Load(uint64_t slot) const;

  uint64_t seed_ = 0;
  uint64_t count_ = 0;
  uint64_t attempt_ = 0;  // the one that went well
  Shape shape_;
  WordArray words_;
};

}  // namespace tamis
