#include "tamis/rocks/patient_env.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

namespace tamis {
namespace {

// The handler that operator new calls where malloc finds no memory.
void HandleNoMemory() { std::get_new_handler()(); }

TEST(PatientEnvTest, AJobOfTheBackgroundWaitsForMemoryAndOthersDoNot) {
  PatientEnv env(rocksdb::Env::Default());
  struct Seen {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    bool threw = false;
  } seen;
  env.Schedule(
      [](void* argument) {
        auto* seen = static_cast<Seen*>(argument);
        bool threw = false;
        try {
          HandleNoMemory();
        } catch (const std::bad_alloc&) {
          threw = true;
        }
        std::lock_guard lock(seen->mutex);
        seen->threw = threw;
        seen->done = true;
        seen->changed.notify_all();
      },
      &seen, rocksdb::Env::LOW, nullptr, nullptr);
  std::unique_lock lock(seen.mutex);
  seen.changed.wait(lock, [&] { return seen.done; });
  EXPECT_FALSE(seen.threw);
  EXPECT_THROW(HandleNoMemory(), std::bad_alloc);
}

TEST(PatientEnvTest, UnscheduledJobCallsItsUnscheduleFunction) {
  PatientEnv env(rocksdb::Env::Default());
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
    bool begun = false;
  };
  // The job keeps it: it may still wake up when the test has ended.
  const auto gate = std::make_shared<Gate>();
  // The one thread of this priority is busy, so that the next job stays in the queue.
  env.SetBackgroundThreads(1, rocksdb::Env::BOTTOM);
  env.Schedule(
      [](void* argument) {
        const std::unique_ptr<std::shared_ptr<Gate>> owned(
            static_cast<std::shared_ptr<Gate>*>(argument));
        Gate* const gate = owned->get();
        std::unique_lock lock(gate->mutex);
        gate->begun = true;
        gate->changed.notify_all();
        gate->changed.wait(lock, [&] { return gate->open; });
      },
      new std::shared_ptr<Gate>(gate), rocksdb::Env::BOTTOM, nullptr, nullptr);
  {
    std::unique_lock lock(gate->mutex);
    gate->changed.wait(lock, [&] { return gate->begun; });
  }
  int taken_back = 0;
  env.Schedule([](void*) { FAIL() << "it was taken back"; }, &taken_back, rocksdb::Env::BOTTOM,
               &taken_back, [](void* argument) { ++*static_cast<int*>(argument); });
  EXPECT_EQ(env.UnSchedule(&taken_back, rocksdb::Env::BOTTOM), 1);
  EXPECT_EQ(taken_back, 1);
  std::lock_guard lock(gate->mutex);
  gate->open = true;
  gate->changed.notify_all();
}

}  // namespace
}  // namespace tamis
