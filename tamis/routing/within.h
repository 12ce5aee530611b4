// FindWithin: the one inner loop of a question for a range of values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tamis {

// For i < 64 * words, as bits: in `inside` those with max[i] > low and min[i] < high, in `edge`
// those of the rest with max[i] >= low and min[i] <= high. Uses the widest vectors that this
// processor has.
void FindWithin(const uint64_t* min, const uint64_t* max, size_t words, uint64_t low, uint64_t high,
                uint64_t* inside, uint64_t* edge);

// The same, a number at a time.
void FindWithinScalar(const uint64_t* min, const uint64_t* max, size_t words, uint64_t low,
                      uint64_t high, uint64_t* inside, uint64_t* edge);

}  // namespace tamis
