// The servers that refused a connection during one operation: their certificate is not valid, or
// they reject the client's. Such a server will refuse the next try, too, so the operation ends
// unless it can go to another server.
#pragma once

#include <optional>

#include "tamis/base/status.h"
#include "tamis/hbase/server_name.h"

namespace tamis::hbase {

class Refusals {
 public:
  // Records that a call was not sent to `server` for this reason. Returns true if retrying is
  // pointless.
  bool IsFinal(const ServerName& server, const Status& why) {
    if (why.code() != StatusCode::kFailedPrecondition) return false;
    const bool again = last_ == server;
    last_ = server;
    return again;
  }

 private:
  std::optional<ServerName> last_;
};

}  // namespace tamis::hbase
