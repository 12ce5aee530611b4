// A Status on the wire. Threads: values, no shared state.
#pragma once

#include "tamis/base/status.h"
#include "tamis/cluster/cluster.pb.h"

namespace tamis {

void SetError(const Status& status, pb::Error* error);

// A code that this build does not know becomes kInternal, and the message says so.
Status ToStatus(const pb::Error& error);

// Of a field that is there only when something failed: never OK; an error that says so is
// kDataLoss.
Status FailureOf(const pb::Error& error);

}  // namespace tamis
