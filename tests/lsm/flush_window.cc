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
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace tamis::lsm
