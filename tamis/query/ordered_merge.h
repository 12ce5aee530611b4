// OrderedMerge: gives out the rows of a search in the order of an index, or in reverse key order,
// and says which sub-ranges have to be asked for the next ones.
//
// Each sub-range has a position in the order before which it has no row: that of its next row, once
// it has rows; of its last one, when more may follow; and before it was asked a bound: the smallest
// (or, descending, the largest) value that its region holds, as the copies of the regions' state
// told at the start of the search. A sub-range of which nothing is known comes before all others. A
// row is given out when no sub-range can have one before it. A row that came to stand before rows
// that were given out, since it was written during the search, is left out.
//
// In the reverse order of the row key a position is a key, and a sub-range begins at its end.
//
// Positions are encoded values of the columns that decide the order, so that rows that are equal
// there need not wait for one another. Values that are cut in the index are equal as far as entries
// go: such rows are collected and put into the order of their whole values, as many as memory is
// given for; of a search with a limit, the first ones alone are kept.
//
// Threads: exclusive access.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tamis/cluster/cluster.pb.h"
#include "tamis/query/index_order.h"
#include "tamis/query/sub_range.h"
#include "tamis/routing/global_index.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis {

class OrderedMerge {
 public:
  struct Options {
    std::vector<OrderTerm> terms;
    IndexOrder order;        // gives them
    pb::IndexStream stream;  // the stream of the order's index, if there is one, to be searched
    bool each_once = false;  // no row is given out twice; takes memory for each one
    size_t most_tied_bytes = size_t{64} << 20;  // bytes of rows that are collected at a time
    bool stop_early = false;  // a fault, for tests: rows do not wait for sub-ranges without any
  };

  OrderedMerge(SchemaPtr schema, Options options);

  // The bounds by the order's index, as of the start of the search.
  void SetBounds(std::vector<GlobalIndex::Bound> bounds);
  // The keys of regions that are known to have no entry.
  const KeyRanges& without_entries() const { return without_entries_; }

  // Takes in a sub-range that came, or whose rows or position changed.
  void Place(SubRangeAt sub_range);
  void Remove(SubRangeAt sub_range);

  // Takes in the rows of a reply, with their keys.
  void AddRows(SubRangeAt sub_range, std::vector<RowGroup> rows,
               const std::vector<std::string>& keys, bool in_order);
  // The next row. nullopt: sub-ranges have to be asked first, or there is none. Calls emptied(at)
  // for each sub-range whose last row was taken.
  template <class Fn>
  std::optional<Row> Next(Fn&& emptied);

  // Why there is no next row. kResourceExhausted: too many rows are equal as far as entries go.
  const Status& status() const { return status_; }

  // No more rows than these are taken; 0: all may be.
  void SetLimit(uint64_t rows) { limit_ = rows; }

  // The row that was given out with this key counts as not given out.
  void Forget(const std::string& key) { given_.erase(key); }

  // The sub-ranges without rows that have to be asked for the next rows, as many as these: all that
  // nothing is known of, and the first ones by their positions.
  std::vector<SubRangeAt> Needed(uint64_t rows) const;

 private:
  struct Item {
    std::string position;
    bool has_rows = false;
    SubRangeAt at;
  };
  struct Before {
    bool descending = false;
    bool operator()(const Item& a, const Item& b) const;
  };
  using Items = std::set<Item, Before>;

  bool IsBefore(const std::string& a, const std::string& b) const;
  std::string PositionOf(const Row& row, const std::string& key) const;
  std::string BoundOf(const KeyRange& keys) const;
  std::optional<std::string> TieOf(const Row& row) const;
  bool IsTieComplete() const;
  void AddTied(Row row);
  size_t BytesOf(const Row& row) const;
  Row TakeTied();
  std::optional<SubRangeAt> Ready() const;
  std::pair<Row, bool> Take(SubRangeAt sub_range);  // false: it is not to be given out
  bool IsTooLate(const std::string& position) const;

  const SchemaPtr schema_;
  const Options options_;
  std::vector<GlobalIndex::Bound> bounds_;
  KeyRanges without_entries_;
  Items items_;
  std::unordered_map<const SubRange*, Items::iterator> places_;
  std::unordered_set<std::string> given_;  // keys
  std::string last_;                     // position of the last row that was taken to be given out
  std::optional<std::string> last_tie_;  // that was given out
  std::optional<std::string> tie_;       // positions of the rows that are collected begin so
  std::vector<Row> tied_;                // once they are complete: the next one last
  size_t tied_bytes_ = 0;                // while they are collected
  uint64_t limit_ = 0;
  Status status_;
};

template <class Fn>
std::optional<Row> OrderedMerge::Next(Fn&& emptied) {
  while (status_.ok()) {
    if (tie_.has_value() ? IsTieComplete() : !tied_.empty()) return TakeTied();
    const auto ready = Ready();
    if (!ready.has_value()) return std::nullopt;
    auto [row, is_new] = Take(*ready);
    if ((*ready)->rows.empty()) emptied(*ready);
    if (!is_new) continue;
    if (!tie_.has_value()) tie_ = TieOf(row);
    if (!tie_.has_value()) return std::move(row);
    AddTied(std::move(row));
  }
  return std::nullopt;
}

}  // namespace tamis
