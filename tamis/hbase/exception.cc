#include "tamis/hbase/exception.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

struct KnownClass {
  std::string_view name;  // without packages
  Remedy remedy;
  StatusCode code;
};

constexpr KnownClass kKnown[] = {
    {"NotServingRegionException", Remedy::kRelocate, StatusCode::kUnavailable},
    {"RegionMovedException", Remedy::kRelocate, StatusCode::kUnavailable},
    {"RegionOpeningException", Remedy::kRelocate, StatusCode::kUnavailable},
    {"RegionServerStoppedException", Remedy::kRelocate, StatusCode::kUnavailable},
    {"RegionServerAbortedException", Remedy::kRelocate, StatusCode::kUnavailable},
    {"ServerNotRunningYetException", Remedy::kRelocate, StatusCode::kUnavailable},
    {"WrongRegionException", Remedy::kRelocate, StatusCode::kUnavailable},
    {"RegionTooBusyException", Remedy::kBackOff, StatusCode::kBusy},
    {"CallQueueTooBigException", Remedy::kBackOff, StatusCode::kBusy},
    {"CallDroppedException", Remedy::kBackOff, StatusCode::kBusy},
    {"MultiActionResultTooLarge", Remedy::kBackOff, StatusCode::kBusy},
    {"RpcThrottlingException", Remedy::kBackOff, StatusCode::kBusy},
    {"PleaseHoldException", Remedy::kBackOff, StatusCode::kUnavailable},
    {"MasterNotRunningException", Remedy::kRelocate, StatusCode::kUnavailable},
    {"MasterStoppedException", Remedy::kRelocate, StatusCode::kUnavailable},
    {"NotActiveMasterException", Remedy::kRelocate, StatusCode::kUnavailable},
    {"UnknownScannerException", Remedy::kReopenScanner, StatusCode::kUnavailable},
    {"ScannerResetException", Remedy::kReopenScanner, StatusCode::kUnavailable},
    {"OutOfOrderScannerNextException", Remedy::kReopenScanner, StatusCode::kUnavailable},
    {"LeaseException", Remedy::kReopenScanner, StatusCode::kUnavailable},
    {"TableNotFoundException", Remedy::kFail, StatusCode::kNotFound},
    {"NamespaceNotFoundException", Remedy::kFail, StatusCode::kNotFound},
    {"NoSuchColumnFamilyException", Remedy::kFail, StatusCode::kNotFound},
    {"UnknownRegionException", Remedy::kFail, StatusCode::kNotFound},
    {"TableExistsException", Remedy::kFail, StatusCode::kAlreadyExists},
    {"NamespaceExistException", Remedy::kFail, StatusCode::kAlreadyExists},
    {"TableNotEnabledException", Remedy::kFail, StatusCode::kFailedPrecondition},
    {"TableNotDisabledException", Remedy::kFail, StatusCode::kFailedPrecondition},
    {"UnknownProtocolException", Remedy::kFail, StatusCode::kFailedPrecondition},
    {"AccessDeniedException", Remedy::kFail, StatusCode::kFailedPrecondition},
    {"FailedSanityCheckException", Remedy::kFail, StatusCode::kInvalidArgument},
    {"RequestTooBigException", Remedy::kFail, StatusCode::kInvalidArgument},
    {"InvalidFamilyOperationException", Remedy::kFail, StatusCode::kInvalidArgument},
    {"DoNotRetryIOException", Remedy::kFail, StatusCode::kInvalidArgument},
};

const KnownClass* Find(std::string_view short_name) {
  for (const KnownClass& known : kKnown) {
    if (known.name == short_name) return &known;
  }
  return nullptr;
}

// Java's own exceptions that a well-formed call does not cause: they come from the state of the
// server. Exceptions about arguments would occur again at any server.
bool IsOfServersState(std::string_view class_name) {
  constexpr std::string_view kOfArguments[] = {
      "java.lang.IllegalArgumentException", "java.lang.NumberFormatException",
      "java.lang.UnsupportedOperationException", "java.lang.ClassCastException",
      "java.lang.ArithmeticException"};
  if (!class_name.starts_with("java.")) return false;
  if (class_name == "java.lang.OutOfMemoryError") return true;
  return class_name.ends_with("Exception") &&
         std::ranges::find(kOfArguments, class_name) == std::end(kOfArguments);
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

Remedy Exception::remedy() const {
  if (const KnownClass* known = Find(ShortName())) return known->remedy;
  if (do_not_retry) return Remedy::kFail;
  return IsOfServersState(class_name) ? Remedy::kElsewhere : Remedy::kUnknown;
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

Status Exception::ToStatus() const {
  const KnownClass* known = Find(ShortName());
  const StatusCode code = known                            ? known->code
                          : do_not_retry                   ? StatusCode::kInvalidArgument
                          : IsOfServersState(class_name) ? StatusCode::kUnavailable
                                                         : StatusCode::kInternal;
  return {code, std::string(ShortName()) + (message.empty() ? "" : ": " + message)};
}

Exception ExceptionOf(std::string_view class_name, std::string_view stack_trace) {
  constexpr size_t kLongest = 1000;
  Exception exception;
  exception.class_name = class_name.substr(0, kLongest);
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
