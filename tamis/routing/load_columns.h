// LoadColumns: loads bits into columns of a FilterMatrix, in steps between which searches run.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <span>

#include "tamis/routing/filter_matrix.h"

namespace tamis {

// Loads the bits position by position. The caller holds the lock of the matrix; before each step it
// is released for a moment, so that searches and other replies can go on.
// REQUIRES: no search reads the columns yet.
void LoadColumns(FilterMatrix* matrix, std::span<const FilterMatrix::Filling> fillings,
                 std::unique_lock<std::shared_mutex>* lock);

}  // namespace tamis
