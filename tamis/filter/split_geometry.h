// SplitGeometry: k slices of m positions each, and where a hash falls in them.
//
// Shared by the split counting filters and by the matrix that stores many of their projections, so
// that a position means the same on both sides.
#pragma once

#include <cstdint>

#include "tamis/base/hash.h"

namespace tamis {

struct SplitGeometry {
  static constexpr uint32_t kMaxSlices = 32;

  uint32_t slices = 1;
  uint32_t slice_positions = 1;

  uint64_t positions() const { return uint64_t{slices} * slice_positions; }

  // In [0, slice_positions). Every slice mixes the hash again: with positions h1 + i h2 two keys
  // that agree in two slices would agree in all, a floor of n / m^2 under the false-positive rate.
  uint32_t Offset(uint64_t hash, uint32_t slice) const {
    return static_cast<uint32_t>(
        FastRange(Mix(hash + (slice + 1) * uint64_t{0x9e3779b97f4a7c15}), slice_positions));
  }
  // In [0, positions()): slice * slice_positions + offset.
  uint64_t Position(uint64_t hash, uint32_t slice) const {
    return uint64_t{slice} * slice_positions + Offset(hash, slice);
  }

  // The smallest geometry whose false-positive rate is at most `fpr` when it holds `capacity` keys;
  // every slice is then half full. Takes any arguments: fpr is clamped to [2^-32, 1/2], capacity to
  // [1, kMaxCapacity].
  static constexpr uint64_t kMaxCapacity = uint64_t{1} << 31;
  static SplitGeometry For(double fpr, uint64_t capacity);
  // The number of keys that fill half of each slice.
  uint64_t Capacity() const;

  bool IsValid() const { return slices >= 1 && slices <= kMaxSlices && slice_positions >= 1; }

  friend bool operator==(const SplitGeometry&, const SplitGeometry&) = default;
};

}  // namespace tamis
