// ColumnTotals: what is known of the values of one column over many rows: how many there are, their
// sum, the least and the greatest. NULL counts in none of them.
//
// Sums of int64, bool (true is 1) and decimal columns are exact, whatever the order: they are kept
// in base 10^9, one number of 128 bits for each power, and fit that of 2^64 rows. An int64 sum is
// an error exactly if the final sum does not fit in 64 bits. A sum of doubles is rounded at each
// step, so it depends on the order and on how rows were grouped. Other types have no sum.
//
// The jar has the same class; tests/golden/searches.txt holds both to the same totals.
//
// Threads: a value.
#pragma once

#include <cstdint>
#include <map>

#include "tamis/base/status.h"
#include "tamis/table/value.h"

namespace tamis {

class ColumnTotals {
 public:
  // The sum is the total of each number x 10^(9 x its position).
  using Number = __int128;
  using Parts = std::map<int32_t, Number>;
  struct State {
    uint64_t values = 0;
    Parts parts = {};
    double real = 0;
    Value least = {};  // NULL: there is none
    Value greatest = {};
  };

  explicit ColumnTotals(Type type) : type_(type) {}
  ColumnTotals(Type type, State state) : type_(type), state_(std::move(state)) {}

  // The value of `count` rows. REQUIRES: NULL, or of the column's type.
  void Add(const Value& value, uint64_t count);
  // REQUIRES: the same type.
  void Merge(const ColumnTotals& other);

  const State& state() const { return state_; }
  // Rough.
  size_t SizeBytes() const;

  // NULL where there is no value, where the type has no sum, and where doubles have none (inf -
  // inf). kInvalidArgument: the sum does not fit in an int64, or has more than a million digits.
  Result<Value> Sum() const;

 private:
  void AddDecimal(const std::string& canonical, uint64_t count);
  void Widen(const Value& value);

  Type type_;
  State state_;
};

}  // namespace tamis
