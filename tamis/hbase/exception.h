// The exceptions of an HBase server, and how a client reacts.
//
// Classes are known by their full Java names. One that is not known is believed only as far as its
// do_not_retry goes, and is never repeated without bound. Java's own exceptions
// (NullPointerException, "Filesystem closed") are what a server that ends throws in the midst of a
// call.
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
  kRelocate,       // the region is elsewhere, or not open: look it up again. The call did not run
  kBackOff,        // too much at once: the same again, later. The call did not run
  kReopenScanner,  // the scanner is gone, the rows are not
  kFail,           // repeating is no use
  // Something failed inside of the server, which may be ending: that proves nothing about the call,
  // which may have run. A read is tried again wherever the region is by then, until its deadline.
  kElsewhere,
  kUnknown,  // a class that is not known: it may have run, and may go better the next time
};

// For a call that changes nothing.
inline constexpr int kTriesOfUnknown = 3;

struct Exception {
  std::string class_name;  // "org.apache.hadoop.hbase.NotServingRegionException"
  std::string message;     // the first line of the stack trace, without the class
  // Where the region has gone (RegionMovedException); the sequence number tells an old hint.
  struct Moved {
    ServerName server;
    int64_t sequence = -1;
  };
  std::optional<Moved> moved;
  bool do_not_retry = false;
  bool server_overloaded = false;

  // The class without its packages.
  std::string_view ShortName() const;
  RetryAction retry_action() const;
  // Whether a change that ended so may stand all the same.
  bool may_have_run() const;
  // The server does not serve the region, and may well serve others.
  bool tells_region_is_not_here() const;
  // The region is there, and has no such service: its table is not, or not any more, one of those
  // that load it.
  bool tells_service_is_not_there() const;
  // Its code is named for what the caller does next.
  Status ToStatus() const;
};

Exception ExceptionOf(const pb::ExceptionResponse& response);
// The exception of one action or region of a Multi; there a hint is only in the text.
Exception ExceptionOf(const pb::NameBytesPair& pair);
// From a class name and the text of a stack trace.
Exception ExceptionOf(std::string_view class_name, std::string_view stack_trace);

}  // namespace tamis::hbase
