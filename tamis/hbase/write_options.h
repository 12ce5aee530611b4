// Options and results of changes, and coprocessor calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tamis/base/status.h"
#include "tamis/hbase/operations.h"
#include "tamis/hbase/row.h"

namespace tamis::hbase {

struct WriteOptions {
  // The change is applied only if the condition holds for the row; else MutateResult::applied is
  // false.
  std::optional<Condition> condition;
  // Allows sending a Put or Delete again if it may have been carried out (its server died during
  // the call). This is safe if no other client writes these cells, or if the timestamps are
  // explicit; otherwise a retry may overwrite a newer value. If false, such a change ends with
  // kDeadlineExceeded and may have been applied. Increment and Append carry a nonce and are
  // repeated at the same server. A change with a condition is never repeated.
  bool repeat = false;
};

struct MutateResult {
  bool applied = true;  // false: the condition did not hold
  Row row;              // the new values, for Increment and Append
};

// A call to a coprocessor's service. The messages are serialized.
struct ServiceCall {
  std::string service;  // includes the package unless that is hbase.pb
  std::string method;
  std::string request;
  uint32_t priority = 0;  // above 10: the server uses handlers reserved for such calls
  // The server delays the answer on purpose: the call uses a separate connection.
  bool waits = false;
  // The call is idempotent and may be sent again.
  bool repeat = false;
  std::optional<std::chrono::milliseconds> timeout;  // for one try; default: the client's
  // The headers of the client's trace context, "traceparent" for one, for HBase's own spans.
  std::map<std::string, std::string> trace = {};
};

// The result of a service call.
struct ServiceReply {
  Result<std::string> answer;
  // The server does not have the region; the call did not run.
  bool not_here = false;
  // The region or process has no such service; the call did not run.
  bool no_service = false;
  // The user may not make this call; it did not run.
  bool denied = false;
  // The answer is a failure, and the call may have run.
  bool may_have_run = false;
};

}  // namespace tamis::hbase
