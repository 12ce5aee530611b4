// How a change is made, what it answers, and calls to coprocessors.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "tamis/base/status.h"
#include "tamis/hbase/operations.h"
#include "tamis/hbase/row.h"

namespace tamis::hbase {

struct WriteOptions {
  // Only when it holds of the row; else MutateResult::applied is false.
  std::optional<Condition> condition;
  // A Put or Delete that may have been carried out (its server died in the middle) is sent again.
  // Safe when no other client writes these cells, or when their timestamps are given: otherwise a
  // newer value of another client may be overwritten. Without it such a change ends with
  // kDeadlineExceeded: it may stand. Increment and Append carry a nonce, and are repeated at the
  // same server. A change with a condition is never repeated.
  bool repeat = false;
};

struct MutateResult {
  bool applied = true;  // false: the condition did not hold
  Row row;              // the new values, of Increment and Append
};

// A call to a service of a coprocessor. The message is bytes here.
struct ServiceCall {
  std::string service;  // with its package, unless that is hbase.pb
  std::string method;
  std::string request;
  uint32_t priority = 0;  // above 10: not on the handlers that normal calls share
  // A call that waits at the server on purpose: on a connection of its own.
  bool waits = false;
  // It changes nothing, or doing it twice is as good as once.
  bool repeat = false;
  std::optional<std::chrono::milliseconds> timeout;  // of one try; else the client's
};

// How one try of it ended.
struct ServiceReply {
  Result<std::string> answer;
  // The server does not have the region that it was sent to: it did not run.
  bool not_here = false;
  // The region has no such service: it did not run.
  bool no_service = false;
  // The answer is a failure that does not prove that nothing was done.
  bool may_have_run = false;
};

}  // namespace tamis::hbase
