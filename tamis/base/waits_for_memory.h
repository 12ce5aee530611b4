// WaitsForMemory: operator new tries again on a thread through which no exception can pass.
//
// While an object lives, operator new on the thread that made it waits until there is memory, for
// half a minute; then it throws std::bad_alloc, as it does at once on other threads. It is for code
// in which std::bad_alloc would end the process, or leave something half done: RocksDB's, and the
// handlers of a client's thread. Before such code allocates large pieces, HasMemoryFor tells
// whether they can be had.
//
// This is done by the new-handler of the process (std::set_new_handler), which calls the one that
// was there before for all other threads. It stays: a shared library with it must not be unloaded.
#pragma once

#include <cstddef>

namespace tamis {

class WaitsForMemory {
 public:
  WaitsForMemory();
  ~WaitsForMemory();
  WaitsForMemory(const WaitsForMemory&) = delete;
  WaitsForMemory& operator=(const WaitsForMemory&) = delete;
};

// Whether so many bytes can be allocated now. Does not wait.
bool HasMemoryFor(size_t bytes);

}  // namespace tamis
