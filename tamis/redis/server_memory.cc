#include "tamis/redis/server_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "tamis/base/zeroed_memory.h"
#include "tamis/redis/faults.h"
#include "tamis/redis/server.h"

namespace tamis::redis {

namespace {

void* TryAllocate(size_t size) {
  if (server.TryAlloc == nullptr || AllocationFails()) return nullptr;
  return server.TryAlloc(size == 0 ? 1 : size);
}

}  // namespace

void* AllocateOrThrow(size_t size) {
  if (void* bytes = TryAllocate(size)) return bytes;
  throw std::bad_alloc();
}

void* AllocateOrNot(size_t size) noexcept { return TryAllocate(size); }

void UseServerMemory() {
  SetZeroedMemory({
      // The server's calloc ends it when there is no memory, and only its malloc can say so. Both
      // leave large memory untouched; what was just given back is there to be given again.
      [](size_t size) -> void* {
        void* probe = TryAllocate(size);
        if (probe == nullptr) return nullptr;
        server.Free(probe);
        void* bytes = server.Calloc(size, 1);
        // A wish: a filter jumps about, and with pages of 4 KB most jumps walk the page table, too.
        // A copy that is made while a child saves is larger, but there are few of them in all.
        constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
        const auto begin = (reinterpret_cast<uintptr_t>(bytes) + kHugePage - 1) & ~(kHugePage - 1);
        const auto end = (reinterpret_cast<uintptr_t>(bytes) + size) & ~(kHugePage - 1);
        if (begin < end) {
          (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
        }
        return bytes;
      },
      [](void* bytes) { server.Free(bytes); },
  });
}

}  // namespace tamis::redis

// Before the server is known only what the loader itself runs allocates; the C++ library's own
// pool comes from malloc. A block is freed by whoever is there, so nothing may be allocated before.
void* operator new(size_t size) { return tamis::redis::AllocateOrThrow(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return tamis::redis::AllocateOrNot(size);
}
void* operator new[](size_t size) { return operator new(size); }
void* operator new[](size_t size, const std::nothrow_t& tag) noexcept {
  return operator new(size, tag);
}
void operator delete(void* bytes) noexcept {
  if (bytes != nullptr) tamis::redis::server.Free(bytes);
}
void operator delete(void* bytes, size_t) noexcept { operator delete(bytes); }
void operator delete[](void* bytes) noexcept { operator delete(bytes); }
void operator delete[](void* bytes, size_t) noexcept { operator delete(bytes); }

// The server's allocator knows no alignment beyond 16 bytes: a block remembers where it began.
void* operator new(size_t size, std::align_val_t alignment) {
  const auto align = static_cast<size_t>(alignment);
  if (size > ~size_t{0} - align - sizeof(void*)) throw std::bad_alloc();
  void* block = operator new(size + align + sizeof(void*));
  const auto begin = reinterpret_cast<uintptr_t>(block) + sizeof(void*);
  const uintptr_t aligned = (begin + align - 1) / align * align;
  reinterpret_cast<void**>(aligned)[-1] = block;
  return reinterpret_cast<void*>(aligned);
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return operator new(size, alignment);
}
void operator delete(void* bytes, std::align_val_t) noexcept {
  if (bytes != nullptr) operator delete(static_cast<void**>(bytes)[-1]);
}
void operator delete[](void* bytes, std::align_val_t alignment) noexcept {
  operator delete(bytes, alignment);
}
void operator delete(void* bytes, size_t, std::align_val_t alignment) noexcept {
  operator delete(bytes, alignment);
}
void operator delete[](void* bytes, size_t, std::align_val_t alignment) noexcept {
  operator delete(bytes, alignment);
}
