// Exchange: one request of a client over HTTP, and the way to answer it.
//
// An answer is sent whole by Send, or in parts: Begin, then Write for each part, each after the one
// before was sent, then End. Abort closes the connection without the last chunk, so that the client
// sees that the answer is cut.
//
// Threads: safe; callbacks run on a thread of the server and must not block.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tamis/base/trace_context.h"

namespace tamis::server {

struct Request {
  std::string method;  // "GET"
  std::string path;    // "/v1/tables/t", as it was sent: not decoded, without the query
  std::string query;   // behind the "?", as it was sent
  // By names in lower case. Values of one name are joined by ", " (RFC 9110, 5.3), so one that is
  // given twice where only one is allowed is none of the allowed values.
  std::map<std::string, std::string> headers;
  std::string body;

  // The header's value; empty without it.
  std::string Header(const std::string& lower_case_name) const {
    const auto found = headers.find(lower_case_name);
    return found == headers.end() ? std::string() : found->second;
  }
  TraceContext Trace() const {
    return ParseTraceContext(Header("traceparent"), Header("tracestate"));
  }
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};  // used by Send only
  std::vector<std::pair<std::string, std::string>> headers = {};
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const Request& request() const = 0;
  virtual void Send(Response response) = 0;

  virtual void Begin(Response head) = 0;
  // `sent` is called with false if the client is gone or takes nothing for the server's idle time;
  // nothing more can be sent then.
  virtual void Write(std::string part, std::function<void(bool sent)> sent) = 0;
  virtual void End() = 0;
  virtual void Abort() = 0;

  // `gone` is called at most once, when the client closes the connection before the answer's end.
  virtual void OnDisconnect(std::function<void()> gone) = 0;
};

using ExchangePtr = std::shared_ptr<Exchange>;
using Handler = std::function<void(ExchangePtr)>;

}  // namespace tamis::server
