// A call to the server that has a row, retried where that is safe until it is answered.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tamis/base/status.h"
#include "tamis/hbase/channel.h"
#include "tamis/hbase/region.h"
#include "tamis/hbase/task.h"

namespace tamis::hbase {

class Session;

// When a call that may have run is sent again.
enum class Repeat {
  kReads,       // the call changes nothing
  kAlways,      // the caller allows it
  kSameServer,  // the call has a nonce, which only the same process of the same server knows
  kNever,
};

struct RegionCall {
  std::string table;
  std::string row;
  std::string method;  // "Get"
  Repeat repeat = Repeat::kNever;
  uint32_t priority = 0;
  Channels::Lane lane = Channels::Lane::kNormal;
  Deadline deadline;
  std::optional<std::chrono::milliseconds> call_timeout;  // for one try; default: the client's
  // Makes the parameter and the cells for this region.
  std::function<Call(const Region&)> make;
  // Extracts an exception from inside of an answer, for messages that can hold one.
  std::function<std::optional<Exception>(const Reply&)> inner;
};

// Combines the reason why no region was found with the result of the last call.
Status After(const Status& missing, const Status& last_call);
// The status of a change that may have been applied.
Status MayHaveRun(const std::string& what, const Status& why);

// Returns the answer. A change that may have run and was not answered ends with kDeadlineExceeded,
// whatever later tries return.
Task<Result<Reply>> CallRegion(Session& session, RegionCall call);

}  // namespace tamis::hbase
