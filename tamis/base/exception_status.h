// Exceptions at a boundary that none may cross: a callback that another library calls, a task of an
// executor, a public function that promises a Status.
//
// Code in between lets std::bad_alloc pass and keeps its objects usable; the boundary turns it into
// the error of the one request.
#pragma once

#include "tamis/base/status.h"

namespace tamis {

// The status of a request for which there was not enough memory: kResourceExhausted. Makes no
// allocation.
Status OutOfMemory();
// Whether the status is that one, also behind a context and from another process.
bool IsOutOfMemory(const Status& status);

// The status of the exception that is being handled: OutOfMemory() for std::bad_alloc, kInternal
// with its text for others. REQUIRES: called from a catch clause.
Status StatusOfException() noexcept;

// Returns what `function` returns (a Status or a Result), or the status of the exception that ended
// it.
template <class Function>
auto WithoutExceptions(Function&& function) noexcept -> decltype(function()) {
  try {
    return function();
  } catch (...) {
    return StatusOfException();
  }
}

}  // namespace tamis
