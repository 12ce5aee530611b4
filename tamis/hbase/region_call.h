// A call to whatever server has a row, repeated where that is right until it is answered.
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

// Whether a call that may have run is sent again.
enum class Repeat {
  kReads,       // it changes nothing
  kAlways,      // the caller says that it does not matter
  kSameServer,  // it has a nonce, which only the life of the server that may have run it knows
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
  std::optional<std::chrono::milliseconds> call_timeout;  // of one try; else the client's
  // The parameter and the cells for this region.
  std::function<Call(const Region&)> make;
  // An exception inside of an answer, where a message has one.
  std::function<std::optional<Exception>(const Reply&)> inner;
};

// Why there is no region to ask, and what the last call ended with.
Status After(const Status& missing, const Status& last_call);
// The status of a change that is not known to have failed.
Status MayHaveRun(const std::string& what, const Status& why);

// The answer. A change that may have run ends with kDeadlineExceeded unless it is answered,
// whatever later tries end with.
Task<Result<Reply>> CallRegion(Session& session, RegionCall call);

}  // namespace tamis::hbase
