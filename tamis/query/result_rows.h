// ResultRows: the rows or groups of one page of a region, decoded.
//
// Threads: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tamis/cluster/cluster.pb.h"
#include "tamis/query/row_group.h"
#include "tamis/table/schema.h"

namespace tamis {

struct ResultRows {
  std::vector<RowGroup> rows = {};
  std::vector<std::string> keys = {};  // keys of `rows`, where they were asked for
  uint64_t rows_found = 0;             // rows of groups counted
  uint64_t groups = 0;
  uint64_t groups_with_totals = 0;
  uint64_t rows_unparsed = 0;  // left out: their keys are none of the table's

  // nullopt: the result does not fit the table. `totals`: positions of the columns of which the
  // request asked for totals.
  static std::optional<ResultRows> Read(const TableSchema& schema,
                                        const std::vector<uint32_t>& totals,
                                        const pb::RangeResult& result, bool with_keys);
};

}  // namespace tamis
