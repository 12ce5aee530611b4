#include "tamis/cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "tamis/cli/command.h"

namespace tamis {
namespace {

// Read by the signal handler.
std::atomic<std::atomic<bool>*> current = nullptr;
struct sigaction former;

void OnInterrupt(int) {
  std::atomic<bool>* cancelled = current.load();
  if (cancelled == nullptr || cancelled->exchange(true)) _exit(kExitInterrupted);
}

}  // namespace

InterruptScope::InterruptScope(std::atomic<bool>* cancelled)
    : outermost_(current.load() == nullptr) {
  if (!outermost_) return;
  cancelled->store(false);
  current = cancelled;
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &former);
}

InterruptScope::~InterruptScope() {
  if (!outermost_) return;
  sigaction(SIGINT, &former, nullptr);
  current = nullptr;
}

}  // namespace tamis
