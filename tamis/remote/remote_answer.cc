#include "tamis/remote/remote_answer.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace tamis {
namespace {

// The error of a problem document; nullopt: the body is none of this project's servers.
std::optional<Status> ProblemOf(const std::string& body) {
  const auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("code") || !json["code"].is_string() ||
      !json.contains("detail") || !json["detail"].is_string()) {
    return std::nullopt;
  }
  for (auto code = static_cast<int>(StatusCode::kInvalidArgument);
       code <= static_cast<int>(StatusCode::kInternal); ++code) {
    if (StatusCodeName(static_cast<StatusCode>(code)) == json["code"].get<std::string>()) {
      return Status(static_cast<StatusCode>(code), json["detail"].get<std::string>());
    }
  }
  return std::nullopt;
}

}  // namespace

Status StatusOf(const HttpClient& client, const HttpClient::Answer& answer, bool changes) {
  if (!answer.failure.ok()) {
    if (!changes || !answer.was_sent) return answer.failure;
    return DeadlineExceeded(answer.failure.message() + "; the request may have been carried out");
  }
  if (answer.status == 200) return Status::Ok();
  const std::string server = "the server at " + client.url();
  if (answer.status == 401) {
    return FailedPrecondition(server +
                              " does not accept the token, or needs one; name a file with it by "
                              "?token-file=FILE behind the store's name, or TAMIS_TOKEN_FILE");
  }
  if (auto problem = ProblemOf(answer.body)) return *std::move(problem);
  const std::string what = server + " answered with HTTP status " + std::to_string(answer.status);
  // A proxy between the two does not know what the server did.
  if (answer.status >= 500) {
    return changes ? DeadlineExceeded(what + "; the request may have been carried out")
                   : Unavailable(what);
  }
  return InvalidArgument(what + "; it is no server of tamis serve, or is of another version");
}

std::optional<uint64_t> RefusingProcessOf(const HttpClient::Answer& answer) {
  if (!answer.failure.ok() || answer.status == 200) return std::nullopt;
  const auto json = nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("process") || !json["process"].is_string()) {
    return std::nullopt;
  }
  const auto& text = json["process"].get_ref<const std::string&>();
  uint64_t process = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), process, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return process;
}

}  // namespace tamis
