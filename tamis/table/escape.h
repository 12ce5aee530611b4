// Bytes as text: cell families and qualifiers, delimiters. Printable ASCII characters are
// themselves; every other byte, the backslash and the separators of the context are \xNN.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tamis {

// `special` is escaped, too.
std::string Escape(std::string_view bytes, std::string_view special);
// nullopt where a backslash is not followed by x and two hexadecimal digits.
std::optional<std::string> Unescape(std::string_view text);

}  // namespace tamis
