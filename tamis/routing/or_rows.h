// OrRows: the one inner loop of a cell matrix.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tamis {

// out[w] |= rows[w] | rows[stride + w] | ... for w < words, over `count` rows. Uses the widest
// vectors that this processor has.
void OrRows(const uint64_t* rows, size_t stride, size_t count, size_t words, uint64_t* out);

// The same, a word at a time.
void OrRowsScalar(const uint64_t* rows, size_t stride, size_t count, size_t words, uint64_t* out);

}  // namespace tamis
