// PatientEnv: an Env whose background jobs wait for memory where there is none.
//
// RocksDB runs flushes and compactions on threads of its own, through which no exception can pass:
// std::bad_alloc ends the process there. Nor can it pass through DB::Write, which leaves its queue
// of writers with a leader that is gone. Both run with a WaitsForMemory (base/waits_for_memory.h).
#pragma once

#include <rocksdb/env.h>

namespace tamis {

class PatientEnv : public rocksdb::EnvWrapper {
 public:
  explicit PatientEnv(rocksdb::Env* target) : EnvWrapper(target) {}

  void Schedule(void (*function)(void* argument), void* argument, Priority priority, void* tag,
                void (*unschedule)(void* argument)) override;
};

}  // namespace tamis
