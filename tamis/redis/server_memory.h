// All memory of the module is the server's, so that maxmemory and INFO count it: operator new is
// its allocator as soon as the module is loaded, and so are byte arrays.
#pragma once

#include <cstddef>
#include <thread>
#include <utility>

#include "tamis/redis/server.h"

namespace tamis::redis {

// REQUIRES: server.Resolve() was called.
int UseServerMemory(Ctx* ctx);

// A large array that the server itself has allocated for a filter, or moved.
void ArrayTaken(void* array, size_t size);
void ArrayMoved(void* from, void* to, size_t size);

// The bytes that the server's allocator takes, and INFO counts, for an array of this size.
size_t AllocatedBytes(size_t size);

// Frees a value without delaying the calling thread: giving a large array back to the system takes
// some 60 ms a gigabyte. Ends the life of `value`, in a thread of its own when it has that many
// bytes.
template <class Value>
void FreeLater(Value value, size_t bytes) noexcept {
  constexpr size_t kFreedAtOnce = size_t{16} << 20;
  if (bytes <= kFreedAtOnce) return;
  try {
    std::thread([owned = std::move(value)] {}).detach();
  } catch (...) {  // no thread is to be had: it is freed here
  }
}

}  // namespace tamis::redis
