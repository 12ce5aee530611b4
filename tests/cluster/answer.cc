#include "tests/cluster/answer.h"

#include <algorithm>
#include <set>

#include "tamis/query/index_order.h"

namespace tamis {

namespace {

// A client may not know the columns that were added last.
bool StartsWith(const Row& state, const Row& row) {
  return row.size() <= state.size() && std::equal(row.begin(), row.end(), state.begin());
}

}  // namespace

std::string RowStateText(const RowState& state) {
  if (!state.has_value()) return "no row";
  std::string text;
  for (const Value& value : *state) text += value.ToString().substr(0, 20) + " ";
  return text;
}

std::optional<Answer::Fault> Answer::FindFault(const TableSchema& schema,
                                               const RowStates& states) const {
  const auto changed = [&](int64_t key) {
    const auto found = states.find(key);
    return found != states.end() && found->second.size() > 1;
  };
  const bool at_once = one_instant && order.empty();
  if (limit > 0 && rows.size() > limit) return Fault{"more rows than the limit", {}};
  std::set<int64_t> found;
  std::optional<int64_t> last;
  const Row* last_row = nullptr;
  for (const Row& row : rows) {
    const int64_t key = row[0].int64();
    const std::string name = "row " + std::to_string(key);
    if (key_order && last.has_value() && key < *last) {
      return Fault{"rows are not in key order", {}};
    }
    if (last.has_value() && ComesBefore(order, row, *last_row)) {
      return Fault{name + " comes too late in the order", {}};
    }
    last = key;
    last_row = &row;
    if (!found.insert(key).second && (at_once || !changed(key))) {
      return Fault{name + " was returned twice for " + predicate.ToString(schema), {}};
    }
    if (!predicate.Matches(row)) {
      return Fault{name + " does not match " + predicate.ToString(schema), {}};
    }
    const auto known = states.find(key);
    if (known == states.end() || std::ranges::none_of(known->second, [&](const RowState& state) {
          return state.has_value() && StartsWith(*state, row);
        })) {
      std::string text = name + " was returned in a state that it never had: " + RowStateText(row);
      if (known != states.end()) {
        for (const RowState& state : known->second) text += "\n  state: " + RowStateText(state);
      }
      return Fault{std::move(text), {}};
    }
  }
  // Rows beyond the limit may be any, but for those that come before the last one.
  const bool cut = limit > 0 && rows.size() == limit;
  if (cut && !key_order && order.empty()) return {};
  for (const auto& [key, possible] : states) {
    if (cut && key_order && key > *last) break;
    if (found.contains(key) || (!at_once && possible.size() > 1)) continue;
    const bool stood = !possible.empty() && possible[0].has_value();
    if (cut && !key_order && stood && !ComesBefore(order, *possible[0], *last_row)) continue;
    const bool all_match = std::ranges::all_of(possible, [&](const RowState& state) {
      return state.has_value() && predicate.Matches(*state);
    });
    if (!all_match) continue;
    std::string text =
        "row " + std::to_string(key) + " was missed by " + predicate.ToString(schema);
    for (const RowState& state : possible) text += "\n  state: " + RowStateText(state);
    return Fault{std::move(text), key};
  }
  return {};
}

}  // namespace tamis
