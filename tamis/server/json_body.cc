#include "tamis/server/json_body.h"

#include <set>
#include <vector>

namespace tamis::server {

Result<nlohmann::json> ParseJsonBody(const std::string& body) {
  using Event = nlohmann::json::parse_event_t;
  bool is_too_deep = false;
  std::vector<std::set<std::string>> members;  // members of the open objects, outermost first
  std::string twice;                           // the error for a member that stands twice
  // `depth` is 0 at the outermost value. A value that is not kept costs no memory.
  const auto keep = [&](int depth, Event event, nlohmann::json& parsed) {
    if (is_too_deep) return false;
    if (event == Event::key && !members.back().insert(parsed.get<std::string>()).second) {
      twice = "an object in the body of the request has the member " + parsed.dump() + " twice";
    }
    if (event == Event::object_start) members.emplace_back();
    if (event == Event::object_end) members.pop_back();
    if (event != Event::array_start && event != Event::object_start) return true;
    is_too_deep = is_too_deep || depth >= kMostJsonLevels;
    return !is_too_deep;
  };
  nlohmann::json json;
  std::string error;
  try {
    json = nlohmann::json::parse(body, keep);
  } catch (const nlohmann::json::parse_error& wrong) {
    error = "the body of the request is no JSON: see its byte " + std::to_string(wrong.byte);
  } catch (const nlohmann::json::exception&) {
    error = "the body of the request has a number that is too large";
  }
  if (is_too_deep) {
    return InvalidArgument("the body of the request has more than " +
                           std::to_string(kMostJsonLevels) + " levels of arrays and objects");
  }
  if (!error.empty()) return InvalidArgument(error);
  if (!twice.empty()) return InvalidArgument(twice);
  return json;
}

}  // namespace tamis::server
