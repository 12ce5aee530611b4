#include "tamis/guard/common_text.h"

#include <algorithm>

namespace tamis {
namespace {

// Whether keys are not made of such text: quotes, brackets, separators, control characters, and
// the blanks, marks and lines of Unicode.
bool IsFrame(std::string_view text) {
  constexpr std::string_view kMarks = "\"'`|,;=<>{}[]()$\\\x7f";
  constexpr std::string_view kOfUnicode[] = {"\xc2\xa0", "\xe2\x80",     "\xe2\x81",    "\xe2\x94",
                                             "\xe2\x95", "\xe3\x80\x80", "\xef\xbb\xbf"};
  return text.find(": ") != text.npos || text.find_first_of(kMarks) != text.npos ||
         std::ranges::any_of(text, [](char c) { return c >= 0 && c < ' '; }) ||
         std::ranges::any_of(kOfUnicode,
                             [&](std::string_view mark) { return text.find(mark) != text.npos; });
}

}  // namespace

void CommonText::Add(std::string_view key) {
  if (keys_++ == 0) {
    beginning_ = key;
    end_ = key;
  }
  const auto differs = std::ranges::mismatch(beginning_, key).in1;
  beginning_.erase(differs, beginning_.end());
  size_t same = 0;
  while (same < std::min(end_.size(), key.size()) &&
         end_[end_.size() - 1 - same] == key[key.size() - 1 - same]) {
    ++same;
  }
  end_.erase(0, end_.size() - same);
  for (size_t i = 0; i < kSeparators.size(); ++i) {
    if (key.find(kSeparators[i]) == key.npos) separators_ &= ~(uint32_t{1} << i);
  }
}

std::string CommonText::Frame() const {
  if (keys_ < 2) return "";
  // The last characters of base64 are '='.
  const std::string_view end(end_.data(), end_.find_last_not_of('=') + 1);
  return IsFrame(beginning_) ? beginning_ : IsFrame(end) ? end_ : "";
}

char CommonText::Separator() const {
  if (keys_ < 2) return '\0';
  for (size_t i = 0; i < kSeparators.size(); ++i) {
    if ((separators_ >> i & 1) != 0) return kSeparators[i];
  }
  return '\0';
}

}  // namespace tamis
