// TraceContext: the W3C trace context of a request (https://www.w3.org/TR/trace-context/), which is
// handed on unchanged: the spans of HBase's servers then belong to the trace of the client. The
// project records no spans of its own.
//
// Searches and writes take the context of the thread that begins them, which a TraceScope sets.
//
// Threads: a TraceContext is a value; a TraceScope belongs to the thread that made it.
#pragma once

#include <string>
#include <string_view>

namespace tamis {

struct TraceContext {
  std::string parent;  // "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"; empty: none
  std::string state;   // the state of vendors; may be empty

  bool empty() const { return parent.empty(); }
  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

// The context of the headers `traceparent` and `tracestate`. The standard wants a malformed
// `traceparent` to be no context, and a malformed `tracestate` to be left out.
TraceContext ParseTraceContext(std::string_view traceparent, std::string_view tracestate);

// Empty outside of every scope.
const TraceContext& CurrentTrace();

// Until its end, the context of what its thread begins.
class TraceScope {
 public:
  explicit TraceScope(TraceContext context);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  TraceContext before_;
};

}  // namespace tamis
