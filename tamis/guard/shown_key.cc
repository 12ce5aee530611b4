#include "tamis/guard/shown_key.h"

#include <algorithm>

#include "tamis/base/terminal_text.h"
#include "tamis/base/utf8.h"

namespace tamis {

std::string ShownKey(std::string_view key) {
  constexpr size_t kMost = 60;
  const bool is_text = FindInvalidUtf8(key) == key.npos;
  std::string text = "\"";
  size_t at = 0;
  while (at < std::min(key.size(), kMost)) {
    const char c = key[at];
    const size_t size = is_text ? Utf8Size(key.substr(at)) : 1;
    if (c == '\r') {
      text += "\\r";
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\t') {
      text += "\\t";
    } else if (c == '\0') {
      text += "\\0";
    } else if (IsTerminalControl(key.substr(at, size)) || (c < 0 && !is_text)) {
      constexpr char kDigits[] = "0123456789abcdef";
      for (const char part : key.substr(at, size)) {
        const auto byte = static_cast<unsigned char>(part);
        text += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
      }
    } else {
      text += key.substr(at, size);
    }
    at += size;
  }
  return text + (at < key.size() ? "..." : "") + "\"";
}

}  // namespace tamis
