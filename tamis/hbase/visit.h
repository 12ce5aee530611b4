// A connection for one question: it is opened, used and closed before a deadline.
//
// Threads: use it only on its io_context, which runs on one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "tamis/base/status.h"
#include "tamis/hbase/server_name.h"
#include "tamis/hbase/task.h"
#include "tamis/hbase/timers.h"
#include "tamis/hbase/transport.h"

namespace tamis::hbase {

class Visit {
 public:
  // At the deadline every pending operation ends.
  Visit(boost::asio::io_context& io, Timers& timers, Deadline deadline,
        std::shared_ptr<TlsContext> tls = {});
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  // Connects to `way`; a TLS certificate must be for `host`.
  Task<Status> Connect(Address way, std::string host);
  const std::shared_ptr<Transport>& transport() const { return transport_; }
  // Explains a failed operation.
  Status Fault(const boost::system::error_code& error);
  // Whether a failed operation shows that no server is at the address now.
  bool no_server() const { return no_server_; }

 private:
  Timers& timers_;
  boost::asio::ip::tcp::resolver resolver_;
  const std::shared_ptr<Transport> transport_;
  bool is_late_ = false;
  bool no_server_ = false;
  Timers::Entry timer_;
};

}  // namespace tamis::hbase
