#include "tamis/cli/interrupt.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "tamis/cli/command.h"

namespace tamis {
namespace {

// Read by the signal handler.
std::atomic<std::atomic<bool>*> current = nullptr;
std::atomic<bool> prompting = false;

// Sends a SIGALRM soon, or with 0 none.
void SetAlarm(int microseconds) {
  const itimerval once = {.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = microseconds}};
  setitimer(ITIMER_REAL, &once, nullptr);
}

constexpr int kRepeatMicroseconds = 20'000;

void OnInterrupt(int) {
  std::atomic<bool>* cancelled = current.load();
  if (cancelled == nullptr) _exit(kExitInterrupted);
  if (cancelled->exchange(true) && !prompting) _exit(kExitInterrupted);
  if (prompting) SetAlarm(kRepeatMicroseconds);
}

// A signal that comes just before a read() does not end the read: it is repeated until the wait
// is over.
void OnAlarm(int) {
  if (prompting) SetAlarm(kRepeatMicroseconds);
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

const std::atomic<bool>* InterruptFlag() { return current.load(); }

PromptScope::PromptScope() {
  struct sigaction action = {};
  action.sa_handler = OnAlarm;  // without SA_RESTART
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, nullptr);  // stays: a late alarm must not end the program
  if (std::atomic<bool>* cancelled = current.load()) cancelled->store(false);
  prompting = true;
}

PromptScope::~PromptScope() {
  prompting = false;
  SetAlarm(0);
}

bool PromptScope::interrupted() const {
  const std::atomic<bool>* cancelled = InterruptFlag();
  return cancelled != nullptr && cancelled->load();
}

}  // namespace tamis
