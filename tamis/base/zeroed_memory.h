// ZeroedMemory: where large arrays of zeros come from. It can say no, since a filter may be as
// large as the machine, and leaves pages untouched that the system gives as zeros: what is as large
// as a machine is made at once, and costs memory as it is filled.
#pragma once

#include <cstddef>

namespace tamis {

struct ZeroedMemory {
  void* (*allocate)(size_t size);  // nullptr when there is not so much
  void (*free)(void* bytes);
  // Whether huge pages are asked for at once. To clear one takes the better part of a millisecond,
  // at the first touch; who cannot wait for it sees to them himself.
  bool huge_pages = true;
};

// The C library's, unless somebody says another one.
const ZeroedMemory& TheZeroedMemory();
// REQUIRES: none of it is in use.
void SetZeroedMemory(ZeroedMemory memory);

}  // namespace tamis
