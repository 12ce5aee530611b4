// The byte stream of a connection: plain TCP or TLS. It models asio's stream concept in both cases,
// so readers and writers need not know which.
//
// Threads: use it only on its io_context, which runs on one thread. It must outlive its pending
// operations.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
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
  using executor_type = boost::asio::ip::tcp::socket::executor_type;

  // Without `tls`, the stream is not encrypted.
  Transport(boost::asio::io_context& io, std::shared_ptr<TlsContext> tls)
      : tls_(std::move(tls)), socket_(io) {
    if (tls_) inside_.emplace(socket_, tls_->context());
  }

  executor_type get_executor() { return socket_.get_executor(); }
  boost::asio::ip::tcp::socket& socket() { return socket_; }
  bool has_tls() const { return inside_.has_value(); }

  // Calls `done` once, later. A failure that will repeat at the next try is kFailedPrecondition.
  // REQUIRES: has_tls(), and the socket is connected to this host.
  void Handshake(const std::string& host, std::function<void(Status)> done);
  // Explains a failed read if the server rejected the client's certificate: in TLS 1.3 that happens
  // after the client's handshake has ended. Ok if the read failed for another reason.
  Status Refusal(const boost::system::error_code& error);

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
  Status Failure(const std::string& host, const boost::system::error_code& error);

  const std::shared_ptr<TlsContext> tls_;
  boost::asio::ip::tcp::socket socket_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> inside_;
};

// Whether the peer has closed the stream.
bool IsEnd(const boost::system::error_code& error);
// The reason why the stream ended.
std::string EndOf(const boost::system::error_code& error);

}  // namespace tamis::hbase
