// Where a client begins: any master or region server says who the active master is and where
// hbase:meta is, so that nobody needs ZooKeeper.
//
// The configured addresses are asked in turn, beginning with the one that answered last; the
// servers that they name are added. Configured addresses are never dropped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/server_name.h"
#include "tamis/hbase/task.h"

namespace google::protobuf {
class MessageLite;
}

namespace tamis::hbase {

class Session;

class Registry {
 public:
  Registry(Session& session, std::vector<Address> addresses)
      : session_(session), addresses_(std::move(addresses)), configured_(addresses_.size()) {}

  Task<Result<ServerName>> MetaServer(Deadline deadline);
  Task<Result<ServerName>> ActiveMaster(Deadline deadline);
  Task<Result<std::string>> ClusterId(Deadline deadline);

  // The next question goes to somebody else: the last answer was wrong.
  void TryNext() { next_ = (next_ + 1) % addresses_.size(); }
  const std::vector<Address>& addresses() const { return addresses_; }

 private:
  // With every server's reason when none answers: kFailedPrecondition when all of them refuse us,
  // as they will again, else kUnavailable.
  Task<Status> Ask(std::string method, google::protobuf::MessageLite* answer, Deadline deadline);
  Task<void> Learn(Deadline deadline);

  Session& session_;
  std::vector<Address> addresses_;
  const size_t configured_;
  size_t next_ = 0;
  bool learned_ = false;
};

}  // namespace tamis::hbase
