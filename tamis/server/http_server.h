// HttpServer: HTTP/1.1 with or without TLS, asynchronous: a connection holds no thread, whether it
// is idle or takes its answer slowly.
//
// The server itself answers a request that the parser refuses, by a problem (problem.h): 400 for
// bytes that are no HTTP, 413 for a body and 431 for a head that is too long, 503 while the bodies
// of other requests take all memory for bodies. A client that sends
// or takes nothing for the idle time is disconnected.
//
// Threads: safe. The handler is called on a thread of the server and must not block.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
    uint64_t max_bodies_bytes = uint64_t{256} << 20;  // bytes of all requests together
    uint32_t max_head_bytes = 16 << 10;
    uint32_t max_connections = 10'000;  // more are closed at once
    std::chrono::milliseconds idle_time = std::chrono::seconds(60);
  };

  // Listens; clients wait until Serve. An error says what cannot be listened on, or which file
  // cannot be read.
  static Result<std::unique_ptr<HttpServer>> Listen(const Options& options);
  // REQUIRES: no Exchange of this server is left.
  ~HttpServer();

  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The refusal of a request by its head; nullopt: its body is read.
  using Admit = std::function<std::optional<Response>(const Request& head)>;
  // Calls `admit` for each request with a body and the handler for each request, from now on.
  // Called once.
  void Serve(Handler handler, Admit admit = nullptr);

  std::string host() const;
  uint16_t port() const;
  uint64_t connections() const;

  // Accepts no more connections, closes those that wait for a request, and waits until the answers
  // under way have been sent, at most for `patience`. Returns whether all were sent.
  bool Drain(std::chrono::milliseconds patience);
  // Closes all connections; answers that are under way are cut. The handler and the callbacks of
  // exchanges are not called any more after the return. Exchanges may still be released.
  void Close();

 private:
  struct Parts;
  explicit HttpServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tamis::server
