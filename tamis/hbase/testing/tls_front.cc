#include "tamis/hbase/testing/tls_front.h"

#include <openssl/ssl.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <system_error>
#include <utility>

namespace tamis::hbase {
namespace {

namespace asio = boost::asio;

using asio::ip::tcp;

// One client: its encrypted connection, and the plain one to the server.
struct Wire {
  Wire(tcp::socket socket, asio::ssl::context& context)
      : inside(std::move(socket), context), open(inside.get_executor()) {}

  void Close() {
    boost::system::error_code ignored;
    inside.lowest_layer().close(ignored);
    open.close(ignored);
  }

  asio::ssl::stream<tcp::socket> inside;
  tcp::socket open;
};
using WirePtr = std::shared_ptr<Wire>;

template <class From, class To>
asio::awaitable<void> Carry(WirePtr wire, From& from, To& to) {
  std::array<char, 16384> bytes;
  try {
    while (true) {
      const size_t size = co_await from.async_read_some(asio::buffer(bytes), asio::use_awaitable);
      co_await asio::async_write(to, asio::buffer(bytes, size), asio::use_awaitable);
    }
  } catch (const boost::system::system_error&) {
    wire->Close();
  }
}

}  // namespace

TlsFront::TlsFront(Address behind, const Options& options)
    : behind_(std::move(behind)),
      context_(asio::ssl::context::tls_server),
      acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
      address_{"127.0.0.1", acceptor_.local_endpoint().port()} {
  context_.use_certificate_chain_file(options.identity_file);
  context_.use_private_key_file(options.identity_file, asio::ssl::context::pem);
  if (!options.client_ca_file.empty()) {
    context_.load_verify_file(options.client_ca_file);
    context_.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
  }
  if (options.newest_version != 0) {
    SSL_CTX* const context = context_.native_handle();
    if (options.newest_version < TLS1_2_VERSION) {
      // Allow old TLS versions as old servers do, whatever this machine's policy is.
      SSL_CTX_set_security_level(context, 0);
      SSL_CTX_set_min_proto_version(context, options.newest_version);
    }
    SSL_CTX_set_max_proto_version(context, options.newest_version);
  }
  if (!options.ciphers.empty()) {
    SSL_CTX_set_cipher_list(context_.native_handle(), options.ciphers.c_str());
  }
  asio::co_spawn(io_, Accept(), asio::detached);
  thread_ = std::thread([this] { io_.run(); });
}

TlsFront::~TlsFront() {
  io_.stop();
  thread_.join();
}

asio::awaitable<void> TlsFront::Accept() {
  while (true) {
    tcp::socket socket = co_await acceptor_.async_accept(asio::use_awaitable);
    asio::co_spawn(io_, Serve(std::move(socket)), asio::detached);
  }
}

asio::awaitable<void> TlsFront::Serve(tcp::socket socket) {
  const auto wire = std::make_shared<Wire>(std::move(socket), context_);
  try {
    co_await wire->inside.async_handshake(asio::ssl::stream_base::server, asio::use_awaitable);
    co_await wire->open.async_connect({asio::ip::make_address(behind_.host), behind_.port},
                                      asio::use_awaitable);
  } catch (const boost::system::system_error&) {
    wire->Close();
    co_return;
  }
  asio::co_spawn(io_, Carry(wire, wire->open, wire->inside), asio::detached);
  co_await Carry(wire, wire->inside, wire->open);
}

}  // namespace tamis::hbase
