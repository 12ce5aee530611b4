#include "tamis/hbase/printable.h"

namespace tamis::hbase {

std::string Printable(std::string_view bytes) {
  constexpr size_t kLongest = 200;
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text = "\"";
  for (const char c : bytes.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      text += c;
    } else {
      text += "\\x";
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    }
  }
  return text + (bytes.size() > kLongest ? "...\"" : "\"");
}

}  // namespace tamis::hbase
