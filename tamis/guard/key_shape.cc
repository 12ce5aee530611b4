#include "tamis/guard/key_shape.h"

#include <algorithm>

#include "tamis/base/ascii.h"
#include "tamis/base/utf8.h"
#include "tamis/guard/shown_key.h"

namespace tamis {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

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

// The line that mysql prints before each row with \G: "*** 1. row ***", with more stars.
bool IsRowHead(std::string_view key) {
  return key.starts_with("***") && key.find(". row *") != key.npos;
}

// "┌────┐", "│ 5 │".
bool IsDrawn(std::string_view key) {
  return key.starts_with("\xe2\x94") || key.starts_with("\xe2\x95");
}

// "1,2,3": several numbers in one line. A few with blanks may be a telephone number.
bool IsListOfNumbers(std::string_view key) {
  constexpr auto kFewBlanks = 9;
  const size_t separator = key.find_first_of(" ,;|\t");
  if (separator == key.npos) return false;
  const char one = key[separator];
  bool was_digit = false;
  for (const char c : key) {
    if (!IsDigit(c) && (c != one || !was_digit)) return false;
    was_digit = IsDigit(c);
  }
  return was_digit && (one != ' ' || std::ranges::count(key, one) >= kFewBlanks);
}

// "7:x", "7) x", "7. x", "7<tab>x" as the seventh line.
bool BeginsWithItsNumber(std::string_view key, uint64_t number) {
  const size_t blanks = key.find_first_not_of(' ');
  key.remove_prefix(blanks == key.npos ? key.size() : blanks);
  const std::string digits = std::to_string(number);
  if (!key.starts_with(digits) || key.size() < digits.size() + 2) return false;
  return std::string_view(":)\t").find(key[digits.size()]) != std::string_view::npos ||
         key.substr(digits.size()).starts_with(". ");
}

// Zero bytes, blanks and carriage returns have messages of their own.
bool IsControl(char c) { return (c > 0 && c < ' ' && !IsBlank(c) && c != '\r') || c == '\x7f'; }

// Whether the key is no text: a number or UUID in binary, printed as it stands. Programs draw
// colours with the character ESC.
bool IsBytes(std::string_view key) {
  constexpr char kEscape = '\x1b';
  return key.find('\0') != key.npos || FindInvalidUtf8(key) != key.npos ||
         std::ranges::any_of(key, [](char c) { return IsControl(c) && c != kEscape; });
}

std::string AsLines() { return ": --format lines says that it is part of the key"; }

}  // namespace

Status KeyShape::AddFirst(std::string_view key) const {
  if (key.starts_with("\xef\xbb\xbf")) {
    return Refuse("key 1 begins with the byte order mark of UTF-8");
  }
  if (key.starts_with("\xff\xfe") || key.starts_with("\xfe\xff")) {
    return Refuse("key 1 begins with the byte order mark of UTF-16; print UTF-8");
  }
  if (key.starts_with("-[ RECORD")) return Refuse("key 1 is a head of psql, " + ShownKey(key));
  for (const char* mark : {"<table", "<html", "<!DOCTYPE", "<?xml", "\\begin{"}) {
    if (key.starts_with(mark)) return Refuse("key 1, " + ShownKey(key) + ", begins a document");
  }
  return Status::Ok();
}

Status KeyShape::Add(std::string_view key) {
  ++keys_;
  if (key.empty()) return Status::Ok();  // psql ends with an empty line
  const bool is_first = alike_.empty();
  const auto refuse = [&](const std::string& what) {
    return Refuse("key " + std::to_string(keys_) + ", " + ShownKey(key) + ", has " + what);
  };
  if (is_first) TAMIS_RETURN_IF_ERROR(AddFirst(key));
  if (IsDrawn(key)) return refuse("lines drawn around it");
  if (IsRowHead(key)) return refuse("the number of a row, as mysql prints with \\G");
  if (keys_ <= 3 && IsRuler(key)) {
    return Refuse("key " + std::to_string(keys_) + ", " + ShownKey(key) +
                  ", is a line below a head");
  }
  if ((plain_ || copy_) && FindInvalidUtf8(key) != key.npos) {
    return refuse("bytes that are no UTF-8, as of another character set or a compressed file" +
                  (plain_ ? AsLines() : ""));
  }
  if (plain_ && std::ranges::any_of(key, IsControl))
    return refuse("a control character" + AsLines());
  if (key.find(" (cost=") != key.npos) return refuse("the plan of a query");
  if ((plain_ || copy_) && key.find('\0') != key.npos) {
    return refuse("a zero byte, as UTF-16 has; keys that end with one are --format null");
  }
  // A plain key with one of these may mean another key. Brackets and separators may belong to
  // single keys.
  if (const auto frame = KeyFrames::AlteringFrameOf(key); plain_ && frame.has_value()) {
    return refuse(KeyFrames::NameOf(*frame) + AsLines());
  }
  frames_.Add(key);
  if (!plain_ && !copy_ && IsBytes(key)) ++binary_;
  counted_ = counted_ && BeginsWithItsNumber(key, alike_.count() + 1);
  if (is_first) {
    first_is_number_ = IsNumber(key);
  } else {
    numbers_ += IsNumber(key) ? 1 : 0;
    width_ = alike_.count() == 1 || width_ == key.size() ? key.size() : 0;
    padded_ = padded_ || IsBlank(key.front()) || IsBlank(key.back());
  }
  alike_.Add(key);
  return Status::Ok();
}

bool KeyShape::IsBinary() const { return binary_ * 2 > alike_.count(); }

Status KeyShape::Finish() const {
  if (alike_.empty()) return keys_ < 2 ? Status::Ok() : Refuse("all keys are empty");
  const std::string& first = alike_.first();
  const std::string& last = alike_.last();
  const uint64_t others = alike_.count() - 1;  // without the first
  if (others == 0 && IsListOfNumbers(first)) {
    return Refuse("the only key, " + ShownKey(first) + ", looks like several of them");
  }
  constexpr uint64_t kFewLines = 9;  // parts of keys may count, too
  if (counted_ && others >= kFewLines) {
    return Refuse("every key begins with the number of its line, such as " + ShownKey(last));
  }
  if (IsRuler(last)) return Refuse("the last key is a line, " + ShownKey(last));
  // The first line may be a head, which is framed in another way.
  if (const auto frame = frames_.FrameOfAll(); frame.has_value()) {
    return Refuse("every key has " + std::string(KeyFrames::NameOf(*frame)) + ", such as " +
                  ShownKey(last));
  }
  if (IsBinary()) return Status::Ok();
  if (others >= 2 && width_ >= 2 && padded_) {
    return Refuse("all keys are " + std::to_string(width_) +
                  " bytes wide and filled with blanks, such as " + ShownKey(last));
  }
  if (others >= 1 && IsFooter(last)) return Refuse("the last key is " + ShownKey(last));
  if (others >= 2 && !first_is_number_ && numbers_ == others) {
    return Refuse("the first key, " + ShownKey(first) + ", looks like a head of numbers");
  }
  if (proved_ && !plain_) return Status::Ok();
  const std::string common = alike_.Fault();
  return common.empty() ? Status::Ok() : Refuse(common + ", such as " + ShownKey(last));
}

}  // namespace tamis
