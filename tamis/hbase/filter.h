// HBase's own filters, which a server applies before it sends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tamis::hbase {

enum class Compare { kLess, kLessOrEqual, kEqual, kNotEqual, kGreaterOrEqual, kGreater };

// The name of a Java class and its bytes.
struct Filter {
  std::string name;
  std::string bytes;

  // Rows whose newest value of a column compares so, byte by byte.
  struct Column {
    std::string family;
    std::string qualifier;
    bool rows_without_it = false;  // whether they pass
  };
  static Filter Value(const Column& column, Compare compare, std::string_view value);
  static Filter RowKey(Compare compare, std::string_view key);
  static Filter RowPrefix(std::string_view prefix);
  // Rows in one of several ranges; the begin belongs to it, the end does not.
  struct Range {
    std::string begin;
    std::string end;  // empty: no end
  };
  static Filter RowRanges(const std::vector<Range>& ranges);
  // Columns from `begin` to before `end` (empty: no end).
  static Filter Qualifiers(std::string_view begin, std::string_view end);
  // No values; with `lengths` their lengths instead.
  static Filter KeysOnly(bool lengths = false);
  static Filter FirstKeyOnly();
  // Ends a region's scan after so many rows: a bound for each region, not for the scan.
  static Filter Page(int64_t rows);
  static Filter All(const std::vector<Filter>& filters);
  static Filter Any(const std::vector<Filter>& filters);
};

}  // namespace tamis::hbase
