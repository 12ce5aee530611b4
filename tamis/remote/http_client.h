// HttpClient: POST requests to one server over HTTP or HTTPS, many at a time; connections are kept
// for later requests. One thread of its own carries all of them (libcurl).
//
// A request that is not repeatable is sent at most once: when a kept connection turns out to be
// dead, libcurl sends a request again on a new one only if no byte of its body was sent before.
//
// Threads: safe. Callbacks run on the thread of the client and must not block; none runs after its
// Transfer was destroyed, except one that runs already.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tamis/base/executor.h"
#include "tamis/base/status.h"
#include "tamis/base/trace_context.h"

namespace tamis {

class HttpClient {
 public:
  struct Options {
    std::string url;      // "http://host:7470", without a path
    std::string token;    // empty: none is sent
    std::string ca_file;  // PEM: the trusted authorities; empty: those of the machine
    // PEM: the client's certificate; empty: none is shown. The key may be in the same file.
    std::string cert_file;
    std::string key_file;
    Duration connect_timeout = std::chrono::seconds(5);
  };

  struct Request {
    std::string path;  // "/v1/cluster"
    std::string content_type;
    std::string body;  // not empty
    bool repeatable = true;
    // The request fails, and is not sent, when no connection of an earlier one is free: a new one
    // may lead to another server.
    bool kept_connection_only = false;
    Duration timeout{};  // zero: none
    TraceContext trace = CurrentTrace();
    // With it, the body of an answer with status 200 is given in pieces as it comes.
    std::function<void(std::string bytes)> bytes = nullptr;
  };
  struct Answer {
    int status = 0;         // the status of HTTP; 0: no answer came
    std::string body;       // except for what was given in pieces
    Status failure;         // why the answer did not come, or not to its end
    bool was_sent = false;  // with a failure: the server may have carried out the request
  };
  using Ended = std::function<void(Answer)>;

  class Core;
  // A request that is under way. Destroying it ends the request.
  class Transfer {
   public:
    ~Transfer();
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;
    // Reports that the caller has consumed this many bytes; the server pauses while too many are
    // unconsumed.
    void Taken(size_t bytes);

   private:
    friend class HttpClient;
    Transfer() = default;
    std::shared_ptr<Core> core_;
    std::shared_ptr<void> state_;
  };

  static Result<std::shared_ptr<HttpClient>> Make(const Options& options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  const std::string& url() const;
  // How many connections were begun so far.
  uint64_t connections() const;

  [[nodiscard]] std::unique_ptr<Transfer> Post(Request request, Ended ended);
  // A request that only the end of the client ends.
  void PostToTheEnd(Request request, Ended ended);

 private:
  explicit HttpClient(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  const std::shared_ptr<Core> core_;
};

}  // namespace tamis
