// An exception that an HBase server threw, and the client's reaction to it.
//
// Known classes are recognized by name. For an unknown class, the client follows its do_not_retry
// flag and limits the number of retries. Java's own exceptions (NullPointerException, "Filesystem
// closed") are typical of a server that shuts down during a call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/hbase/server_name.h"

namespace tamis::hbase {

namespace pb {
class ExceptionResponse;
class NameBytesPair;
}  // namespace pb

enum class RetryAction {
  kRelocate,       // look the region up again: it is elsewhere or not open. The call did not run
  kBackOff,        // overloaded: send the same call later. The call did not run
  kReopenScanner,  // the scanner is gone: open a new one
  kFail,           // retrying does not help
  // The server failed internally and may be shutting down; the call may have run. A read is tried
  // again, wherever the region is by then, until its deadline.
  kElsewhere,
  kUnknown,  // unknown class: the call may have run, and a retry may succeed
};

// The number of tries of a repeatable call that fails with RetryAction::kUnknown.
inline constexpr int kTriesOfUnknown = 3;

struct Exception {
  std::string class_name;  // "org.apache.hadoop.hbase.NotServingRegionException"
  std::string message;     // the first line of the stack trace, without the class
  // The region's new server (RegionMovedException). The sequence number shows whether the hint is
  // outdated.
  struct Moved {
    ServerName server;
    int64_t sequence = -1;
  };
  std::optional<Moved> moved;
  bool do_not_retry = false;
  bool server_overloaded = false;

  // The class name without its packages.
  std::string_view ShortName() const;
  RetryAction retry_action() const;
  // Whether a change that ended with this exception may have been applied.
  bool may_have_run() const;
  // The server does not serve the region; it may serve others.
  bool tells_region_is_not_here() const;
  // The region or process has no such service: it does not load the coprocessor, or no longer does.
  bool tells_service_is_not_there() const;
  // The user lacks the right to make this call.
  bool tells_user_is_denied() const;
  // The status code says what the caller can do next. The message begins with the class name.
  Status ToStatus() const;
};

Exception ExceptionOf(const pb::ExceptionResponse& response);
// For one action or region of a Multi. Here a hint to a moved region is only in the text.
Exception ExceptionOf(const pb::NameBytesPair& pair);
// For a class name and the text of a stack trace.
Exception ExceptionOf(std::string_view class_name, std::string_view stack_trace);

// Whether the status is one of Exception::ToStatus, with or without context, that tells that the
// user lacks a right.
bool IsAccessDenied(const Status& status);

}  // namespace tamis::hbase
