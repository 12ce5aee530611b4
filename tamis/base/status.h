// Status and Result<T>: how a function reports that it could not do its work, for a reason outside
// of the program.
//
// A code says what the caller should do next. The message says what the function was doing, to
// what, what went wrong, and what a user can do about it:
//
//   cannot open table "packages": index "section" names column "sect", which the schema does not
//   have
//
// Expected outcomes (a filter that is full, a key that is absent) are values, not a Status. Bugs
// are assert(). Threads: values, no shared state.
#pragma once

#include <cassert>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace tamis {

enum class StatusCode : unsigned char {
  kOk = 0,
  kInvalidArgument = 1,     // the request is wrong: change it
  kNotFound = 2,            // the object of that name does not exist
  kAlreadyExists = 3,       // the object that was to be created exists already
  kFailedPrecondition = 4,  // the state forbids it: change the state first
  kUnavailable = 5,         // not here or not now: refresh the region map and try again
  kBusy = 6,                // too much at once: back off, then try again
  kDeadlineExceeded = 7,    // out of time; a write may have been done: read before repeating it
  kCancelled = 8,           // a user or the caller asked to stop
  kDataLoss = 9,            // bytes are damaged or foreign: restore or rebuild them
  kResourceExhausted = 10,  // disk or memory is full: make room
  kInternal = 11,           // a library below failed in a way we do not know
};

std::string_view StatusCodeName(StatusCode code);

// Another attempt may succeed. A write that ended with kDeadlineExceeded may have been done: the
// caller must not repeat it before it has read the row.
constexpr bool IsTransient(StatusCode code) {
  return code == StatusCode::kUnavailable || code == StatusCode::kBusy ||
         code == StatusCode::kDeadlineExceeded;
}

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {
    assert(code != StatusCode::kOk);
  }

  static Status Ok() { return {}; }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // "unavailable: cannot ..." for logs; people are shown message().
  std::string ToString() const;

  // The same code with "context: " before the message. An ok status stays as it is.
  Status WithContext(std::string_view context) const;

  friend bool operator==(const Status&, const Status&) = default;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

std::ostream& operator<<(std::ostream& os, const Status& status);

inline Status InvalidArgument(std::string m) {
  return {StatusCode::kInvalidArgument, std::move(m)};
}
inline Status NotFound(std::string m) { return {StatusCode::kNotFound, std::move(m)}; }
inline Status AlreadyExists(std::string m) { return {StatusCode::kAlreadyExists, std::move(m)}; }
inline Status FailedPrecondition(std::string m) {
  return {StatusCode::kFailedPrecondition, std::move(m)};
}
inline Status Unavailable(std::string m) { return {StatusCode::kUnavailable, std::move(m)}; }
inline Status Busy(std::string m) { return {StatusCode::kBusy, std::move(m)}; }
inline Status DeadlineExceeded(std::string m) {
  return {StatusCode::kDeadlineExceeded, std::move(m)};
}
inline Status Cancelled(std::string m) { return {StatusCode::kCancelled, std::move(m)}; }
inline Status DataLoss(std::string m) { return {StatusCode::kDataLoss, std::move(m)}; }
inline Status ResourceExhausted(std::string m) {
  return {StatusCode::kResourceExhausted, std::move(m)};
}
inline Status Internal(std::string m) { return {StatusCode::kInternal, std::move(m)}; }

// A T, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    assert(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  // REQUIRES: ok().
  T& operator*() & { return Checked(); }
  const T& operator*() const& { return const_cast<Result*>(this)->Checked(); }
  T&& operator*() && { return std::move(Checked()); }
  T* operator->() { return &Checked(); }
  const T* operator->() const { return &const_cast<Result*>(this)->Checked(); }

 private:
  T& Checked() {
    assert(value_.has_value());
    return *value_;
  }

  std::optional<T> value_;
  Status status_;
};

#define TAMIS_CONCAT_INNER(a, b) a##b
#define TAMIS_CONCAT(a, b) TAMIS_CONCAT_INNER(a, b)

// Leaves the function with the status when it is not ok.
#define TAMIS_RETURN_IF_ERROR(expr)                                                     \
  do {                                                                                  \
    if (::tamis::Status tamis_status = (expr); !tamis_status.ok()) return tamis_status; \
  } while (false)

// TAMIS_ASSIGN_OR_RETURN(auto x, F()): x is the value of F(), or the function is left with its
// status.
#define TAMIS_ASSIGN_OR_RETURN(decl, expr) \
  TAMIS_ASSIGN_OR_RETURN_INNER(TAMIS_CONCAT(tamis_result_, __LINE__), decl, expr)
#define TAMIS_ASSIGN_OR_RETURN_INNER(result, decl, expr) \
  auto result = (expr);                                  \
  if (!result.ok()) return result.status();              \
  decl = std::move(*result)

}  // namespace tamis
