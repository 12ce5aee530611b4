// IndexOrder: the index whose entries, or the row key whose rows, stand in the order that a search
// asks for.
//
// The entries of an index on (a, b) are in the order of a, b, row key. So they give the order of a;
// of a and b; of b, where a is held to one value by an equality; and of the key columns behind
// them, all in one direction. Columns that are held to one value may be anywhere in it. NULL comes
// before all other values, as in SQLite.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "tamis/query/search_options.h"
#include "tamis/table/ordered_bounds.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis {

struct IndexOrder {
  const IndexSpec* index =
      nullptr;  // an index of the schema; nullptr: rows are in the order of their key
  bool descending = false;
  size_t columns = 0;   // leading ones of the index that decide the order, held ones included
  bool by_key = false;  // the order goes on with columns of the row key
  // Positions in the order are values of the index's first column alone.
  bool ends_with_first() const { return columns == 1 && !by_key; }
  // The index is sparse: rows with NULL in its first column, which follow all others, are not in
  // it.
  bool nulls_follow = false;
  // Every row of the answer has its value of the index's first column, as encoded there, in it.
  OrderedBounds first_values = {};
};

// The facts about a column that hold in every row of an answer, by the condition of the search.
struct ColumnFacts {
  std::function<bool(uint32_t)> is_held;      // it has one value there, which is not NULL
  std::function<bool(uint32_t)> is_null;      // it is NULL
  std::function<bool(uint32_t)> is_not_null;  // it is never NULL; held columns need not be
  // All of them satisfy the condition of a partial index; by default that is not known.
  std::function<bool(const IndexSpec&)> has_rows = [](const IndexSpec& index) {
    return !index.IsPartial();
  };
};

// nullopt: no index gives the order.
std::optional<IndexOrder> FindIndexOrder(const TableSchema& schema,
                                         std::span<const OrderTerm> order,
                                         const ColumnFacts& facts);

// The reverse order of the row key, by its leading columns, those that are held left out. Rows in
// ascending key order need no order: SearchOptions::key_order.
std::optional<IndexOrder> FindReverseKeyOrder(const TableSchema& schema,
                                              std::span<const OrderTerm> order,
                                              const ColumnFacts& facts);

// Whether row a comes before row b in the order, by the whole values.
bool ComesBefore(std::span<const OrderTerm> order, const Row& a, const Row& b);

}  // namespace tamis
