// FirstRows: the first rows in the order of an index, of which only those that are given out are
// read.
//
// Each region that may hold one of the first rows gives some, most of which come too late. So a
// search for few rows lets the regions give what the entries of the index tell, without rows; the
// first of these are read by their keys, in one more round of requests.
//
// A row may change between the two rounds. One that is gone, matches no more or has another place
// in the order is left out, and the next entry takes its place.
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tamis/query/index_order.h"
#include "tamis/query/search_options.h"
#include "tamis/routing/key_ranges.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis {

class FirstRows {
 public:
  // A row costs a range of a request, and is otherwise read along with its neighbours.
  static constexpr uint64_t kMost = 100;
  static constexpr const char* kReason = "; rows are read once the first entries are known";

  // Whether the search wants few rows, the entries tell all that it takes to find them, and the
  // rows have more.
  static bool Applies(const TableSchema& schema, const IndexOrder& order,
                      const SearchOptions& options);

  FirstRows(SchemaPtr schema, const IndexSpec& index, std::vector<OrderTerm> order)
      : schema_(std::move(schema)), index_(index), order_(std::move(order)) {}

  // Whether an entry of the index has the column.
  bool IsInEntry(uint32_t column) const { return IsInEntry(*schema_, index_, column); }

  // How many entries to read rows for next, for a caller that wants the first `wanted` rows at
  // once.
  uint64_t Missing(uint64_t wanted) const;
  // The keys of the rows of these entries.
  KeyRanges KeysOf(const std::vector<Row>& entries) const;
  // Takes in the rows that were found at the keys of the entries, the rows in any order. Calls
  // left_out(key) for each entry whose row is not as the entry says. REQUIRES: empty().
  void Add(const std::vector<Row>& entries, std::vector<Row> rows,
           const std::function<void(const std::string&)>& left_out);

  bool empty() const { return rows_.empty(); }
  Row Take();
  uint64_t given() const { return given_; }

 private:
  static bool IsInEntry(const TableSchema& schema, const IndexSpec& index, uint32_t column);

  const SchemaPtr schema_;
  const IndexSpec& index_;  // an index of the schema
  const std::vector<OrderTerm> order_;
  std::vector<Row> rows_;  // the next one last
  uint64_t given_ = 0;
};

}  // namespace tamis
