// A Status on the wire. Threads: values, no shared state.
#pragma once

#include "tamis/base/status.h"
#include "tamis/cluster/cluster.pb.h"

namespace tamis {

void SetError(const Status& status, pb::Error* error);

// A code that this build does not know becomes kInternal, and the message says so.
Status ToStatus(const pb::Error& error);

// Converts a field that is present only after a failure: never returns OK; an error field that says
// OK is kDataLoss.
Status FailureOf(const pb::Error& error);

}  // namespace tamis
