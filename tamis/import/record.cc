#include "tamis/import/record.h"

#include <cctype>

namespace tamis {

Status CheckFieldName(std::string_view name) {
  if (name.find('\0') == std::string_view::npos) return Status::Ok();
  return InvalidArgument(
      "the name of a field has a byte 0: the input is no text, or UTF-16 or UTF-32 without a byte "
      "order mark, which `iconv -f UTF-16LE -t UTF-8` makes UTF-8");
}

Result<std::string> FieldNames::Add(std::string_view name) {
  if (Status status = CheckFieldName(name); !status.ok()) return status;
  std::string column = LowerSnake(name);
  if (column.empty()) return column;  // no column has this name
  const auto [before, is_new] = names_.emplace(column, name);
  if (is_new) return column;
  if (before->second == name) {
    return InvalidArgument("field \"" + std::string(name) + "\" is given twice");
  }
  return InvalidArgument("the fields \"" + before->second + "\" and \"" + std::string(name) +
                         "\" would both be column \"" + column + "\"");
}

std::string LowerSnake(std::string_view name) {
  std::string out;
  bool after_lower = false;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (!std::isalnum(byte)) {
      if (!out.empty() && out.back() != '_') out += '_';
      after_lower = false;
      continue;
    }
    if (std::isupper(byte) && after_lower) out += '_';
    after_lower = std::islower(byte);
    out += static_cast<char>(std::tolower(byte));
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  if (!out.empty() && std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(0, 1, '_');
  return out;
}

}  // namespace tamis
