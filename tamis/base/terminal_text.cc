#include "tamis/base/terminal_text.h"

#include "tamis/base/utf8.h"

namespace tamis {

bool IsTerminalControl(std::string_view character) {
  const auto byte = [character](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  if (character.size() == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;
  if (character.size() != 3 || byte(0) != 0xe2) return false;
  return (byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae) ||
         (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9);
}

std::string TerminalText(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t size = Utf8Size(text);
    const std::string_view character = text.substr(0, size == 0 ? 1 : size);
    const bool kept = character == "\n" || character == "\t";
    const auto first = static_cast<unsigned char>(character[0]);
    const bool control = size == 0 ? first < 0xa0 : IsTerminalControl(character);
    if (control && !kept) {
      out += '?';
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace tamis
