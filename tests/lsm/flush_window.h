// FlushWindow: flushes between the two questions of one reader. Threads that run freely hardly ever
// meet there.
#pragma once

#include <atomic>
#include <cstdint>

#include "tests/lsm/oracle_database.h"

namespace tamis::lsm {

class FlushWindow {
 public:
  explicit FlushWindow(OracleDatabase* database) : database_(*database) {}

  // The next question of this thread is one to flush in.
  static void Open(bool opens) { opens_ = opens; }
  // Called between questions (faults.h).
  void Pass(const std::atomic<bool>& stops);
  // On a thread of its own: who holds a guard may not wait for what may be waiting for its end.
  void FlushWhereWanted(const std::atomic<bool>& stops);

 private:
  static thread_local bool opens_;

  OracleDatabase& database_;
  std::atomic<bool> wants_flush_{false};
  std::atomic<uint64_t> flushed_{0};
};

}  // namespace tamis::lsm
