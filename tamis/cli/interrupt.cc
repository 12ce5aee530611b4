#include "tamis/cli/interrupt.h"

#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

#include "tamis/cli/command.h"

namespace tamis {
namespace {

// Read by the signal handler.
std::atomic<sqlite3*> current_db = nullptr;
std::atomic<std::atomic<bool>*> current_cancelled = nullptr;
struct sigaction former;

void OnInterrupt(int) {
  std::atomic<bool>* cancelled = current_cancelled.load();
  if (cancelled == nullptr || cancelled->exchange(true)) _exit(kExitInterrupted);
  if (sqlite3* db = current_db.load()) sqlite3_interrupt(db);
}

}  // namespace

InterruptScope::InterruptScope(sqlite3* db, std::atomic<bool>* cancelled) : cancelled_(cancelled) {
  cancelled->store(false);
  current_db = db;
  current_cancelled = cancelled;
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &former);
}

InterruptScope::~InterruptScope() {
  sigaction(SIGINT, &former, nullptr);
  current_cancelled = nullptr;
  current_db = nullptr;
}

}  // namespace tamis
