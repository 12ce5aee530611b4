#include "tamis/import/json_array.h"

#include <string_view>
#include <utility>

namespace tamis {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

}  // namespace

bool JsonArray::BeginsIn(const std::string& line) {
  const size_t begin = line.find_first_not_of(kBlanks);
  return begin != std::string::npos && line[begin] == '[';
}

JsonArray::JsonArray(std::string first, LineSource* lines)
    : lines_(lines),
      line_(std::move(first)),
      at_(line_.find('[') + 1),
      begin_line_(lines->line()) {}

Result<bool> JsonArray::NextLine() {
  TAMIS_ASSIGN_OR_RETURN(auto line, lines_->Next());
  if (!line) return false;
  line_ = *std::move(line);
  at_ = 0;
  return true;
}

Result<bool> JsonArray::SkipBlanks() {
  while (true) {
    at_ = line_.find_first_not_of(kBlanks, at_);
    if (at_ != std::string::npos) return true;
    at_ = line_.size();
    TAMIS_ASSIGN_OR_RETURN(const bool more, NextLine());
    if (!more) return false;
  }
}

Status JsonArray::DoesNotEnd() const {
  return InvalidArgument("the array that begins in line " + std::to_string(begin_line_) +
                         " does not end");
}

Result<std::string> JsonArray::Element() {
  std::string text;
  size_t depth = 0;
  bool in_string = false;
  bool is_escaped = false;
  element_line_ = lines_->line();
  while (true) {
    const size_t begin = at_;
    for (; at_ < line_.size(); ++at_) {
      const char c = line_[at_];
      if (in_string) {
        in_string = is_escaped || c != '"';
        is_escaped = !is_escaped && c == '\\';
      } else if (c == '"') {
        in_string = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (depth > 0 && (c == '}' || c == ']')) {
        --depth;
      } else if (depth == 0 && (c == ',' || c == ']')) {
        text.append(line_, begin, at_ - begin);
        return text;
      }
    }
    text.append(line_, begin).append("\n");
    if (text.size() > LineSource::kMaxRecordBytes) {
      return InvalidArgument("the element is longer than " +
                             std::to_string(LineSource::kMaxRecordBytes) + " bytes");
    }
    TAMIS_ASSIGN_OR_RETURN(const bool more, NextLine());
    if (!more) return DoesNotEnd();
  }
}

Result<std::optional<std::string>> JsonArray::Next() {
  TAMIS_ASSIGN_OR_RETURN(const bool more, SkipBlanks());
  if (!more) return DoesNotEnd();
  if (line_[at_] == ']') {
    ++at_;
    TAMIS_ASSIGN_OR_RETURN(const bool other, SkipBlanks());
    if (other) {
      return InvalidArgument("there is text behind the array that begins in line " +
                             std::to_string(begin_line_));
    }
    return std::optional<std::string>();
  }
  // Element() ends at a comma or bracket.
  if (!std::exchange(first_, false)) {
    ++at_;
    TAMIS_ASSIGN_OR_RETURN(const bool element, SkipBlanks());
    if (!element) return DoesNotEnd();
  }
  TAMIS_ASSIGN_OR_RETURN(std::string element, Element());
  return std::optional<std::string>(std::move(element));
}

}  // namespace tamis
