// JSON that clients send, as the library nlohmann/json has it.
//
// The library reads and destroys a value of any depth without recursion, but copies it and turns
// it into text by recursion. A value from here has few levels, so both are safe.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tamis/base/status.h"

namespace tamis::server {

constexpr int kMostJsonLevels = 64;  // levels of arrays and objects inside of each other

// kInvalidArgument for a text that is no JSON, for more than kMostJsonLevels, for a number that no
// double is near to, and for an object that has a member twice: which of the two is meant?
Result<nlohmann::json> ParseJsonBody(const std::string& body);

}  // namespace tamis::server
