// GroupTotals: groups of rows that have the same values in some columns, with their counts and the
// totals of other columns.
//
// Threads: exclusive access. The schema outlives it.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tamis/table/column_totals.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis {

class GroupTotals {
 public:
  struct Group {
    Row row;  // the first row, with NULL in columns that the groups do not have in common
    uint64_t count = 0;
    std::vector<ColumnTotals> totals;  // one for each of `columns`
  };

  // Positions of columns: `by` those that the rows of a group have in common, `columns` those of
  // which totals are wanted.
  GroupTotals(const TableSchema& schema, std::vector<uint32_t> by, std::vector<uint32_t> columns)
      : schema_(schema), by_(std::move(by)), columns_(std::move(columns)) {}

  // Adds `count` rows with these values.
  void Add(const Row& row, uint64_t count);
  // A group whose totals are known. REQUIRES: as many totals as columns.
  void Add(const Row& row, uint64_t count, const std::vector<ColumnTotals>& totals);

  size_t size() const { return groups_.size(); }
  size_t SizeBytes() const { return bytes_; }  // rough
  // In the order in which their first rows came. None is left.
  std::deque<Group> Take();

 private:
  static constexpr size_t kOverhead = 128;  // bytes for each group

  Group* Find(const Row& row);

  const TableSchema& schema_;
  const std::vector<uint32_t> by_;
  const std::vector<uint32_t> columns_;
  std::deque<Group> groups_;                          // they are pointed to
  std::unordered_map<std::string, Group*> by_value_;  // by the encoded values of `by`
  size_t bytes_ = 0;
};

}  // namespace tamis
