#include "tamis/base/testing/failing_allocations.h"

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace tamis {
namespace {

thread_local constinit bool is_on = false;
thread_local constinit bool is_only_one = false;
thread_local constinit uint64_t before_failure = 0;
thread_local constinit uint64_t failures = 0;
using IsExempt = bool (*)();
constinit IsExempt is_exempt_now = nullptr;
constinit bool asks_handler = false;

bool Fails() {
  if (!is_on) return false;
  if (before_failure > 0) {
    --before_failure;
    return false;
  }
  if (is_exempt_now != nullptr && is_exempt_now()) return false;
  ++failures;
  if (is_only_one) is_on = false;
  return true;
}

}  // namespace

void* AllocateOrFail(size_t size, size_t alignment) {
  while (Fails()) {
    const std::new_handler handler = asks_handler ? std::get_new_handler() : nullptr;
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
  if (size == 0) size = 1;
  void* const place =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(size)
          : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (place == nullptr) throw std::bad_alloc();
  return place;
}

FailingAllocations::FailingAllocations(uint64_t before, bool only_one) { Begin(before, only_one); }

void FailingAllocations::Begin(uint64_t before, bool only_one) {
  before_failure = before;
  is_only_one = only_one;
  failures = 0;
  is_on = true;
}

void FailingAllocations::End() { is_on = false; }

FailingAllocations::~FailingAllocations() { End(); }

void FailingAllocations::Exempt(bool (*is_exempt)()) { is_exempt_now = is_exempt; }

uint64_t FailingAllocations::failed() { return failures; }

void FailingAllocations::AskNewHandler() { asks_handler = true; }

FailingAllocations::Pause::Pause() : was_on_(std::exchange(is_on, false)) {}

FailingAllocations::Pause::~Pause() { is_on = was_on_; }

}  // namespace tamis

namespace {

void* AllocateOrNull(size_t size, size_t alignment) noexcept {
  try {
    return tamis::AllocateOrFail(size, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

// All forms: a sanitizer has replacements of its own for those that are missing.
void* operator new(size_t size) { return tamis::AllocateOrFail(size, 0); }
void* operator new[](size_t size) { return tamis::AllocateOrFail(size, 0); }
void* operator new(size_t size, std::align_val_t alignment) {
  return tamis::AllocateOrFail(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return tamis::AllocateOrFail(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return AllocateOrNull(size, 0); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return AllocateOrNull(size, 0);
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return AllocateOrNull(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return AllocateOrNull(size, static_cast<size_t>(alignment));
}
void operator delete(void* place) noexcept { std::free(place); }
void operator delete[](void* place) noexcept { std::free(place); }
void operator delete(void* place, size_t) noexcept { std::free(place); }
void operator delete[](void* place, size_t) noexcept { std::free(place); }
void operator delete(void* place, std::align_val_t) noexcept { std::free(place); }
void operator delete[](void* place, std::align_val_t) noexcept { std::free(place); }
void operator delete(void* place, size_t, std::align_val_t) noexcept { std::free(place); }
void operator delete[](void* place, size_t, std::align_val_t) noexcept { std::free(place); }
void operator delete(void* place, const std::nothrow_t&) noexcept { std::free(place); }
void operator delete[](void* place, const std::nothrow_t&) noexcept { std::free(place); }
void operator delete(void* place, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(place);
}
void operator delete[](void* place, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(place);
}
