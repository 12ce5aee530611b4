#include "tamis/cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "tamis/cli/command.h"

namespace tamis {
namespace {

// Read by the signal handler.
std::atomic<std::atomic<bool>*> current = nullptr;

void OnInterrupt(int) {
  std::atomic<bool>* cancelled = current.load();
  if (cancelled == nullptr || cancelled->exchange(true)) _exit(kExitInterrupted);
}

}  // namespace

InterruptScope::InterruptScope(std::atomic<bool>* cancelled, std::initializer_list<int> signals)
    : outermost_(current.load() == nullptr) {
  if (!outermost_) return;
  cancelled->store(false);
  current = cancelled;
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  sigemptyset(&action.sa_mask);
  for (const int signal : signals) {
    struct sigaction former = {};
    sigaction(signal, nullptr, &former);
    if (former.sa_handler == SIG_IGN) continue;  // `nohup`
    sigaction(signal, &action, nullptr);
    former_.emplace_back(signal, former);
  }
}

InterruptScope::~InterruptScope() {
  if (!outermost_) return;
  for (const auto& [signal, former] : former_) sigaction(signal, &former, nullptr);
  current = nullptr;
}

}  // namespace tamis
