#include "tamis/table/escape.h"

#include <charconv>

namespace tamis {

std::string Escape(std::string_view bytes, std::string_view special) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && c != '\\' && c != '\'' && c != '"' &&
        special.find(c) == std::string_view::npos) {
      out += c;
      continue;
    }
    out += "\\x";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

std::optional<std::string> Unescape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text[0] != '\\') {
      out += text[0];
      text.remove_prefix(1);
      continue;
    }
    unsigned byte = 0;
    if (text.size() < 4 || text[1] != 'x' ||
        std::from_chars(text.data() + 2, text.data() + 4, byte, 16).ptr != text.data() + 4) {
      return std::nullopt;
    }
    out += static_cast<char>(byte);
    text.remove_prefix(4);
  }
  return out;
}

}  // namespace tamis
