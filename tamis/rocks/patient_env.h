// PatientEnv: an Env whose background jobs wait for memory where there is none.
//
// RocksDB runs flushes and compactions on threads of its own, through which no exception can pass:
// std::bad_alloc ends the process there. Nor can it pass through DB::Write, which leaves its queue
// of writers with a leader that is gone. On a thread that WaitsForMemory operator new tries again
// until there is some, for half a minute; other threads fail at once, as before.
//
// This is done by the new-handler of the process (std::set_new_handler), which calls the one that
// was there before for all other threads. It stays: a shared library with it must not be unloaded.
#pragma once

#include <rocksdb/env.h>

namespace tamis {

// The calling thread waits while one of these lives.
class WaitsForMemory {
 public:
  WaitsForMemory();
  ~WaitsForMemory();
  WaitsForMemory(const WaitsForMemory&) = delete;
  WaitsForMemory& operator=(const WaitsForMemory&) = delete;
};

class PatientEnv : public rocksdb::EnvWrapper {
 public:
  explicit PatientEnv(rocksdb::Env* target) : EnvWrapper(target) {}

  void Schedule(void (*function)(void* argument), void* argument, Priority priority, void* tag,
                void (*unschedule)(void* argument)) override;
};

}  // namespace tamis
