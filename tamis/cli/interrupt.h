// Ctrl-C: cancels what is running instead of ending the program.
#pragma once

#include <signal.h>

#include <atomic>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tamis {

// While it lives, each of the signals sets `cancelled`; a second one ends the program. A signal
// that is ignored stays ignored. Inside another scope it does nothing: what is cancelled there
// stays cancelled.
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

// The flag that the InterruptScope sets which lives; null where none does.
const std::atomic<bool>* InterruptFlag();

// A wait for a person at the terminal, inside an InterruptScope: SIGINT sets `cancelled` and ends a
// read() with EINTR, and a second SIGINT does not end the program. An interrupt before the wait is
// forgotten. Uses SIGALRM.
class PromptScope {
 public:
  PromptScope();
  ~PromptScope();

  PromptScope(const PromptScope&) = delete;
  PromptScope& operator=(const PromptScope&) = delete;

  bool interrupted() const;
};

}  // namespace tamis
