// Refusals: one operation's memory of servers that refused a connection, such as servers whose
// certificate is not good, or that do not accept ours. A server that refused once is expected to
// refuse the next try, too: the operation ends then, unless it turns to another server.
#pragma once

#include <optional>

#include "tamis/base/status.h"
#include "tamis/hbase/server_name.h"

namespace tamis::hbase {

class Refusals {
 public:
  // A call to the server was not sent, for this reason. True when trying again is of no use.
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
