// Predicate: a condition on a row, with SQL's three-valued logic (a comparison with NULL is
// unknown, and a row is kept only when the whole is true).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/table/row.h"

namespace tamis {

struct TableSchema;

struct Predicate {
  // The numbers are sent over the wire.
  enum class Kind : uint8_t {
    kTrue = 1,
    kFalse = 2,
    kAnd = 3,       // all children hold; true when there are none
    kOr = 4,        // one child holds; false when there are none
    kNot = 5,       // children[0] is false
    kCompare = 6,   // column op values[0]
    kIn = 7,        // column IN values, which are sorted, each once
    kPrefix = 8,    // column begins with values[0] (text, bytes)
    kIsNull = 9,    // column IS NULL
    kNotNull = 10,  // column IS NOT NULL
  };
  enum class Op : uint8_t { kEq = 1, kNe = 2, kLt = 3, kLe = 4, kGt = 5, kGe = 6 };

  Kind kind = Kind::kTrue;
  Op op = Op::kEq;
  uint32_t column = 0;  // position in TableSchema::columns
  std::vector<Value> values = {};
  std::vector<Predicate> children = {};

  static Predicate True() { return {}; }
  static Predicate False() { return {.kind = Kind::kFalse}; }
  static Predicate And(std::vector<Predicate> children);
  static Predicate Or(std::vector<Predicate> children);
  static Predicate Not(Predicate child);
  static Predicate Compare(uint32_t column, Op op, Value value);
  static Predicate Between(uint32_t column, Value low, Value high);  // AND of >= and <=
  static Predicate In(uint32_t column, std::vector<Value> values);   // in any order
  static Predicate Prefix(uint32_t column, std::string prefix);
  static Predicate IsNull(uint32_t column);
  static Predicate NotNull(uint32_t column);

  // nullopt is "unknown".
  std::optional<bool> Evaluate(const Row& row) const;
  bool Matches(const Row& row) const { return Evaluate(row).value_or(false); }

  // Sets the bits of the columns that its truth depends on. REQUIRES: Validate is ok, for a schema
  // of as many columns.
  void AddColumns(std::vector<bool>* columns) const;

  // Columns exist, values have the column's type, shapes are right, depth at most 100.
  Status Validate(const TableSchema& schema) const;

  // No kNot, no nested kAnd in kAnd; constants folded; same truth on every row (unknown counts as
  // false at the top).
  Predicate Normalized() const;

  // "section = 'games' AND installed_size > 1000"
  std::string ToString(const TableSchema& schema) const;

  friend bool operator==(const Predicate&, const Predicate&) = default;
};

// Compares a column with a value of another type: `n > 2.5` on an int64 column is `n > 2`, `n
// = 2.5` is never true. `value` is int64, double, decimal or text as a user wrote it ('5' is a
// number on a number's column, a time on a timestamp's); the result compares with the column's own
// type, has the truth of the exact numbers, and is unknown for NULL; only text with a fraction on a
// double's column means the nearest double. nullopt where the types cannot be compared.
std::optional<Predicate> CompareConverted(const TableSchema& schema, uint32_t column,
                                          Predicate::Op op, const Value& value);

std::string SerializePredicate(const Predicate& predicate);
Result<Predicate> ParsePredicate(std::string_view bytes);  // bounded depth and memory on any bytes

}  // namespace tamis
