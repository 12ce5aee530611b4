// A filter that somebody asks for: by a rate, a capacity and options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tamis/filter/any_filter.h"
#include "tamis/redis/command.h"

namespace tamis::redis {

struct WantedFilter {
  FilterOptions options;
  const FilterType* type = nullptr;
  bool guard = false;
  uint64_t id = 0;
  uint64_t lease_s = 600;

  double BitsPerKey() const { return AnyFilter::BitsPerKey(*type, options.fpr); }
  double Bytes() const { return BitsPerKey() / 8 * static_cast<double>(options.capacity); }
  std::string Rate() const;  // as a word for a replica
};

// For a rebuild, in seconds.
inline constexpr long long kGreatestLease = 1'000'000'000;

enum class Purpose { kReserve, kRebuild, kSize };

// False, and the error is sent, when `words`, a rate, a capacity and options, do not say it.
bool ReadWanted(Ctx* ctx, Words words, Purpose purpose, WantedFilter* wanted);

// nullopt, and the error is sent, when memory does not suffice.
std::optional<AnyFilter> Create(Ctx* ctx, const WantedFilter& wanted);

}  // namespace tamis::redis
