// ShownKey: a key for a message, in quotes, at most 60 bytes of it. Control characters, and the
// bytes of a key that is no UTF-8, are escaped, so that every terminal and decoder takes it.
#pragma once

#include <string>
#include <string_view>

namespace tamis {

std::string ShownKey(std::string_view key);

}  // namespace tamis
