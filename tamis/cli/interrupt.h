// Ctrl-C: cancels what is running instead of ending the program.
#pragma once

#include <atomic>

namespace tamis {

// While it lives, SIGINT sets `cancelled`; a second one ends the program. Inside another scope it
// does nothing: what is cancelled there stays cancelled.
class InterruptScope {
 public:
  explicit InterruptScope(std::atomic<bool>* cancelled);
  ~InterruptScope();

  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  bool outermost_;
};

}  // namespace tamis
