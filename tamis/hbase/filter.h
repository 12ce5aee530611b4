// HBase's own filters, which a server applies before it sends rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tamis::hbase {

enum class Compare { kLess, kLessOrEqual, kEqual, kNotEqual, kGreaterOrEqual, kGreater };

// The name of a Java class and its serialized message.
struct Filter {
  std::string name;
  std::string bytes;

  // Value() passes rows whose newest value of the column satisfies the comparison with `value`,
  // byte by byte.
  struct Column {
    std::string family;
    std::string qualifier;
    bool rows_without_it = false;  // whether they pass
  };
  static Filter Value(const Column& column, Compare compare, std::string_view value);
  static Filter RowKey(Compare compare, std::string_view key);
  static Filter RowPrefix(std::string_view prefix);
  // Passes rows in one of several ranges [begin, end).
  struct Range {
    std::string begin;
    std::string end;  // empty: no end
  };
  static Filter RowRanges(const std::vector<Range>& ranges);
  // Passes columns in [begin, end); an empty `end` is no bound.
  static Filter Qualifiers(std::string_view begin, std::string_view end);
  // Strips the values; with `lengths`, replaces each value by its length.
  static Filter KeysOnly(bool lengths = false);
  static Filter FirstKeyOnly();
  // Ends a region's scan after this many rows. The bound applies to each region, not to the scan.
  static Filter Page(int64_t rows);
  static Filter All(const std::vector<Filter>& filters);
  static Filter Any(const std::vector<Filter>& filters);
};

}  // namespace tamis::hbase
