// Ctrl-C: cancels what is running instead of ending the program.
#pragma once

#include <signal.h>

#include <atomic>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tamis {

// While it lives, each of the signals sets `cancelled`; a second one ends the program. A signal that
// is ignored stays ignored. Inside another scope it does nothing: what is cancelled there stays
// cancelled.
class InterruptScope {
 public:
  explicit InterruptScope(std::atomic<bool>* cancelled,
                          std::initializer_list<int> signals = {SIGINT});
  ~InterruptScope();

  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  bool outermost_;
  std::vector<std::pair<int, struct sigaction>> former_;
};

}  // namespace tamis
