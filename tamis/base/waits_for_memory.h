// WaitsForMemory: operator new tries again on a thread through which no exception can pass.
//
// While one lives, operator new of the calling thread waits until there is memory, for half a
// minute; then std::bad_alloc is thrown, as it is at once on other threads. It is for code that
// std::bad_alloc would end the process in, or leave half done: RocksDB's, and the handlers of a
// client's thread. Large pieces are asked for by HasMemoryFor before.
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

// Whether so many bytes could be had just now. Waits for nothing.
bool HasMemoryFor(size_t bytes);

}  // namespace tamis
