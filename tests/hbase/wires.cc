#include "tests/hbase/wires.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <future>
#include <string>
#include <system_error>
#include <utility>

#include "tamis/hbase/task.h"

namespace tamis {

namespace asio = boost::asio;

using asio::ip::tcp;

// An exception here must end the process: a wire that stops because of a bug would look like a cut
// one.
using hbase::EndIfItThrew;

struct Wires::Wire {
  explicit Wire(tcp::socket socket) : client(std::move(socket)), server(client.get_executor()) {}

  void Close() {
    boost::system::error_code ignored;
    client.close(ignored);
    server.close(ignored);
  }

  tcp::socket client;
  tcp::socket server;
  bool lost = false;  // some bytes were lost
};

struct Wires::Port {
  Port(asio::io_context& io, hbase::Address to)
      : server(std::move(to)), acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {}

  const hbase::Address server;
  tcp::acceptor acceptor;
};

Wires::Wires() : thread_([this] { io_.run(); }) {}

Wires::~Wires() {
  io_.stop();
  thread_.join();
}

void Wires::Run(const std::function<void()>& task) {
  std::promise<void> done;
  asio::post(io_, [&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

hbase::Address Wires::WayTo(const hbase::Address& server) {
  std::lock_guard lock(mutex_);
  const auto found = ways_.find(server);
  if (found != ways_.end()) return found->second;
  const auto port = std::make_shared<Port>(io_, server);
  const hbase::Address way{"127.0.0.1", port->acceptor.local_endpoint().port()};
  ways_.emplace(server, way);
  asio::co_spawn(io_, Accept(port), EndIfItThrew);
  return way;
}

void Wires::Cut() {
  Run([this] { cut_ = true; });
}

void Wires::Heal() {
  Run([this] {
    cut_ = false;
    for (const auto& wire : wires_) {
      if (wire->lost) wire->Close();
    }
  });
}

void Wires::Break() {
  Run([this] {
    for (const auto& wire : wires_) wire->Close();
  });
}

asio::awaitable<void> Wires::Accept(std::shared_ptr<Port> port) {
  while (true) {
    boost::system::error_code error;
    tcp::socket socket =
        co_await port->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    // The client has already disconnected. Other errors are fatal: the tests could not go on
    // without file descriptors, for example.
    if (error == asio::error::connection_aborted) continue;
    if (error) throw boost::system::system_error(error);
    asio::co_spawn(io_, Serve(port->server, std::move(socket)), EndIfItThrew);
  }
}

asio::awaitable<void> Wires::Serve(hbase::Address server, tcp::socket socket) {
  const auto wire = std::make_shared<Wire>(std::move(socket));
  wires_.insert(wire);
  if (cut_) {
    // The connection stays open from the client's point of view.
    wire->lost = true;
    co_await Carry(wire, &wire->client, nullptr);
    co_return;
  }
  try {
    tcp::resolver resolver(io_);
    const auto found = co_await resolver.async_resolve(server.host, std::to_string(server.port),
                                                       asio::use_awaitable);
    co_await asio::async_connect(wire->server, found, asio::use_awaitable);
  } catch (const boost::system::system_error&) {
    wire->Close();
    wires_.erase(wire);
    co_return;
  }
  asio::co_spawn(io_, Carry(wire, &wire->server, &wire->client), EndIfItThrew);
  co_await Carry(wire, &wire->client, &wire->server);
}

// If `to` is nullptr, the bytes are dropped.
asio::awaitable<void> Wires::Carry(std::shared_ptr<Wire> wire, tcp::socket* from, tcp::socket* to) {
  std::array<char, 16384> bytes;
  try {
    while (true) {
      const size_t size = co_await from->async_read_some(asio::buffer(bytes), asio::use_awaitable);
      wire->lost |= cut_;
      if (wire->lost) continue;
      co_await asio::async_write(*to, asio::buffer(bytes, size), asio::use_awaitable);
    }
  } catch (const boost::system::system_error&) {
    wire->Close();
    wires_.erase(wire);
  }
}

}  // namespace tamis
