#include "tamis/redis/server_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <fstream>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tamis/base/zeroed_memory.h"
#include "tamis/redis/faults.h"
#include "tamis/redis/huge_pages.h"

namespace tamis::redis {

namespace {

void* TryAllocate(size_t size) {
  if (server.TryAlloc == nullptr || AllocationFails()) return nullptr;
  return server.TryAlloc(size == 0 ? 1 : size);
}

// From Linux 6.1; the C library's headers may lack it.
constexpr int kJoinPages = 25;  // MADV_COLLAPSE
constexpr ServerEvent kClockEvent = {8, 1};
// Joining one takes about a millisecond.
constexpr size_t kPagesATime = 4;
constexpr long long kTimeBetween = 100;  // milliseconds

// jemalloc's: four to each power of two.
bool has_size_classes = false;

void FindSizeClasses() {
  constexpr size_t kClass = size_t{5} << 20;
  constexpr size_t kBelow = kClass - (size_t{900} << 10);
  void* probe = server.TryAlloc == nullptr ? nullptr : server.TryAlloc(kBelow);
  if (probe == nullptr) return;
  has_size_classes = server.MallocSize(probe) >= kClass;
  server.Free(probe);
}

// Lives as long as the server, whose threads go on when its main one ends.
HugePages* huge_pages = nullptr;

// The administrator has switched huge pages off for the whole machine. MADV_COLLAPSE would ignore
// that.
bool HugePagesAreUnwanted() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string modes;
  std::getline(file, modes);
  return modes.find("[never]") != modes.npos;
}

void OnClock(Ctx*, ServerEvent, uint64_t, void*) noexcept {
  static long long last = 0;
  const long long now = server.Milliseconds();
  if (now >= last && now - last < kTimeBetween) return;
  last = now;
  // Memory shared with a child process would be copied.
  if ((server.GetContextFlags(nullptr) & kFlagActiveChild) != 0) return;
  // The call fails, and does no harm, if the page was not touched yet, and on older systems.
  huge_pages->Advance(kPagesATime,
                      [](char* page) { (void)madvise(page, HugePages::kSize, kJoinPages); });
}

// Frees in one thread, which is there while there is something to free.
class Freeing {
 public:
  // Takes the garbage, unless there is no memory or no thread for it.
  void Add(Garbage* garbage) noexcept {
    const std::lock_guard lock(mutex_);
    try {
      waiting_.reserve(waiting_.size() + 1);
      if (!runs_) std::thread([this] { Run(); }).detach();
    } catch (...) {
      return;
    }
    runs_ = true;
    waiting_.push_back(std::move(*garbage));
    ++figures_.all;
    ++figures_.waiting;
  }

  FreedInBackground figures() {
    const std::lock_guard lock(mutex_);
    return figures_;
  }

 private:
  void Run() {
    std::vector<Garbage> garbage;
    while (true) {
      const size_t freed = garbage.size();
      garbage.clear();
      const std::lock_guard lock(mutex_);
      figures_.waiting -= freed;
      runs_ = !waiting_.empty();
      if (!runs_) return;
      garbage.swap(waiting_);
    }
  }

  std::mutex mutex_;
  std::vector<Garbage> waiting_;
  bool runs_ = false;
  FreedInBackground figures_;
};

// Lives as long as the server, as the huge pages do.
Freeing* freeing = nullptr;
// That of the server, whose children have no threads.
pid_t process = 0;
std::thread::id main_thread;

}  // namespace

void FreeInBackground(Garbage garbage) noexcept {
  // A thread of the server's own (UNLINK) must not call the server, and delays no client.
  if (std::this_thread::get_id() != main_thread || getpid() != process) return;
  // Above maxmemory the server evicts keys until it has seen enough memory come back.
  if (server.GetUsedMemoryRatio() >= 1) return;
  freeing->Add(&garbage);
}

FreedInBackground FiguresOfFreeing() noexcept { return freeing->figures(); }

size_t AllocatedBytes(size_t size) {
  constexpr size_t kLeast = 128;
  if (!has_size_classes || size <= kLeast) return size;
  const size_t step = std::bit_floor(size - 1) / 4;
  return (size + step - 1) / step * step;
}

void* AllocateOrThrow(size_t size) {
  if (void* bytes = TryAllocate(size)) return bytes;
  throw std::bad_alloc();
}

void* AllocateOrNot(size_t size) noexcept { return TryAllocate(size); }

void ArrayTaken(void* array, size_t size) {
  if (array != nullptr) huge_pages->Add(array, size);
}

void ArrayMoved(void* from, void* to, size_t size) {
  huge_pages->Remove(from);
  huge_pages->Add(to, size);
}

int UseServerMemory(Ctx* ctx) {
  huge_pages = new HugePages;
  freeing = new Freeing;
  process = getpid();
  main_thread = std::this_thread::get_id();
  FindSizeClasses();
  SetZeroedMemory({
      // The server's calloc ends it when there is no memory, and only its malloc can say so. Both
      // leave large memory untouched; what was just given back is there to be given again.
      [](size_t size) -> void* {
        void* probe = TryAllocate(size);
        if (probe == nullptr) return nullptr;
        server.Free(probe);
        void* bytes = server.Calloc(size, 1);
        ArrayTaken(bytes, size);
        return bytes;
      },
      [](void* bytes) {
        huge_pages->Remove(bytes);
        server.Free(bytes);
      },
      /*huge_pages=*/false,
  });
  return HugePagesAreUnwanted() ? kOk : server.SubscribeToServerEvent(ctx, kClockEvent, OnClock);
}

}  // namespace tamis::redis

// Before the server's functions are known, only the loader runs code of this module, and none of it
// may allocate: operator new fails, since a block from elsewhere would later be given to the
// server's free. The C++ library's own pool comes from malloc.
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
  void* aligned = static_cast<void**>(block) + 1;
  size_t space = size + align;
  std::align(align, size, aligned, space);
  static_cast<void**>(aligned)[-1] = block;
  return aligned;
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
