// RegionId: the number of a region. A cluster never gives one number to two regions that exist at
// the same time. It has 63 bits, since SQL and Java have only signed integers; zero is no region.
//
// Threads: a value.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "tamis/base/status.h"

namespace tamis {

class RegionId {
 public:
  constexpr RegionId() = default;  // the id of no region
  // REQUIRES: IsValid(number).
  explicit constexpr RegionId(uint64_t number) : number_(number) { assert(IsValid(number)); }

  static constexpr bool IsValid(uint64_t number) { return number != 0 && number >> 63 == 0; }
  // Checks a number that came from a network, a disk or a person.
  static Result<RegionId> Of(uint64_t number) {
    if (IsValid(number)) return RegionId(number);
    return InvalidArgument(std::to_string(number) +
                           " is no number of a region; those are from 1 to 2^63 - 1");
  }

  constexpr uint64_t number() const { return number_; }
  // The form that people see and write, in messages and lists alike.
  std::string ToString() const { return std::to_string(number_); }

  friend constexpr auto operator<=>(RegionId, RegionId) = default;

 private:
  uint64_t number_ = 0;
};

}  // namespace tamis
