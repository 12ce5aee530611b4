#include "tamis/guard/key_shape.h"

#include <algorithm>

namespace tamis {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A key as a person may read it.
std::string ShownKey(std::string_view key) {
  constexpr size_t kMost = 60;
  std::string text = "\"";
  for (const char c : key.substr(0, kMost)) {
    if (c == '\r') {
      text += "\\r";
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\t') {
      text += "\\t";
    } else if (c == '\0') {
      text += "\\0";
    } else {
      text += c;
    }
  }
  return text + (key.size() > kMost ? "..." : "") + "\"";
}

Status Refuse(const std::string& what) {
  return DataLoss(what +
                  "; let the command print bare keys (psql: COPY (SELECT ...) TO STDOUT, or -At), "
                  "or say --as-is when this belongs to the keys");
}

bool IsNumber(std::string_view key) { return !key.empty() && std::ranges::all_of(key, IsDigit); }

// The line below a head: "----", "+---+", "=====".
bool IsRuler(std::string_view key) {
  const auto drawn = std::ranges::count_if(key, [](char c) { return c == '-' || c == '='; });
  return drawn >= 2 && key.find_first_not_of("-=+| \r") == key.npos;
}

// "(5 rows)", "5 rows selected.", "(5 rows affected)", "5 rows in set".
bool IsFooter(std::string_view key) {
  if (key.starts_with('(')) key.remove_prefix(1);
  const size_t digits = std::min(key.find_first_not_of("0123456789"), key.size());
  key.remove_prefix(digits);
  return digits > 0 && (key.starts_with(" rows") || key.starts_with(" row)") ||
                        key.starts_with(" row ") || key == " row");
}

}  // namespace

const char* KeyShape::NameOf(Frame frame) {
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

bool KeyShape::Has(Frame frame, std::string_view key) {
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

Status KeyShape::AddFirst(std::string_view key) const {
  if (key.starts_with("\xef\xbb\xbf")) {
    return Refuse("key 1 begins with the byte order mark of UTF-8");
  }
  if (key.starts_with("\xff\xfe") || key.starts_with("\xfe\xff")) {
    return Refuse("key 1 begins with the byte order mark of UTF-16; print UTF-8");
  }
  if (key.starts_with("-[ RECORD")) return Refuse("key 1 is a head of psql, " + ShownKey(key));
  return Status::Ok();
}

Status KeyShape::Add(std::string_view key) {
  ++keys_;
  if (key.empty()) return Status::Ok();  // psql ends with an empty line
  const bool is_first = first_.empty();
  const auto refuse = [&](const std::string& what) {
    return Refuse("key " + std::to_string(keys_) + ", " + ShownKey(key) + ", has " + what);
  };
  if (is_first) TAMIS_RETURN_IF_ERROR(AddFirst(key));
  if (keys_ <= 3 && IsRuler(key)) {
    return Refuse("key " + std::to_string(keys_) + ", " + ShownKey(key) +
                  ", is a line below a head");
  }
  if ((plain_ || copy_) && key.find('\0') != key.npos) {
    return refuse("a zero byte, as UTF-16 has; keys that end with one are --format null");
  }
  for (int i = 0; i < kFrames; ++i) {
    const Frame frame = static_cast<Frame>(i);
    if (!Has(frame, key)) continue;
    if (is_first) {
      first_framed_[i] = true;
    } else {
      ++framed_[i];
    }
    // A plain key with one of these may mean another key. Brackets and separators may belong to
    // single keys.
    if (plain_ && frame <= kQuotes) {
      return refuse(std::string(NameOf(frame)) +
                    ": --format lines says that it is part of the key");
    }
  }
  if (is_first) {
    first_ = key;
    first_is_number_ = IsNumber(key);
  } else {
    numbers_ += IsNumber(key) ? 1 : 0;
    width_ = others_++ == 0 || width_ == key.size() ? key.size() : 0;
    padded_ = padded_ || IsBlank(key.front()) || IsBlank(key.back());
  }
  last_ = key;
  return Status::Ok();
}

Status KeyShape::Finish() const {
  if (first_.empty()) return Status::Ok();
  // The first line may be a head, which is framed in another way.
  for (int i = 0; i < kFrames; ++i) {
    if (framed_[i] == others_ && (first_framed_[i] || others_ >= 2)) {
      return Refuse("every key has " + std::string(NameOf(static_cast<Frame>(i))) + ", such as " +
                    ShownKey(last_));
    }
  }
  if (others_ >= 2 && width_ >= 2 && padded_) {
    return Refuse("all keys are " + std::to_string(width_) +
                  " bytes wide and filled with blanks, such as " + ShownKey(last_));
  }
  if (others_ >= 1 && IsFooter(last_)) return Refuse("the last key is " + ShownKey(last_));
  if (others_ >= 2 && !first_is_number_ && numbers_ == others_) {
    return Refuse("the first key, " + ShownKey(first_) + ", looks like a head of numbers");
  }
  return Status::Ok();
}

}  // namespace tamis
