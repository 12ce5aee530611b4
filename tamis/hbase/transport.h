// The bytes of a connection: over TCP as they are, or inside of TLS. To asio it is a stream either
// way, so that who reads and writes does not know which.
//
// Threads: those of one io_context that runs on one thread. It has to outlive what it was asked to
// do.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl/stream.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tamis/base/status.h"
#include "tamis/hbase/tls_context.h"

namespace tamis::hbase {

class Transport {
 public:
  using executor_type = asio::ip::tcp::socket::executor_type;

  // Without `tls` in the open.
  Transport(asio::io_context& io, std::shared_ptr<TlsContext> tls)
      : tls_(std::move(tls)), socket_(io) {
    if (tls_) inside_.emplace(socket_, tls_->context());
  }

  executor_type get_executor() { return socket_.get_executor(); }
  asio::ip::tcp::socket& socket() { return socket_; }
  bool has_tls() const { return inside_.has_value(); }

  // REQUIRES: has_tls(), and the socket is connected to this host. Its end is told once, later; a
  // failure that will be the same at the next try is kFailedPrecondition.
  void Handshake(const std::string& host, std::function<void(Status)> done);
  // A failed read that belongs to the handshake: the server checks our certificate after our side
  // has finished. Ok: the failure has another reason.
  Status Refusal(const asio::error_code& error);

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (inside_) return inside_->async_read_some(buffers, std::forward<Handler>(handler));
    socket_.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (inside_) return inside_->async_write_some(buffers, std::forward<Handler>(handler));
    socket_.async_write_some(buffers, std::forward<Handler>(handler));
  }

 private:
  Status Failure(const std::string& host, const asio::error_code& error);

  const std::shared_ptr<TlsContext> tls_;
  asio::ip::tcp::socket socket_;
  std::optional<asio::ssl::stream<asio::ip::tcp::socket&>> inside_;
};

// Why there are no more bytes.
std::string EndOf(const asio::error_code& error);

}  // namespace tamis::hbase
