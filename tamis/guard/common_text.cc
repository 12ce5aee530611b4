#include "tamis/guard/common_text.h"

#include <algorithm>

#include "tamis/base/ascii.h"

namespace tamis {
namespace {

// Whether the text is more than letters, digits, blanks and the marks that keys are often built
// with (`user:5`, `2026-11-02`, `/a.html`, `x@y`): a list's bullet, a sign, quotes, brackets,
// separators, control characters, the blanks, marks and lines of Unicode.
bool HasMark(std::string_view text) {
  constexpr std::string_view kMarks = "\"'`|,;=<>{}[]()$\\*+#%&!?^~\x7f";
  constexpr std::string_view kOfUnicode[] = {"\xc2\xa0", "\xe2\x80",     "\xe2\x81",    "\xe2\x94",
                                             "\xe2\x95", "\xe3\x80\x80", "\xef\xbb\xbf"};
  return text.find(": ") != text.npos || text.find_first_of(kMarks) != text.npos ||
         std::ranges::any_of(text, [](char c) { return c >= 0 && c < ' '; }) ||
         std::ranges::any_of(kOfUnicode,
                             [&](std::string_view mark) { return text.find(mark) != text.npos; });
}

bool HasDigit(std::string_view text) { return std::ranges::any_of(text, IsDigit); }

// "- ", "row ", " ms"; and "0x", in front of hexadecimal digits that a program asks without. Digits
// beside a blank are parts of a number: "600 123".
bool IsBeginningOfFrame(std::string_view text) {
  const size_t blank = text.find(' ');
  return HasMark(text) || (blank != text.npos && !HasDigit(text.substr(0, blank))) ||
         text.starts_with("0x") || text.starts_with("0X");
}

bool IsEndOfFrame(std::string_view text) {
  const size_t blank = text.rfind(' ');
  return HasMark(text) || (blank != text.npos && !HasDigit(text.substr(blank)));
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
  if (IsBeginningOfFrame(beginning_)) return beginning_;
  return IsEndOfFrame(end) ? std::string(end) : "";
}

char CommonText::Separator() const {
  if (keys_ < 2) return '\0';
  for (size_t i = 0; i < kSeparators.size(); ++i) {
    if ((separators_ >> i & 1) != 0) return kSeparators[i];
  }
  return '\0';
}

}  // namespace tamis
