// GatheredGroups: all groups of one scan, added up by combination and put into an order, so that
// SQLite need not sort the rows that it is given for GROUP BY.
//
// Threads: exclusive access.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tamis/query/row_group.h"
#include "tamis/query/search_options.h"

namespace tamis {

class GatheredGroups {
 public:
  static constexpr size_t kMostCombinations = 1 << 16;

  explicit GatheredGroups(size_t most_combinations = kMostCombinations)
      : most_combinations_(most_combinations) {}

  // Adds the rows of a group to those of its combination, which is given encoded. False: there are
  // more combinations than are gathered, or their bytes are more (16 MiB); the group is not added.
  bool Add(std::string combination, RowGroup group);
  // Puts them into the order, so that Take gives the first one first.
  void Sort(std::span<const OrderTerm> order);
  // REQUIRES: Sort was called. nullopt: all are taken.
  std::optional<RowGroup> Take();

 private:
  static constexpr size_t kMostBytes = size_t{16} << 20;

  size_t most_combinations_;
  std::vector<RowGroup> groups_;  // sorted: the next one last
  std::unordered_map<std::string, size_t> places_;
  size_t bytes_ = 0;
};

}  // namespace tamis
