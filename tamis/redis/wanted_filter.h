// WantedFilter: the filter that a command asks for, by a rate, a capacity and options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tamis/filter/any_filter.h"
#include "tamis/redis/command.h"
#include "tamis/redis/window.h"

namespace tamis::redis {

struct WantedFilter {
  FilterOptions options;
  const FilterType* type = nullptr;
  bool guard = false;
  uint64_t window_s = 0;  // 0 = items stay
  uint64_t slices = 0;    // slices of the window; 0 = it has none
  uint64_t id = 0;
  uint64_t lease_s = 600;

  // The options of a filter that is made: with a window, of one slice.
  FilterOptions OptionsOfOne() const {
    return slices == 0 ? options : Window::SliceOptions(options, slices);
  }
  double BytesOfOne() const;
  double Bytes() const {
    return BytesOfOne() * static_cast<double>(slices + 1);
  }  // bytes of all slices
  double BitsPerKey() const { return Bytes() * 8 / static_cast<double>(options.capacity); }
  double RateAtCapacity() const;
  std::string Rate() const;  // the rate in the form of a word for a replica
};

// For a rebuild, in seconds.
inline constexpr long long kGreatestLease = 1'000'000'000;
inline constexpr char kBadLease[] = "ERR bad lease: it is 0 to 1000000000 seconds";

enum class Purpose { kReserve, kRebuild, kSize };

// Reads `words`, a rate, a capacity and options. False, and the error is sent, when they are wrong
// or, except for kSize, the filter would be larger than the limits allow.
bool ReadWanted(Ctx* ctx, Words words, Purpose purpose, WantedFilter* wanted);

// nullopt, and the error is sent, when memory does not suffice.
std::optional<AnyFilter> Create(Ctx* ctx, const WantedFilter& wanted);

}  // namespace tamis::redis
