// FilterOptions: the options that every filter is created from; and Bitmap, the answers to a batch
// of questions. The filters' CapacityFor(size_bytes, fpr) and FprFor(size_bytes, capacity) REQUIRE
// a rate and a capacity that Validate() accepts.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "tamis/base/status.h"

namespace tamis {

struct FilterOptions {
  uint64_t capacity = 0;  // keys that it holds at the rate below
  double fpr = 0.01;      // false-positive rate when it holds that many
  uint64_t seed = 0;  // the seed of the hash that makes 64-bit hashes of keys; kept in the bytes

  static constexpr uint64_t kMaxCapacity = uint64_t{1} << 31;
  static constexpr double kMinFpr = 0x1p-30;

  // kInvalidArgument names the option and its bounds.
  Status Validate() const {
    if (capacity < 1 || capacity > kMaxCapacity) {
      return InvalidArgument(
          "cannot make a filter: capacity is " + std::to_string(capacity) +
          ", it must be from 1 to " + std::to_string(kMaxCapacity) +
          (capacity < 1 ? "" : " (2^31); divide the keys among several filters"));
    }
    if (!(fpr >= kMinFpr && fpr <= 0.5)) {
      char rate[32];
      char* const end = std::to_chars(rate, rate + sizeof rate, fpr).ptr;
      return InvalidArgument("cannot make a filter: fpr is " + std::string(rate, end) +
                             ", it must be from 1e-9 to 0.5");
    }
    return Status::Ok();
  }
};

// Bit i % 64 of word i / 64 answers the i-th question of a batch.
using Bitmap = std::vector<uint64_t>;

inline Bitmap AllOnes(size_t n) {
  Bitmap ones((n + 63) / 64, ~uint64_t{0});
  if (n % 64 != 0) ones.back() >>= 64 - n % 64;
  return ones;
}

inline bool TestBit(const Bitmap& bitmap, size_t i) { return bitmap[i / 64] >> (i % 64) & 1; }

}  // namespace tamis
