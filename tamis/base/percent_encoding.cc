#include "tamis/base/percent_encoding.h"

#include <charconv>

namespace tamis {

std::optional<std::string> DecodePercents(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    unsigned byte = 0;
    if (i + 2 >= text.size()) return {};
    const char* digits = text.data() + i + 1;
    if (std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) return {};
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

}  // namespace tamis
