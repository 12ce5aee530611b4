#include "tamis/redis/huge_pages.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>

namespace tamis::redis {

HugePages::HugePages() : process_(getpid()) {}

void HugePages::Add(void* array, size_t size) noexcept try {
  void* first = array;
  if (InChild() || std::align(kSize, kSize, first, size) == nullptr) return;
  char* begin = static_cast<char*>(first);
  const std::lock_guard lock(mutex_);
  arrays_[static_cast<char*>(array)] = {begin, begin + size / kSize * kSize};
} catch (const std::bad_alloc&) {
}

void HugePages::Remove(void* array) noexcept {
  if (InChild()) return;
  const std::lock_guard lock(mutex_);
  arrays_.erase(static_cast<char*>(array));
}

char* HugePages::NextPage() const {
  if (arrays_.empty()) return nullptr;
  const auto behind = arrays_.upper_bound(cursor_);
  if (behind != arrays_.begin()) {
    const Pages& pages = std::prev(behind)->second;
    if (char* page = std::max(cursor_, pages.begin); page < pages.end) return page;
  }
  return (behind == arrays_.end() ? arrays_.begin() : behind)->second.begin;
}

// A child that saves has no threads and changes nothing; the lock may have been held when it began.
bool HugePages::InChild() const { return getpid() != process_; }

}  // namespace tamis::redis
