// Answer: the rows that one search returned, and what is wrong with them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tamis/query/search_options.h"
#include "tamis/table/predicate.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis {

using RowState = std::optional<Row>;  // nullopt: no row
// By key: the states that each row may have had while a search ran.
using RowStates = std::map<int64_t, std::vector<RowState>>;

std::string RowStateText(const RowState& state);

struct Answer {
  struct Fault {
    std::string what;
    std::optional<int64_t> missed;  // the key of a row that should be there
  };

  Predicate predicate;
  uint64_t limit = 0;  // 0 = none
  bool key_order = false;
  // In such an order a row that changed meanwhile may be missed, or come twice.
  std::vector<OrderTerm> order;
  // False when the answer was put together from several moments: a row that changed meanwhile may
  // be there twice or, although all its states match, not at all.
  bool one_instant = true;
  std::vector<Row> rows;

  // Every row is one that stood there and matches, and every row is there that matches in all its
  // states. The first column is the key.
  std::optional<Fault> FindFault(const TableSchema& schema, const RowStates& states) const;
};

}  // namespace tamis
