// Ctrl-C: cancels what is running instead of ending the program.
#pragma once

#include <atomic>

struct sqlite3;

namespace tamis {

// While it lives, SIGINT sets `cancelled` and interrupts the connection (which may be null). One at
// a time. A second SIGINT without a change in between ends the program.
class InterruptScope {
 public:
  InterruptScope(sqlite3* db, std::atomic<bool>* cancelled);
  ~InterruptScope();

  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  bool interrupted() const { return cancelled_->load(); }

 private:
  std::atomic<bool>* cancelled_;
};

}  // namespace tamis
