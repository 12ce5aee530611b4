// Records: fields with names and text, as they stand in a CSV, JSON Lines or deb822 file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"

namespace tamis {

struct Field {
  std::string name;                 // lower_snake
  std::optional<std::string> text;  // nullopt = no value
};

struct Record {
  uint64_t line = 0;  // where it begins, from 1
  std::vector<Field> fields;
};

// kInvalidArgument for a name with a byte 0, which shows that the input is no text.
Status CheckFieldName(std::string_view name);

// The names of one record's fields, as they stand in the input and as columns.
class FieldNames {
 public:
  // The column of a field; kInvalidArgument when a field before it has the same one, or its name
  // has a byte 0.
  Result<std::string> Add(std::string_view name);

 private:
  std::map<std::string, std::string, std::less<>> names_;  // by column
};

// "Installed-Size", "installedSize" and "Installed size" are installed_size; "2nd" is _2nd.
std::string LowerSnake(std::string_view name);

}  // namespace tamis
