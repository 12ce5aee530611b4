#include "tamis/rocks/patient_env.h"

#include <chrono>
#include <memory>
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

struct Job {
  void (*function)(void* argument);
  void (*unschedule)(void* argument);
  void* argument;
};

void Run(void* job) {
  const std::unique_ptr<Job> owned(static_cast<Job*>(job));
  const WaitsForMemory waits;
  owned->function(owned->argument);
}

void Unschedule(void* job) {
  const std::unique_ptr<Job> owned(static_cast<Job*>(job));
  if (owned->unschedule != nullptr) owned->unschedule(owned->argument);
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

void PatientEnv::Schedule(void (*function)(void* argument), void* argument, Priority priority,
                          void* tag, void (*unschedule)(void* argument)) {
  const WaitsForMemory waits;
  EnvWrapper::Schedule(Run, new Job{function, unschedule, argument}, priority, tag, Unschedule);
}

}  // namespace tamis
