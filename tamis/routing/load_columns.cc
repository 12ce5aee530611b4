#include "tamis/routing/load_columns.h"

#include <algorithm>
#include <cstdint>

namespace tamis {

void LoadColumns(FilterMatrix* matrix, std::span<const FilterMatrix::Filling> fillings,
                 std::unique_lock<std::shared_mutex>* lock) {
  constexpr uint64_t kWordsAtOnce = 8192;  // words of rows that are loaded in one step
  const uint64_t words = (fillings.size() + 63) / 64;
  constexpr uint64_t kRows = FilterMatrix::kRowsAtOnce;
  const uint64_t step = std::max<uint64_t>(kWordsAtOnce / words / kRows, 1) * kRows;
  // The matrix may keep fewer positions while others have the lock.
  for (uint64_t first = 0; first < matrix->geometry().positions(); first += step) {
    {
      lock->unlock();
      const std::shared_lock beside(*lock->mutex());
      matrix->Bring(fillings, first, first + step);
    }
    lock->lock();
    matrix->Load(fillings, first, first + step);
  }
}

}  // namespace tamis
