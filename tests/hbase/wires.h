// Wires: a network between one client and the servers that a test can cut. Each server is reached
// through a port on this machine.
//
// Threads: safe.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "tamis/hbase/server_name.h"

namespace tamis {

class Wires {
 public:
  Wires();
  ~Wires();
  Wires(const Wires&) = delete;
  Wires& operator=(const Wires&) = delete;

  // Used as hbase::ClientOptions::way.
  hbase::Address WayTo(const hbase::Address& server);

  // Drops all bytes sent from now on, in both directions, without closing connections.
  void Cut();
  // Lets new connections through, and closes the connections that have lost bytes.
  void Heal();
  // Closes all connections; new ones are let through unless the wires are cut.
  void Break();

 private:
  struct Wire;
  struct Port;

  boost::asio::awaitable<void> Accept(std::shared_ptr<Port> port);
  boost::asio::awaitable<void> Serve(hbase::Address server, boost::asio::ip::tcp::socket socket);
  boost::asio::awaitable<void> Carry(std::shared_ptr<Wire> wire, boost::asio::ip::tcp::socket* from,
                                     boost::asio::ip::tcp::socket* to);
  void Run(const std::function<void()>& task);

  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      io_.get_executor()};
  bool cut_ = false;                       // used on thread_ only
  std::set<std::shared_ptr<Wire>> wires_;  // used on thread_ only
  std::mutex mutex_;
  std::map<hbase::Address, hbase::Address> ways_;
  std::thread thread_;
};

}  // namespace tamis
