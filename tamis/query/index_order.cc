#include "tamis/query/index_order.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

class OrderOfIndex {
 public:
  // Without an index: the order of the key.
  OrderOfIndex(const TableSchema& schema, const IndexSpec* index, const ColumnFacts& facts)
      : schema_(schema), index_(index), facts_(facts) {
    if (index != nullptr) columns_ = index->columns;
    of_index_ = columns_.size();
    for (size_t i = 0; i < schema.key.size() && KeyFormat(schema).IsOrdered(i); ++i) {
      columns_.push_back(schema.key[i]);
    }
  }

  std::optional<IndexOrder> Of(std::span<const OrderTerm> order) const {
    IndexOrder found{.index = index_};
    size_t next = 0;  // column of the index
    bool any = false;
    for (const OrderTerm& term : order) {
      if (IsHeld(term.column)) continue;
      while (next < columns_.size() && columns_[next] != term.column && IsHeld(columns_[next])) {
        ++next;
      }
      if (next == columns_.size() || columns_[next] != term.column) return std::nullopt;
      if (any && term.descending != found.descending) return std::nullopt;
      found.descending = term.descending;
      any = true;
      ++next;
    }
    if (!any) return std::nullopt;
    found.columns = std::min(next, of_index_);
    found.by_key = next > of_index_;
    return index_ == nullptr ? found : WithNulls(found, order);
  }

 private:
  bool IsHeld(uint32_t column) const { return facts_.is_held(column) || facts_.is_null(column); }

  // A sparse index has no entry for NULL in its first column.
  std::optional<IndexOrder> WithNulls(IndexOrder found, std::span<const OrderTerm> order) const {
    const uint32_t first = index_->columns[0];
    const bool never_null =
        !schema_.columns[first].nullable || facts_.is_not_null(first) || facts_.is_held(first);
    if (index_->nulls != IndexNulls::kSkip || never_null) return found;
    if (facts_.is_null(first) || !found.descending || order.size() != 1) return std::nullopt;
    found.nulls_follow = true;
    return found;
  }

  const TableSchema& schema_;
  const IndexSpec* index_;
  const ColumnFacts& facts_;
  std::vector<uint32_t> columns_;  // columns of the index, then of the key
  size_t of_index_ = 0;            // how many of these are of the index
};

}  // namespace

// Prefers an index that has all rows, then the one with the most columns that are held, then one
// that has no others.
std::optional<IndexOrder> FindIndexOrder(const TableSchema& schema,
                                         std::span<const OrderTerm> order,
                                         const ColumnFacts& facts) {
  std::optional<IndexOrder> best;
  const auto rank = [&](const IndexOrder& of) {
    const auto held = std::ranges::count_if(of.index->columns, facts.is_held);
    return std::tuple(of.nulls_follow, -held, !of.index->IsPartial());
  };
  for (const IndexSpec& index : schema.indexes) {
    if (!facts.has_rows(index)) continue;
    const auto found = OrderOfIndex(schema, &index, facts).Of(order);
    if (found.has_value() && (!best.has_value() || rank(*found) < rank(*best))) best = found;
  }
  return best;
}

std::optional<IndexOrder> FindReverseKeyOrder(const TableSchema& schema,
                                              std::span<const OrderTerm> order,
                                              const ColumnFacts& facts) {
  const auto found = OrderOfIndex(schema, nullptr, facts).Of(order);
  return found.has_value() && found->descending ? found : std::nullopt;
}

bool ComesBefore(std::span<const OrderTerm> order, const Row& a, const Row& b) {
  for (const OrderTerm& term : order) {
    std::string left, right;
    AppendOrdered(a[term.column], &left);
    AppendOrdered(b[term.column], &right);
    if (left != right) return term.descending ? left > right : left < right;
  }
  return false;
}

}  // namespace tamis
