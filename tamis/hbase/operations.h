// The operations on a table: Get, Mutation, Condition, Scan.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/cell_block.h"
#include "tamis/hbase/filter.h"

namespace tamis::hbase {

// A column, or a whole family if there is no qualifier.
struct Column {
  std::string family;
  std::optional<std::string> qualifier;
};

// Timestamps in [from, to).
struct TimeRange {
  int64_t from = 0;
  int64_t to = std::numeric_limits<int64_t>::max();
};

// Name and value pairs that coprocessors can read.
using Attributes = std::vector<std::pair<std::string, std::string>>;

struct Get {
  std::string row;
  std::vector<Column> columns;  // empty: all columns
  uint32_t max_versions = 1;
  std::optional<TimeRange> time_range;
  std::optional<Filter> filter;
  bool cache_blocks = true;
  Attributes attributes;
};

enum class Durability { kTableDefault, kSkipLog, kAsyncLog, kSyncLog, kFsyncLog };

// A change of one row.
class Mutation {
 public:
  enum class Kind { kAppend, kIncrement, kPut, kDelete };

  static Mutation Put(std::string row) { return {Kind::kPut, std::move(row)}; }
  // Deletes the whole row unless a Delete... method narrows it.
  static Mutation Delete(std::string row) { return {Kind::kDelete, std::move(row)}; }
  static Mutation Append(std::string row) { return {Kind::kAppend, std::move(row)}; }
  static Mutation Increment(std::string row) { return {Kind::kIncrement, std::move(row)}; }

  // For Put and Append.
  Mutation& Set(std::string_view family, std::string_view qualifier, std::string_view value,
                int64_t timestamp = kLatest);
  // For Increment. The column holds an eight-byte big-endian number.
  Mutation& Add(std::string_view family, std::string_view qualifier, int64_t amount);
  // For Delete. DeleteColumn deletes all versions up to the timestamp, DeleteVersion that one
  // version, DeleteFamily all versions of the family's columns up to the timestamp.
  Mutation& DeleteColumn(std::string_view family, std::string_view qualifier,
                         int64_t timestamp = kLatest);
  Mutation& DeleteVersion(std::string_view family, std::string_view qualifier,
                          int64_t timestamp = kLatest);
  Mutation& DeleteFamily(std::string_view family, int64_t timestamp = kLatest);

  Mutation& SetDurability(Durability durability);
  Mutation& SetAttribute(std::string name, std::string value);

  Kind kind() const { return kind_; }
  const std::string& row() const { return row_; }
  // The mutation's cells as a cell block.
  const std::string& cells() const { return cells_; }
  size_t cell_count() const { return cell_count_; }
  Durability durability() const { return durability_; }
  const Attributes& attributes() const { return attributes_; }
  // kInvalidArgument if a server would refuse the mutation.
  Status Check() const;

 private:
  Mutation(Kind kind, std::string row) : kind_(kind), row_(std::move(row)) {}
  Mutation& AppendOne(const Cell& cell);

  Kind kind_;
  std::string row_;
  std::string cells_;
  size_t cell_count_ = 0;
  Status fault_;
  Durability durability_ = Durability::kTableDefault;
  Attributes attributes_;
};

// A condition on a row: the comparison of a column's newest value with `value` holds, byte by byte,
// or the row passes a filter.
struct Condition {
  std::string family;
  std::string qualifier;
  Compare compare = Compare::kEqual;
  std::string value;  // empty with kEqual: the column is absent or its value is empty
  std::optional<Filter> filter;

  static Condition Value(std::string family, std::string qualifier, Compare compare,
                         std::string value) {
    return {std::move(family), std::move(qualifier), compare, std::move(value), {}};
  }
  static Condition Absent(std::string family, std::string qualifier) {
    return {std::move(family), std::move(qualifier), Compare::kEqual, {}, {}};
  }
};

struct Scan {
  // A forward scan reads from start_row up to stop_row, a reversed one from start_row down to
  // stop_row. An empty key is no bound.
  std::string start_row;
  std::string stop_row;
  bool include_start = true;
  bool include_stop = false;
  bool reversed = false;
  std::vector<Column> columns;  // empty: all columns
  uint32_t max_versions = 1;
  std::optional<TimeRange> time_range;
  std::optional<Filter> filter;
  uint64_t limit = 0;  // rows; 0: no limit
  // The limits of one answer.
  uint32_t rows_per_call = 1000;
  uint64_t bytes_per_call = 2 << 20;
  // A larger row ends the scan with an error.
  uint64_t max_row_bytes = 256 << 20;
  bool cache_blocks = true;
  Attributes attributes;
};

}  // namespace tamis::hbase
