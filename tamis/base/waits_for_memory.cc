#include "tamis/base/waits_for_memory.h"

#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

namespace tamis {
namespace {

constexpr auto kPause = std::chrono::milliseconds(10);
constexpr int kPauses = 3000;

thread_local int waiting = 0;  // WaitsForMemory that live on this thread
thread_local int pauses = 0;   // since the first of them
std::new_handler previous = nullptr;

void WaitOrFail() {
  if (waiting > 0 && pauses < kPauses) {
    ++pauses;
    std::this_thread::sleep_for(kPause);
    return;
  }
  if (previous == nullptr) throw std::bad_alloc();
  previous();
}

}  // namespace

WaitsForMemory::WaitsForMemory() {
  static const bool installed = [] {
    previous = std::set_new_handler(WaitOrFail);
    return true;
  }();
  (void)installed;
  if (waiting++ == 0) pauses = 0;
}

WaitsForMemory::~WaitsForMemory() { --waiting; }

bool HasMemoryFor(size_t bytes) {
  void* const volatile probe = std::malloc(bytes);  // the compiler must not leave it out
  std::free(probe);
  return probe != nullptr;
}

}  // namespace tamis
