#include "tamis/table/expression.h"

#include <algorithm>

#include "tamis/base/utf8.h"
#include "tamis/table/timestamp.h"

namespace tamis {
namespace {

using Function = Expression::Function;

Value FirstCharacters(std::string_view text, uint32_t count) {
  size_t size = 0;
  for (uint32_t i = 0; i < count && size < text.size(); ++i) {
    const size_t character = Utf8Size(text.substr(size));
    if (character == 0) return Value();
    size += character;
  }
  return Value::Text(std::string(text.substr(0, size)));
}

}  // namespace

std::string AsciiLower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

Type Expression::ArgumentType() const {
  return function == Function::kDate || function == Function::kHour ? Type::kTimestamp
                                                                    : Type::kText;
}

Type Expression::ResultType() const {
  return function == Function::kHour ? Type::kInt64 : Type::kText;
}

Status Expression::Validate() const {
  if (function < Function::kLower || function > Function::kJsonText) {
    return InvalidArgument("function number " + std::to_string(static_cast<int>(function)) +
                           " is not known");
  }
  if (function == Function::kSubstr) {
    if (length < 1 || length > kMaxLength) {
      return InvalidArgument("substr takes 1 to " + std::to_string(kMaxLength) + " characters");
    }
  } else if (length != 0) {
    return InvalidArgument("only substr has a number of characters");
  }
  if (function == Function::kJsonText) return path.Validate();
  if (!path.steps.empty()) return InvalidArgument("only json_text has a JSON path");
  return Status::Ok();
}

Value Expression::Evaluate(const Value& argument) const {
  if (argument.is_null()) return Value();
  switch (function) {
    case Function::kLower:
      return Value::Text(AsciiLower(argument.str()));
    case Function::kSubstr:
      return FirstCharacters(argument.str(), length);
    case Function::kDate:
      return Value::Text(FormatDate(argument.int64()));
    case Function::kHour:
      return Value::Int64(HourOfDay(argument.int64()));
    case Function::kJsonText: {
      auto text = path.Find(argument.str());
      return text.has_value() ? Value::Text(*std::move(text)) : Value();
    }
  }
  return Value();
}

std::string Expression::ToString(std::string_view source_name) const {
  const std::string source_text(source_name);
  switch (function) {
    case Function::kLower:
      return "lower(" + source_text + ")";
    case Function::kSubstr:
      return "substr(" + source_text + ", 1, " + std::to_string(length) + ")";
    case Function::kDate:
      return "date(" + source_text + ")";
    case Function::kHour:
      return "hour(" + source_text + ")";
    case Function::kJsonText:
      return "json_text(" + source_text + ", '" + path.ToString() + "')";
  }
  return "";
}

}  // namespace tamis
