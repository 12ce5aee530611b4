// NumberForm: whether printed keys are numbers in a form that no program asks with: digits in
// groups (`1,234`, by a locale), a fraction of zeros (`5.0`, where a column of integers was read as
// floating point), an exponent (`1.2E+09`, by a spreadsheet), zeros in front that give all of them
// one width (`0017`, by `seq -w` or a report).
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <string_view>

namespace tamis {

class NumberForm {
 public:
  void Add(std::string_view key);
  // The fault of all of them, such as "digits in groups"; "": there is none.
  std::string_view Fault() const;

 private:
  void AddWidth(std::string_view key);

  uint64_t keys_ = 0;
  uint64_t short_ = 0;    // numbers of at most three digits
  uint64_t groups_ = 0;   // with groups of three digits, as a fraction may be, too
  uint64_t several_ = 0;  // these with several separators, or one that is no point; others than the
                          // blank and '_', which also join the parts of a key
  uint64_t addresses_ = 0;     // these that are IPv4, too
  uint64_t least_groups_ = 0;  // the least and the most groups of one number
  uint64_t most_groups_ = 0;
  uint64_t zeros_ = 0;  // with a fraction of zeros
  uint64_t exponents_ = 0;
  uint64_t signed_exponents_ = 0;  // these with a point or a sign; 2024E1 may be a code
  bool others_ = false;            // keys in none of these forms
  uint64_t widths_ = 0;            // keys whose width was looked at
  size_t width_ = 0;               // the width of all keys; 0: they differ, or not all are digits
  bool zero_in_front_ = false;     // at least one of these begins with 0
};

}  // namespace tamis
