#include "tamis/rocks/patient_env.h"

#include <memory>

#include "tamis/base/waits_for_memory.h"

namespace tamis {
namespace {

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

void PatientEnv::Schedule(void (*function)(void* argument), void* argument, Priority priority,
                          void* tag, void (*unschedule)(void* argument)) {
  const WaitsForMemory waits;
  EnvWrapper::Schedule(Run, new Job{function, unschedule, argument}, priority, tag, Unschedule);
}

}  // namespace tamis
