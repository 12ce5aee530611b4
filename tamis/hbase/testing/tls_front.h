// A TLS proxy in front of a server without TLS, for tests: it decrypts what clients send and
// encrypts the server's answers.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl/context.hpp>
#include <string>
#include <thread>

#include "tamis/hbase/server_name.h"

namespace tamis::hbase {

class TlsFront {
 public:
  struct Options {
    std::string identity_file;  // PEM: certificate and key
    std::string
        client_ca_file;      // clients have to show a certificate of this CA; empty: they need not
    int newest_version = 0;  // TLS version; 0: the newest supported
    std::string ciphers;     // for TLS 1.2 and older; empty: OpenSSL's default
  };

  TlsFront(Address behind, const Options& options);
  ~TlsFront();
  TlsFront(const TlsFront&) = delete;
  TlsFront& operator=(const TlsFront&) = delete;

  const Address& address() const { return address_; }

 private:
  asio::awaitable<void> Accept();
  asio::awaitable<void> Serve(asio::ip::tcp::socket socket);

  const Address behind_;
  asio::ssl::context context_;
  asio::io_context io_{1};
  asio::ip::tcp::acceptor acceptor_;
  Address address_;
  std::thread thread_;
};

}  // namespace tamis::hbase
