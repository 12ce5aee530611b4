#include "tests/lsm/flush_window.h"

#include <chrono>
#include <thread>
#include <utility>

namespace tamis::lsm {

thread_local bool FlushWindow::opens_ = false;

void FlushWindow::Pass(const std::atomic<bool>& stops) {
  if (!std::exchange(opens_, false)) return;
  const uint64_t before = flushed_;
  wants_flush_ = true;
  // Half a second at most: a flush may be held up for longer, and the reader goes on without it.
  for (int i = 0; i < 500 && flushed_ == before && !stops; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void FlushWindow::FlushWhereWanted(const std::atomic<bool>& stops) {
  while (!stops) {
    if (wants_flush_.exchange(false)) {
      for (rocksdb::ColumnFamilyHandle* family : database_.fixed) {
        (void)database_.base->Flush({}, family);
      }
      ++flushed_;
    }
    // Readers only set a flag: they must not wait for a lock where they are made to stop.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace tamis::lsm
