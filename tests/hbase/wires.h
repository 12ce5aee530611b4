// Wires: a network between one client and the servers that a test can cut. Each server is reached
// through a port on this machine.
//
// Threads: safe.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
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

 private:
  struct Wire;
  struct Port;

  asio::awaitable<void> Accept(std::shared_ptr<Port> port);
  asio::awaitable<void> Serve(hbase::Address server, asio::ip::tcp::socket socket);
  asio::awaitable<void> Carry(std::shared_ptr<Wire> wire, asio::ip::tcp::socket* from,
                              asio::ip::tcp::socket* to);
  void Run(const std::function<void()>& task);

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  bool cut_ = false;                       // used on thread_ only
  std::set<std::shared_ptr<Wire>> wires_;  // used on thread_ only
  std::mutex mutex_;
  std::map<hbase::Address, hbase::Address> ways_;
  std::thread thread_;
};

}  // namespace tamis
