#include "tamis/guard/key_frames.h"

namespace tamis {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

}  // namespace

const char* KeyFrames::NameOf(Frame frame) {
  switch (frame) {
    case kBlankBefore:
      return "a blank before it";
    case kBlankBehind:
      return "a blank behind it";
    case kReturn:
      return "a carriage return behind it, as lines of Windows have";
    case kQuotes:
      return "quotes around it, as CSV has";
    case kBrackets:
      return "brackets around it";
    default:
      return "a separator behind it";
  }
}

bool KeyFrames::Has(Frame frame, std::string_view key) {
  const char first = key.front();
  const char last = key.back();
  const bool two = key.size() >= 2;
  switch (frame) {
    case kBlankBefore:
      return IsBlank(first);
    case kBlankBehind:
      return IsBlank(last);
    case kReturn:
      return last == '\r';
    case kQuotes:
      return two && first == last && (first == '"' || first == '\'' || first == '`');
    case kBrackets:
      return two && ((first == '{' && last == '}') || (first == '[' && last == ']') ||
                     (first == '(' && last == ')') || (first == '|' && last == '|'));
    default:
      return last == ',' || last == ';' || last == '|';
  }
}

std::optional<KeyFrames::Frame> KeyFrames::AlteringFrameOf(std::string_view key) {
  for (const Frame frame : {kBlankBefore, kBlankBehind, kReturn, kQuotes}) {
    if (Has(frame, key)) return frame;
  }
  return std::nullopt;
}

void KeyFrames::Add(std::string_view key) {
  const bool is_first = keys_++ == 0;
  for (int i = 0; i < kFrames; ++i) {
    if (!Has(static_cast<Frame>(i), key)) continue;
    if (is_first) {
      first_framed_[i] = true;
    } else {
      ++framed_[i];
    }
  }
}

std::optional<KeyFrames::Frame> KeyFrames::FrameOfAll() const {
  if (keys_ == 0) return std::nullopt;
  const uint64_t others = keys_ - 1;
  for (int i = 0; i < kFrames; ++i) {
    if (framed_[i] == others && (first_framed_[i] || others >= 2)) return static_cast<Frame>(i);
  }
  return std::nullopt;
}

}  // namespace tamis
