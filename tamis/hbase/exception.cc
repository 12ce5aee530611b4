#include "tamis/hbase/exception.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "tamis/hbase/missing_right.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

constexpr std::string_view kAccessDenied = "AccessDeniedException";
constexpr std::string_view kIllegalArgument = "java.lang.IllegalArgumentException";

struct KnownClass {
  std::string_view name;  // without packages
  RetryAction retry_action;
  StatusCode code;
};

constexpr KnownClass kKnown[] = {
    {"NotServingRegionException", RetryAction::kRelocate, StatusCode::kUnavailable},
    {"RegionMovedException", RetryAction::kRelocate, StatusCode::kUnavailable},
    {"RegionOpeningException", RetryAction::kRelocate, StatusCode::kUnavailable},
    {"RegionServerStoppedException", RetryAction::kRelocate, StatusCode::kUnavailable},
    {"RegionServerAbortedException", RetryAction::kRelocate, StatusCode::kUnavailable},
    {"ServerNotRunningYetException", RetryAction::kRelocate, StatusCode::kUnavailable},
    {"WrongRegionException", RetryAction::kRelocate, StatusCode::kUnavailable},
    {"RegionTooBusyException", RetryAction::kBackOff, StatusCode::kBusy},
    {"CallQueueTooBigException", RetryAction::kBackOff, StatusCode::kBusy},
    {"CallDroppedException", RetryAction::kBackOff, StatusCode::kBusy},
    {"MultiActionResultTooLarge", RetryAction::kBackOff, StatusCode::kBusy},
    {"RpcThrottlingException", RetryAction::kBackOff, StatusCode::kBusy},
    {"PleaseHoldException", RetryAction::kBackOff, StatusCode::kUnavailable},
    {"MasterNotRunningException", RetryAction::kRelocate, StatusCode::kUnavailable},
    {"MasterStoppedException", RetryAction::kRelocate, StatusCode::kUnavailable},
    {"NotActiveMasterException", RetryAction::kRelocate, StatusCode::kUnavailable},
    {"UnknownScannerException", RetryAction::kReopenScanner, StatusCode::kUnavailable},
    {"ScannerResetException", RetryAction::kReopenScanner, StatusCode::kUnavailable},
    {"OutOfOrderScannerNextException", RetryAction::kReopenScanner, StatusCode::kUnavailable},
    {"LeaseException", RetryAction::kReopenScanner, StatusCode::kUnavailable},
    {"TableNotFoundException", RetryAction::kFail, StatusCode::kNotFound},
    {"NamespaceNotFoundException", RetryAction::kFail, StatusCode::kNotFound},
    {"NoSuchColumnFamilyException", RetryAction::kFail, StatusCode::kNotFound},
    {"UnknownRegionException", RetryAction::kFail, StatusCode::kNotFound},
    // The regions have files or entries in hbase:meta of an earlier merge or split, or are moving.
    {"MergeRegionException", RetryAction::kFail, StatusCode::kUnavailable},
    {"TableExistsException", RetryAction::kFail, StatusCode::kAlreadyExists},
    {"NamespaceExistException", RetryAction::kFail, StatusCode::kAlreadyExists},
    {"TableNotEnabledException", RetryAction::kFail, StatusCode::kFailedPrecondition},
    {"TableNotDisabledException", RetryAction::kFail, StatusCode::kFailedPrecondition},
    {"UnknownProtocolException", RetryAction::kFail, StatusCode::kFailedPrecondition},
    {kAccessDenied, RetryAction::kFail, StatusCode::kFailedPrecondition},
    {"FailedSanityCheckException", RetryAction::kFail, StatusCode::kInvalidArgument},
    {"RequestTooBigException", RetryAction::kFail, StatusCode::kInvalidArgument},
    {"InvalidFamilyOperationException", RetryAction::kFail, StatusCode::kInvalidArgument},
    {"DoNotRetryIOException", RetryAction::kFail, StatusCode::kInvalidArgument},
};

const KnownClass* Find(std::string_view short_name) {
  for (const KnownClass& known : kKnown) {
    if (known.name == short_name) return &known;
  }
  return nullptr;
}

// Exceptions about the arguments of a call. They would occur again at any server.
bool IsOfArguments(std::string_view class_name) {
  constexpr std::string_view kOfArguments[] = {kIllegalArgument, "java.lang.NumberFormatException",
                                               "java.lang.UnsupportedOperationException",
                                               "java.lang.ClassCastException",
                                               "java.lang.ArithmeticException"};
  return std::ranges::find(kOfArguments, class_name) != std::end(kOfArguments);
}

// Java's own exceptions that a well-formed call does not cause: they come from the state of the
// server.
bool IsOfServersState(std::string_view class_name) {
  if (!class_name.starts_with("java.")) return false;
  if (class_name == "java.lang.OutOfMemoryError") return true;
  return class_name.ends_with("Exception") && !IsOfArguments(class_name);
}

// HBase wraps an exception that it does not declare in a plain IOException, whose cause it is.
// Returns the class of that cause if it is about the arguments, else `class_name`.
std::string_view WithoutWrapper(std::string_view class_name, std::string_view stack_trace) {
  constexpr std::string_view kCause = "\nCaused by: ";
  if (class_name != "java.io.IOException") return class_name;
  const size_t at = stack_trace.find(kCause);
  if (at == std::string_view::npos) return class_name;
  const std::string_view cause = stack_trace.substr(at + kCause.size());
  const std::string_view name = cause.substr(0, cause.find_first_of(":\n"));
  return IsOfArguments(name) ? name : class_name;
}

// Returns the number that follows `label` in `text`; -1 if there is none.
int64_t NumberBehind(std::string_view text, std::string_view label) {
  const size_t at = text.find(label);
  if (at == std::string_view::npos) return -1;
  int64_t number = -1;
  const char* begin = text.data() + at + label.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  return error == std::errc() ? number : -1;
}

// "Region moved to: hostname=H port=P startCode=S. As of locationSeqNum=N."
std::optional<Exception::Moved> MovedTo(std::string_view message) {
  constexpr std::string_view kHost = "hostname=";
  const size_t host = message.find(kHost);
  const int64_t port = NumberBehind(message, " port=");
  const int64_t start_code = NumberBehind(message, " startCode=");
  const int64_t sequence = NumberBehind(message, "locationSeqNum=");
  if (host == std::string_view::npos || port <= 0 || port > 65535 || start_code < 0 ||
      sequence < 0) {
    return {};
  }
  std::string_view name = message.substr(host + kHost.size());
  name = name.substr(0, name.find(' '));
  if (name.empty()) return {};
  return Exception::Moved{.server = {.address = {std::string(name), static_cast<uint16_t>(port)},
                                     .start_code = static_cast<uint64_t>(start_code)},
                          .sequence = sequence};
}

}  // namespace

std::string_view Exception::ShortName() const {
  const std::string_view name = class_name;
  const size_t dot = name.find_last_of(".$");
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

RetryAction Exception::retry_action() const {
  if (const KnownClass* known = Find(ShortName())) return known->retry_action;
  if (do_not_retry) return RetryAction::kFail;
  return IsOfServersState(class_name) ? RetryAction::kElsewhere : RetryAction::kUnknown;
}

bool Exception::may_have_run() const {
  // Every other known class is thrown before the server changes anything. HBase wraps exceptions of
  // coprocessors in this class, whether they are thrown before or after the write.
  const KnownClass* known = Find(ShortName());
  return known == nullptr || known->name == "DoNotRetryIOException";
}

bool Exception::tells_region_is_not_here() const {
  const std::string_view name = ShortName();
  return name == "NotServingRegionException" || name == "RegionMovedException" ||
         name == "RegionOpeningException";
}

bool Exception::tells_service_is_not_there() const {
  // HBase also uses this class if the service exists but lacks the method.
  return ShortName() == "UnknownProtocolException" && message.starts_with("No registered");
}

bool Exception::tells_user_is_denied() const { return ShortName() == kAccessDenied; }

bool IsAccessDenied(const Status& status) {
  return !status.ok() && status.message().find(kAccessDenied) != std::string::npos;
}

Status Exception::ToStatus() const {
  const KnownClass* known = Find(ShortName());
  const bool is_refused = do_not_retry || class_name == kIllegalArgument;
  const StatusCode code = known                          ? known->code
                          : is_refused                   ? StatusCode::kInvalidArgument
                          : IsOfServersState(class_name) ? StatusCode::kUnavailable
                                                         : StatusCode::kInternal;
  const std::string text = tells_user_is_denied() ? ExplainMissingRight(message) : message;
  return {code, std::string(ShortName()) + (text.empty() ? "" : ": " + text)};
}

Exception ExceptionOf(std::string_view class_name, std::string_view stack_trace) {
  constexpr size_t kLongest = 1000;
  Exception exception;
  exception.class_name = WithoutWrapper(class_name, stack_trace).substr(0, kLongest);
  std::string_view line = stack_trace.substr(0, stack_trace.find('\n'));
  if (line.starts_with(class_name)) {
    line.remove_prefix(class_name.size());
    if (line.starts_with(": ")) line.remove_prefix(2);
  }
  exception.message = line.substr(0, kLongest);
  if (exception.ShortName() == "RegionMovedException") exception.moved = MovedTo(line);
  return exception;
}

Exception ExceptionOf(const pb::ExceptionResponse& response) {
  Exception exception = ExceptionOf(response.exception_class_name(), response.stack_trace());
  exception.do_not_retry = response.do_not_retry();
  exception.server_overloaded = response.server_overloaded();
  return exception;
}

Exception ExceptionOf(const pb::NameBytesPair& pair) {
  return ExceptionOf(pair.name(), pair.value());
}

}  // namespace tamis::hbase
