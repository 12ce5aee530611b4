// HugePages: the large arrays of filters, whose pages of 4 KB are joined to pages of 2 MB a few at
// a time.
//
// A filter jumps about in its array, and with small pages most jumps walk the page table, too. But
// the system clears a page when it is first touched: if the pages were huge from the beginning, a
// thousand items added to a new filter for a hundred million would clear all of it, and the server
// would stand still meanwhile. So an array begins with small pages, and the server's clock
// (Advance) joins the pages that were touched. A child process that saves makes the system split
// them again; they are joined again after it has ended.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <mutex>

namespace tamis::redis {

class HugePages {
 public:
  static constexpr size_t kSize = size_t{2} << 20;

  HugePages();

  // Notes an array; one without a whole huge page is left out. If memory does not suffice to note
  // it, its pages stay small.
  void Add(void* array, size_t size) noexcept;
  // To be called before the array is freed or moved, by any thread.
  void Remove(void* array) noexcept;

  // Calls join(page) for the next `count` huge pages, round and round all arrays.
  template <class Join>
  void Advance(size_t count, Join&& join) {
    const std::lock_guard lock(mutex_);
    for (; count > 0; --count) {
      char* page = NextPage();
      if (page == nullptr) return;
      join(page);
      cursor_ = page + kSize;
    }
  }

 private:
  // The whole huge pages of an array.
  struct Pages {
    char* begin;
    char* end;
  };

  char* NextPage() const;  // nullptr when there is none
  bool InChild() const;

  std::mutex mutex_;  // the server frees in a thread of its own, too
  std::map<char*, Pages> arrays_;
  char* cursor_ = nullptr;
  pid_t process_;
};

}  // namespace tamis::redis
