// JsonPath: the place of one value in a JSON text, and how it is read. The jar has the same class;
// tests/golden/expressions.txt holds both to the same results (docs/FORMATS.md#expressions).
//
// The text must be one value as RFC 8259 has it, in UTF-8, whole and with nothing behind it, nested
// at most kMaxDepth deep; else nothing is found in it. The first one of equal keys counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tamis/base/status.h"

namespace tamis {

struct JsonPath {
  static constexpr size_t kMaxSteps = 16;
  static constexpr size_t kMaxKeySize = 1024;
  static constexpr int kMaxDepth = 100;

  // The member of an object by its key, or the element of an array by its number, from 0.
  using Step = std::variant<std::string, uint32_t>;
  std::vector<Step> steps;

  // Reads "$.a.b", "$.\"a b\"[3]"; in quotes \xNN is a byte.
  static Result<JsonPath> Parse(std::string_view text);
  std::string ToString() const;  // in the form that Parse reads

  Status Validate() const;

  // The value as text: that of a string without quotes and escapes, that of any other value as it
  // stands there. nullopt: the text is no JSON, has no such value, or the value is null.
  std::optional<std::string> Find(std::string_view json) const;

  friend bool operator==(const JsonPath&, const JsonPath&) = default;
};

}  // namespace tamis
