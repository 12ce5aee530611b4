// TamisServer: a store over HTTP (docs/SERVER.md). One coordinator serves all clients.
//
// Threads: safe.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tamis/server/event_streams.h"
#include "tamis/server/http_server.h"
#include "tamis/server/sql_service.h"
#include "tamis/store/opened_store.h"

namespace tamis::server {

class TamisServer {
 public:
  struct Options {
    HttpServer::Options http;
    SqlService::Options sql;
    EventStreams::Options events;
    std::string token;                    // empty: none is needed
    std::vector<std::string> host_names;  // that clients use, besides the loopback's
    // Tables, indexes, regions and servers may be changed through POST /v1/cluster.
    bool may_administer = false;
    int threads = 16;  // for statements and calls that block
  };

  static Result<std::unique_ptr<TamisServer>> Start(std::shared_ptr<OpenedStore> store,
                                                    const Options& options);
  // Cancels all statements and blocks until they have ended.
  ~TamisServer();

  TamisServer(const TamisServer&) = delete;
  TamisServer& operator=(const TamisServer&) = delete;

  // "http://127.0.0.1:7470"
  std::string address() const;
  uint16_t port() const;

  // Accepts no more connections, lets answers end for at most `patience`, then cancels statements.
  // False: some statements have not ended after a minute. The destructor would block until they
  // end; call Stop again, or end the process.
  bool Stop(std::chrono::milliseconds patience);

 private:
  struct Parts;
  explicit TamisServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tamis::server
