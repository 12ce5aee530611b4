#include "tamis/server/problem.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tamis::server {
namespace {

std::string_view Title(int http_status) {
  switch (http_status) {
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 507:
      return "Insufficient Storage";
    default:
      return "Internal Server Error";
  }
}

nlohmann::ordered_json JsonOf(int http_status, const Status& status) {
  return {{"type", "about:blank"},
          {"title", Title(http_status)},
          {"status", http_status},
          {"code", StatusCodeName(status.code())},
          {"detail", status.message()}};
}

std::string TextOf(const nlohmann::ordered_json& problem) {
  return problem.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Response Document(int http_status, const nlohmann::ordered_json& problem) {
  Response response{.status = http_status,
                    .content_type = "application/problem+json",
                    .body = TextOf(problem) + "\n"};
  if (http_status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace

int HttpStatusOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidArgument:
      return 400;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kAlreadyExists:
    case StatusCode::kFailedPrecondition:
      return 409;
    case StatusCode::kUnavailable:
    case StatusCode::kBusy:
      return 503;
    case StatusCode::kDeadlineExceeded:
      return 504;
    case StatusCode::kCancelled:
      return 499;
    case StatusCode::kResourceExhausted:
      return 507;
    case StatusCode::kDataLoss:
    case StatusCode::kInternal:
      return 500;
  }
  return 500;
}

std::string ProblemText(int http_status, const Status& status) {
  return TextOf(JsonOf(http_status, status));
}

Response Problem(int http_status, const Status& status) {
  return Document(http_status, JsonOf(http_status, status));
}

Response ProblemOfProcess(uint64_t process, int http_status, const Status& status) {
  nlohmann::ordered_json problem = JsonOf(http_status, status);
  problem["process"] = fmt::format("{:016x}", process);
  return Document(http_status, problem);
}

}  // namespace tamis::server
