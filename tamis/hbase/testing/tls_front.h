// A TLS proxy in front of a server without TLS, for tests: it decrypts what clients send and
// encrypts the server's answers.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
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
  boost::asio::awaitable<void> Accept();
  boost::asio::awaitable<void> Serve(boost::asio::ip::tcp::socket socket);

  const Address behind_;
  boost::asio::ssl::context context_;
  boost::asio::io_context io_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
  Address address_;
  std::thread thread_;
};

}  // namespace tamis::hbase
