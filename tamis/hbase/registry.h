// The entry points of a cluster: any master or region server knows the active master and the
// location of hbase:meta; so does the cluster's ZooKeeper, if the options name that.
//
// The configured addresses are tried in turn, beginning with the last one that answered. Servers
// that they name are added. Configured addresses are never removed.
//
// A client whose addresses are wrong learns that at once: until a server has answered for the first
// time, a request is not repeated if every address fails for a reason that will not mend by itself:
//
//   * the host is unknown (an answer of the resolver, not a time-out);
//   * the host refuses the connection;
//   * the peer closes the connection before its first answer (ZooKeeper does, and a server that
//     wants TLS);
//   * the peer answers in another protocol (HTTP).
//
// If one address fails otherwise, the request is repeated: no answer in time, no route, a master
// that is starting. So it is after the first answer, whatever happens: HBase may be restarted.
// Security that does not fit (TLS) is final at any time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/server_name.h"
#include "tamis/hbase/task.h"
#include "tamis/hbase/zookeeper_registry.h"

namespace google::protobuf {
class MessageLite;
}

namespace tamis::hbase {

class Session;

class Registry {
 public:
  // REQUIRES: the addresses in the session's options can be parsed.
  explicit Registry(Session& session);

  Task<Result<ServerName>> MetaServer(Deadline deadline);
  Task<Result<ServerName>> ActiveMaster(Deadline deadline);
  // Needs no login. HBase before 2.6 tells it only by its ZooKeeper.
  Task<Result<std::string>> ClusterId(Deadline deadline);

  // Sends the next request to another server, because the last answer was wrong.
  void TryNext() {
    if (!zookeeper_) next_ = (next_ + 1) % addresses_.size();
  }

 private:
  // If no server answers, the error contains the reason of each: kFailedPrecondition if a retry
  // changes nothing, else kUnavailable.
  Task<Status> Ask(std::string method, google::protobuf::MessageLite* answer, Deadline deadline);
  Task<void> Learn(Deadline deadline);
  Task<Result<std::string>> AskClusterId(Address address, Deadline deadline);

  Session& session_;
  std::optional<ZooKeeperRegistry> zookeeper_;
  std::vector<Address> addresses_;  // empty if there is `zookeeper_`
  const size_t configured_;
  size_t next_ = 0;
  bool answered_ = false;  // by any server, maybe with an exception
  bool learned_ = false;
};

}  // namespace tamis::hbase
