// Published claims about the filters of this library, each section a publication or a part of one:
// its tables and quoted tests as printed, by formula, and measured on our filters.
//
// The same seed gives the same figures everywhere. No times: they are not reproducible (times.h).
#pragma once

#include <cstdint>

#include "papers/document.h"

namespace tamis {

struct CounterRuns;

Section SplitCountingSizes(uint64_t seed);
Section Overflow(uint64_t seed, const CounterRuns& runs);
Section DLeft(uint64_t seed);
Section CacheSystems(uint64_t seed);
Section Penetration(uint64_t seed);
Section Cuckoo(uint64_t seed);
Section LevelIds(uint64_t seed);

}  // namespace tamis
