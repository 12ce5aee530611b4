// AnswerExceptions: runs a step of a request; an exception (std::bad_alloc) becomes the answer.
// REQUIRES: `run` throws only before it has answered.
#pragma once

#include <utility>

#include "tamis/base/exception_status.h"
#include "tamis/cluster/region_server.h"

namespace tamis {

template <class Reply, class Function>
void AnswerExceptions(const Callback<Reply>& done, Function&& run) noexcept {
  try {
    run();
  } catch (...) {
    done(StatusOfException());
  }
}

}  // namespace tamis
