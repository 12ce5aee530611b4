// How a client reaches a cluster.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace tamis::hbase {

struct ClientOptions {
  // "host:port,..." of some masters and region servers. Any one that lives is enough to find the
  // others.
  std::string addresses;
  // As whom the servers see us; empty: who runs the process.
  std::string user;
  // Of a whole operation, tries and waits between them included.
  std::chrono::milliseconds operation_timeout{60'000};
  // Of one try.
  std::chrono::milliseconds call_timeout{10'000};
  std::chrono::milliseconds connect_timeout{1'000};
  // Calls to one server that are in flight at once. HBase's queue holds ten for each handler.
  int window = 64;
  // What HBase allows as it comes.
  size_t max_request_bytes = 256 << 20;
  size_t max_answer_bytes = 256 << 20;
};

}  // namespace tamis::hbase
