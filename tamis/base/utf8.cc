#include "tamis/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace tamis {

size_t Utf8Size(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const uint8_t second = byte(1);
  const bool too_long = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool too_great = first == 0xf4 && second >= 0x90;
  return too_long || surrogate || too_great ? 0 : size;
}

void AppendUtf8(uint32_t character, std::string* out) {
  const auto byte = [out](uint32_t bits) { out->push_back(static_cast<char>(bits)); };
  const auto follow = [&](int shift) { byte(0x80 | (character >> shift & 0x3f)); };
  if (character < 0x80) {
    byte(character);
  } else if (character < 0x800) {
    byte(0xc0 | character >> 6);
    follow(0);
  } else if (character < 0x10000) {
    byte(0xe0 | character >> 12);
    follow(6);
    follow(0);
  } else {
    byte(0xf0 | character >> 18);
    follow(12);
    follow(6);
    follow(0);
  }
}

size_t FindInvalidUtf8(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  for (size_t at = 0; at < text.size();) {
    uint64_t word = kHighBits;
    if (text.size() - at >= sizeof(word)) std::memcpy(&word, text.data() + at, sizeof(word));
    if ((word & kHighBits) == 0) {  // eight characters of ASCII
      at += sizeof(word);
      continue;
    }
    const size_t size = Utf8Size(text.substr(at));
    if (size == 0) return at;
    at += size;
  }
  return std::string_view::npos;
}

}  // namespace tamis
