#include "tamis/base/trace_context.h"

#include <algorithm>
#include <utility>

namespace tamis {
namespace {

constexpr size_t kLongestState = 512;
constexpr std::string_view kHexDigits = "0123456789abcdef";

thread_local TraceContext current;

// Lower-case hexadecimal digits.
bool IsHex(std::string_view digits) {
  return digits.find_first_not_of(kHexDigits) == std::string_view::npos;
}
bool IsId(std::string_view digits) {
  return IsHex(digits) && digits.find_first_not_of('0') != std::string_view::npos;
}

// VERSION-TRACE-PARENT-FLAGS; a later version may have more fields after these.
bool IsParent(std::string_view text) {
  constexpr size_t kTrace = 3, kParent = 36, kFlags = 53, kEnd = 55;
  if (text.size() < kEnd || text[kTrace - 1] != '-' || text[kParent - 1] != '-' ||
      text[kFlags - 1] != '-') {
    return false;
  }
  const std::string_view version = text.substr(0, 2);
  if (!IsHex(version) || version == "ff") return false;
  if (text.size() > kEnd && (version == "00" || text[kEnd] != '-')) return false;
  return IsId(text.substr(kTrace, 32)) && IsId(text.substr(kParent, 16)) &&
         IsHex(text.substr(kFlags, 2));
}

bool IsPrintable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

TraceContext ParseTraceContext(std::string_view traceparent, std::string_view tracestate) {
  if (!IsParent(traceparent) || !IsPrintable(traceparent)) return {};
  const bool has_state = tracestate.size() <= kLongestState && IsPrintable(tracestate);
  return {std::string(traceparent), std::string(has_state ? tracestate : std::string_view())};
}

const TraceContext& CurrentTrace() { return current; }

TraceScope::TraceScope(TraceContext context)
    : before_(std::exchange(current, std::move(context))) {}

TraceScope::~TraceScope() { current = std::move(before_); }

}  // namespace tamis
