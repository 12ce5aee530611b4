// HttpServer: HTTP/1.1 with or without TLS, asynchronous: a connection holds no thread, whether it
// is idle or takes its answer slowly.
//
// The server itself answers a request that the parser refuses, by a problem (problem.h): 400 for
// bytes that are no HTTP, 413 for a body and 431 for a head that is too long. A client that sends
// or takes nothing for the idle time is disconnected.
//
// Threads: safe. The handler is called on a thread of the server and must not block.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "tamis/base/status.h"
#include "tamis/server/exchange.h"

namespace tamis::server {

class HttpServer {
 public:
  struct Options {
    std::string host = "127.0.0.1";  // an address; with `socket`, that of the socket
    uint16_t port = 0;               // 0: a free one
    int socket = -1;            // a listening socket of the service manager instead; taken over
    std::string tls_cert_file;  // PEM, with the chain; empty: no TLS
    std::string tls_key_file;   // PEM
    // PEM: the authorities whose certificates clients must show; empty: none is asked for.
    std::string tls_client_ca_file;
    int threads = 2;
    uint64_t max_body_bytes = uint64_t{16} << 20;
    uint32_t max_head_bytes = 16 << 10;
    uint32_t max_connections = 10'000;  // more are closed at once
    std::chrono::milliseconds idle_time = std::chrono::seconds(60);
  };

  // Listens; the handler is called from now on. An error says what cannot be listened on, or which
  // file cannot be read.
  static Result<std::unique_ptr<HttpServer>> Listen(const Options& options, Handler handler);
  // Closes all connections. Answers that are under way are cut.
  ~HttpServer();

  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string host() const;
  uint16_t port() const;
  uint64_t connections() const;

  // Accepts no more connections, closes those that wait for a request, and waits until the answers
  // under way have been sent, at most for `patience`. Returns whether all were sent.
  bool Drain(std::chrono::milliseconds patience);

 private:
  struct Parts;
  explicit HttpServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tamis::server
