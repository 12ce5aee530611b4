// Percent-encoding (RFC 3986, 2.1), as in the parts of a URL.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tamis {

// With the bytes that stand there as %XX; nothing when a % is followed by something else.
std::optional<std::string> DecodePercents(std::string_view text);

}  // namespace tamis
