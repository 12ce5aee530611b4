#include "tamis/server/json_body.h"

namespace tamis::server {

Result<nlohmann::json> ParseJsonBody(const std::string& body) {
  using Event = nlohmann::json::parse_event_t;
  bool is_too_deep = false;
  // `depth` is 0 at the outermost value. A value that is not kept costs no memory.
  const auto keep = [&](int depth, Event event, nlohmann::json&) {
    if (event != Event::array_start && event != Event::object_start) return true;
    is_too_deep = is_too_deep || depth >= kMostJsonLevels;
    return !is_too_deep;
  };
  auto json = nlohmann::json::parse(body, keep, /*allow_exceptions=*/false);
  if (is_too_deep) {
    return InvalidArgument("the body of the request has more than " +
                           std::to_string(kMostJsonLevels) + " levels of arrays and objects");
  }
  if (json.is_discarded()) return InvalidArgument("the body of the request is no JSON");
  return json;
}

}  // namespace tamis::server
