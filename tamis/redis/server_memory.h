// All memory of the module is the server's, so that maxmemory and INFO count it: operator new is
// its allocator as soon as the module is loaded, and so are byte arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
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

// Something whose end gives memory back.
using Garbage = std::unique_ptr<void, void (*)(void*)>;

// Frees it in a thread of its own; here where none is to be had, and in any thread but the server's
// main one.
void FreeInBackground(Garbage garbage) noexcept;

// How much of it the thread was given, and how much it has not freed yet.
struct FreedInBackground {
  uint64_t all = 0;
  uint64_t waiting = 0;
};
FreedInBackground FiguresOfFreeing() noexcept;

// Frees a value that holds `bytes` without delaying the calling thread: giving a large array back
// to the system takes some 60 ms a gigabyte.
template <class Value>
void FreeLater(std::unique_ptr<Value> value, size_t bytes) noexcept {
  constexpr size_t kFreedAtOnce = size_t{4} << 20;
  if (bytes <= kFreedAtOnce) return;
  FreeInBackground({value.release(), [](void* freed) { delete static_cast<Value*>(freed); }});
}
template <class Value>
void FreeLater(Value value, size_t bytes) noexcept {
  try {
    FreeLater(std::make_unique<Value>(std::move(value)), bytes);
  } catch (const std::bad_alloc&) {  // it is freed here
  }
}

}  // namespace tamis::redis
