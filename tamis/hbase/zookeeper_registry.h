// The entry point of a cluster in its ZooKeeper: three znodes, which HBase keeps up to date.
//
// Each look-up opens a session, reads one znode and closes the session: look-ups are rare, and no
// session has to be kept alive. The members of the quorum are tried in turn, beginning with the
// last one that answered. Like Registry, a client whose quorum is wrong learns that at once: until
// a member has answered, a look-up fails for good if every member's host is unknown, refuses the
// connection, or does not answer as a ZooKeeper.
#pragma once

#include <boost/asio/io_context.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/client_options.h"
#include "tamis/hbase/server_name.h"
#include "tamis/hbase/task.h"
#include "tamis/hbase/timers.h"

namespace tamis::hbase {

class ZooKeeperRegistry {
 public:
  // REQUIRES: the quorum can be parsed.
  ZooKeeperRegistry(boost::asio::io_context& io, Timers& timers, const ZooKeeperOptions& options)
      : io_(io),
        timers_(timers),
        parent_(options.parent),
        members_(*ParseAddresses(options.quorum)) {}

  Task<Result<ServerName>> MetaServer(Deadline deadline);
  Task<Result<ServerName>> ActiveMaster(Deadline deadline);
  Task<Result<std::string>> ClusterId(Deadline deadline);

 private:
  // The protobuf message in <parent>/<name>. The error contains the reason of each member.
  Task<Result<std::string>> Read(std::string name, Deadline deadline);

  boost::asio::io_context& io_;
  Timers& timers_;
  const std::string parent_;
  const std::vector<Address> members_;
  size_t next_ = 0;
  bool answered_ = false;  // by any member
};

// The protobuf message in the value of one of HBase's znodes:
//   0xff | int32 size | the writer's name | "PBUF" | message
// kDataLoss: it is not one.
Result<std::string> MessageOfZnode(std::string_view value);

}  // namespace tamis::hbase
