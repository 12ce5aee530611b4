// AndRows: the one inner loop of a filter matrix.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tamis {

// out[w] = rows[0][w] & ... & rows[count - 1][w] for w < words. REQUIRES: count >= 1.
// Uses the widest vectors that this processor has.
void AndRows(const uint64_t* const* rows, size_t count, size_t words, uint64_t* out);

// The same, a word at a time.
void AndRowsScalar(const uint64_t* const* rows, size_t count, size_t words, uint64_t* out);

}  // namespace tamis
