// ZeroedMemory: the allocator of large arrays of zeros, such as filters. It can refuse, since a
// filter may be as large as the machine's memory. It does not touch pages that the system gives as
// zeros: a large filter is made at once, and takes memory only as it is filled.
#pragma once

#include <cstddef>

namespace tamis {

struct ZeroedMemory {
  void* (*allocate)(size_t size);  // nullptr when memory does not suffice
  void (*free)(void* bytes);
  // Whether huge pages are requested at once. Clearing one takes most of a millisecond, at its
  // first touch; an allocator whose program cannot wait for that sets false and requests them
  // itself.
  bool huge_pages = true;
};

// The allocator in use: that of the C library, unless SetZeroedMemory has set another one.
const ZeroedMemory& TheZeroedMemory();
// REQUIRES: no array of the present allocator is in use.
void SetZeroedMemory(ZeroedMemory memory);

}  // namespace tamis
