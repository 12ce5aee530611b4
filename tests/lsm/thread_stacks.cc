#include "tests/lsm/thread_stacks.h"

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

namespace tamis::lsm {
namespace {

constexpr int kAsked = SIGUSR2;
constexpr int kDepth = 40;

void ShowStack(int) {
  char name[32] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  char head[96];
  const int size =
      std::snprintf(head, sizeof head, "--- thread %ld (%s)\n", syscall(SYS_gettid), name);
  (void)!write(STDERR_FILENO, head, static_cast<size_t>(size));
  void* frames[kDepth];
  backtrace_symbols_fd(frames, backtrace(frames, kDepth), STDERR_FILENO);
}

}  // namespace

void ShowStacksWhenAsked() {
  void* frame[1];
  backtrace(frame, 1);  // loads what it needs, which a handler could not
  struct sigaction action {};
  action.sa_handler = ShowStack;
  action.sa_flags = SA_RESTART;
  sigaction(kAsked, &action, nullptr);
}

void AskForStacks(pid_t process) {
  std::error_code error;
  const std::string threads = "/proc/" + std::to_string(process) + "/task";
  for (const auto& entry : std::filesystem::directory_iterator(threads, error)) {
    const std::string name = entry.path().filename().string();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread == 0 || syscall(SYS_tgkill, process, thread, kAsked) != 0) continue;
    usleep(50'000);  // one after the other
  }
}

}  // namespace tamis::lsm
