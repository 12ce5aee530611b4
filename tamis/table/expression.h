// Expression: a function of one column, which gives a computed column its values (schema.h). The
// jar has the same class; tests/golden/expressions.txt holds both to the same results
// (docs/FORMATS.md#expressions).
//
//   lower(c)               text: c with a-z for A-Z; all other bytes stay
//   substr(c, 1, n)        text: the first n characters; NULL if they are not UTF-8
//   date(c)                text: the day of a timestamp in UTC, 2026-01-02
//   hour(c)                int64: the hour of its day in UTC, 0 to 23
//   json_text(c, '$.a')    text: a value in a JSON text (json_path.h), or NULL
//
// The functions are defined on bytes and have a result for any of them, NULL where there is nothing
// better. They are these functions wherever a value is computed, never those of a SQLite, a locale
// or a library: an entry of an index, a filter and a condition must agree for ever.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/table/json_path.h"
#include "tamis/table/value.h"

namespace tamis {

struct Expression {
  // The numbers are stored; they never change.
  enum class Function : uint8_t { kLower = 1, kSubstr = 2, kDate = 3, kHour = 4, kJsonText = 5 };

  static constexpr uint32_t kMaxLength = 1024;

  Function function = Function::kLower;
  uint32_t source = 0;  // position in TableSchema::columns of the column that it is computed from
  uint32_t length = 0;  // kSubstr: the number of characters
  JsonPath path = {};   // kJsonText: the path

  Type ArgumentType() const;
  Type ResultType() const;

  // Everything but `source`.
  Status Validate() const;

  // The value for one of the source column. REQUIRES: of ArgumentType(), or NULL, which gives NULL.
  Value Evaluate(const Value& argument) const;

  // "lower(maintainer)".
  std::string ToString(std::string_view source_name) const;

  friend bool operator==(const Expression&, const Expression&) = default;
};

// "a" to "z" for "A" to "Z".
std::string AsciiLower(std::string_view text);

}  // namespace tamis
