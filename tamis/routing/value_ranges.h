// ValueRanges: the smallest and the largest value of one index in each region, by the region's
// slot.
//
// Values are compared by 8 bytes first, which follow the common prefix of all values; whole values
// are compared only where these are equal. A range that is not known covers no value.
//
//   Memory    both values, and 16 bytes for each slot
//   Threads   const members may run concurrently; others need exclusive access
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/routing/region_bits.h"
#include "tamis/routing/table_layout.h"

namespace tamis {

class ValueRanges {
 public:
  using Slot = TableLayout::Slot;

  // The ends of a range, 8 bytes of each behind the common prefix. All ones and 0: not known.
  struct Prefixes {
    uint64_t min = ~uint64_t{0};
    uint64_t max = 0;
  };

  // Makes room for this slot.
  void Reserve(Slot slot);
  // REQUIRES of the following: there is room for the slot.
  // True: the common prefix is shorter now, so that the prefixes of all slots have changed.
  [[nodiscard]] bool Set(Slot slot, bool known, std::string_view min, std::string_view max);
  void Clear(Slot slot);
  Prefixes prefixes(Slot slot) const { return {min_prefix_[slot], max_prefix_[slot]}; }

  // The smallest or the largest value; nullopt: the range is not known.
  std::optional<std::string> EndOf(Slot slot, bool largest) const;
  // Order-preserving, not strictly: a < b gives Prefix(a) <= Prefix(b) for any values.
  uint64_t Prefix(std::string_view value) const;
  // Whether the range of the slot covers the value; `prefix` is the value's, `ends` the slot's.
  bool Covers(Slot slot, Prefixes ends, std::string_view value, uint64_t prefix) const {
    if (prefix < ends.min || prefix > ends.max) return false;
    if (prefix > ends.min && prefix < ends.max) return true;
    const ValueRange& range = ranges_[slot];
    return range.known && range.min <= value && value <= range.max;
  }

  // Sets the bits of slots whose ranges cover the value.
  void AddThoseThatCover(std::string_view value, RegionBits* may) const;
  // Sets the bits of slots whose ranges have a value with low <= value < high in common; an empty
  // high is no bound. Bits of slots outside of `among` may get any value. REQUIRES: there is room
  // for the slots of `among`.
  void AddThoseWithin(std::string_view low, std::string_view high, const RegionBits& among,
                      RegionBits* may) const;

 private:
  struct ValueRange {
    bool known = false;
    std::string min, max;
  };

  void PlacePrefixes(Slot slot);

  std::vector<ValueRange> ranges_;  // by slot
  // The same by slot, for whole words of bits.
  std::vector<uint64_t> min_prefix_, max_prefix_;
  bool has_common_ = false;
  std::string common_;
};

}  // namespace tamis
