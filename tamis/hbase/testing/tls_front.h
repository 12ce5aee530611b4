// TLS before a server that speaks none, for tests: what clients send inside of it goes on in the
// open, and what the server answers goes back inside of it.
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
    int newest_version = 0;  // of TLS; 0: the newest that there is
    std::string ciphers;     // of TLS 1.2 and older; empty: all that are good
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
