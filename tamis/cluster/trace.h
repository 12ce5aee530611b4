// The trace context as a part of the messages to region servers.
//
// Threads: a pure function.
#pragma once

#include "tamis/base/trace_context.h"

namespace tamis {

template <class Request>
void SetTrace(const TraceContext& trace, Request* request) {
  if (trace.empty()) return;
  request->mutable_trace()->set_parent(trace.parent);
  request->mutable_trace()->set_state(trace.state);
}

}  // namespace tamis
