#include "tamis/query/ordered_merge.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "tamis/base/coding.h"
#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

bool ComesFirst(bool descending, const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return a.empty() && !b.empty();
  return descending ? a > b : a < b;
}

}  // namespace

// Where rows and a bound are at one position, the rows need not wait.
bool OrderedMerge::Before::operator()(const Item& a, const Item& b) const {
  if (a.position != b.position) return ComesFirst(descending, a.position, b.position);
  if (a.has_rows != b.has_rows) return a.has_rows;
  if (a.at->range.start != b.at->range.start) return a.at->range.start < b.at->range.start;
  return std::less<>()(&*a.at, &*b.at);  // parts of one that is about to go
}

OrderedMerge::OrderedMerge(SchemaPtr schema, Options options)
    : schema_(std::move(schema)),
      options_(std::move(options)),
      items_(Before{options_.order.descending}) {}

bool OrderedMerge::IsBefore(const std::string& a, const std::string& b) const {
  return ComesFirst(options_.order.descending, a, b);
}

// ---- Bounds

void OrderedMerge::SetBounds(std::vector<GlobalIndex::Bound> bounds) {
  bounds_ = std::move(bounds);
  for (const GlobalIndex::Bound& bound : bounds_) {
    if (!bound.value.has_value()) without_entries_.Add(bound.keys);
  }
}

// Empty where some of the keys are in no region that a bound is known of.
std::string OrderedMerge::BoundOf(const KeyRange& keys) const {
  if (options_.order.index == nullptr) return keys.end;
  const bool descending = options_.order.descending;
  KeyRanges unknown = KeyRanges::Of(keys);
  std::string first;
  for (auto bound = std::ranges::partition_point(bounds_,
                                                 [&](const GlobalIndex::Bound& b) {
                                                   return !b.keys.end.empty() &&
                                                          b.keys.end <= keys.start;
                                                 });
       bound != bounds_.end() && bound->keys.Overlaps(keys); ++bound) {
    unknown.Subtract(bound->keys);
    if (!bound->value.has_value()) continue;
    if (first.empty() || IsBefore(*bound->value, first)) first = *bound->value;
  }
  if (!unknown.empty() || first.empty()) return "";
  // Entries with the largest value are above the value itself where more columns follow.
  if (descending && !options_.order.ends_with_first()) first = PrefixEnd(first);
  if (options_.stream.ranges().empty()) return first;
  if (!descending) return std::max(first, options_.stream.ranges().begin()->low());
  const std::string& high = options_.stream.ranges().rbegin()->high();
  return high.empty() ? first : std::min(first, high);
}

// ---- Positions

std::string OrderedMerge::PositionOf(const Row& row, const std::string& key) const {
  const IndexOrder& order = options_.order;
  std::string position;
  for (size_t i = 0; i < order.columns; ++i) AppendIndexed(row[order.index->columns[i]], &position);
  return order.by_key ? position + key : position;
}

void OrderedMerge::Place(SubRangeAt sub_range) {
  Remove(sub_range);
  SubRange& placed = *sub_range;
  if (!placed.has_answered) placed.position = BoundOf(placed.range);
  const bool has_rows = !placed.rows.empty();
  const auto item =
      items_.insert({has_rows ? placed.positions.back() : placed.position, has_rows, sub_range});
  places_.emplace(&placed, item.first);
}

void OrderedMerge::Remove(SubRangeAt sub_range) {
  auto place = places_.find(&*sub_range);
  if (place == places_.end()) return;
  items_.erase(place->second);
  places_.erase(place);
}

void OrderedMerge::AddRows(SubRangeAt sub_range, std::vector<RowGroup> rows,
                           const std::vector<std::string>& keys, bool in_order) {
  SubRange& to = *sub_range;
  to.has_answered = true;
  std::vector<std::pair<std::string, Row>> added;
  for (size_t i = 0; i < rows.size(); ++i) {
    added.emplace_back(PositionOf(rows[i].row, keys[i]), std::move(rows[i].row));
  }
  // All rows of a server that does not know of orders have to be there before the first is known.
  if (!in_order || !to.collected.empty()) {
    std::ranges::move(added, std::back_inserter(to.collected));
    if (!to.done) return Place(sub_range);
    added = std::exchange(to.collected, {});
    std::ranges::stable_sort(
        added, [&](const auto& a, const auto& b) { return IsBefore(a.first, b.first); });
  }
  std::ranges::reverse(added);
  for (auto& [position, row] : added) {
    to.positions.push_back(std::move(position));
    to.rows.push_back({.row = std::move(row)});
  }
  Place(sub_range);
}

// ---- Giving out

std::optional<SubRangeAt> OrderedMerge::Ready() const {
  if (items_.empty()) return std::nullopt;
  if (items_.begin()->has_rows) return items_.begin()->at;
  if (!options_.stop_early) return std::nullopt;
  const auto any = std::ranges::find(items_, true, &Item::has_rows);
  return any == items_.end() ? std::nullopt : std::optional(any->at);
}

std::pair<Row, bool> OrderedMerge::Take(SubRangeAt sub_range) {
  SubRange& from = *sub_range;
  Row row = std::move(from.rows.back().row);
  from.rows.pop_back();
  from.position = std::move(from.positions.back());
  from.positions.pop_back();
  const std::string position = from.position;
  Place(sub_range);
  if (IsTooLate(position)) return {std::move(row), false};
  last_ = position;
  if (!options_.each_once) return {std::move(row), true};
  const auto key = KeyFormat(*schema_).Encode(row);
  const bool is_new = !key.ok() || given_.insert(*key).second;
  return {std::move(row), is_new};
}

// No row that stood there at the start of the search comes so late.
bool OrderedMerge::IsTooLate(const std::string& position) const {
  return (!last_.empty() && IsBefore(position, last_)) ||
         (last_tie_.has_value() && position.starts_with(*last_tie_));
}

// The common beginning of the positions of the rows among which whole values decide this one's
// place; nullopt: it has its place.
std::optional<std::string> OrderedMerge::TieOf(const Row& row) const {
  std::string values;
  for (size_t i = 0; i < options_.order.columns; ++i) {
    if (AppendIndexed(row[options_.order.index->columns[i]], &values)) return values;
  }
  return std::nullopt;
}

bool OrderedMerge::IsTieComplete() const {
  return items_.empty() || !items_.begin()->position.starts_with(*tie_);
}

size_t OrderedMerge::BytesOf(const Row& row) const {
  return row.size() * sizeof(Value) + EncodeRow(*schema_, row).size();
}

void OrderedMerge::AddTied(Row row) {
  tied_bytes_ += BytesOf(row);
  tied_.push_back(std::move(row));
  if (limit_ > 0 && tied_.size() / 2 >= limit_) {
    const auto end = tied_.begin() + static_cast<ptrdiff_t>(limit_);
    std::ranges::nth_element(
        tied_, end, [&](const Row& a, const Row& b) { return ComesBefore(options_.terms, a, b); });
    tied_.erase(end, tied_.end());
    tied_bytes_ = 0;
    for (const Row& kept : tied_) tied_bytes_ += BytesOf(kept);
  }
  if (tied_bytes_ <= options_.most_tied_bytes) return;
  status_ = ResourceExhausted(
      "index \"" + options_.order.index->name + "\": more than " +
      std::to_string(options_.most_tied_bytes) +
      " bytes of rows have the same beginning of a long value, and would be sorted in memory; ask "
      "for another order: ORDER BY +COLUMN has SQLite sort the rows");
}

Row OrderedMerge::TakeTied() {
  if (tie_.has_value()) {
    last_tie_ = std::exchange(tie_, std::nullopt);
    std::ranges::stable_sort(
        tied_, [&](const Row& a, const Row& b) { return ComesBefore(options_.terms, a, b); });
    std::ranges::reverse(tied_);
    tied_bytes_ = 0;
  }
  Row row = std::move(tied_.back());
  tied_.pop_back();
  return row;
}

std::vector<SubRangeAt> OrderedMerge::Needed(uint64_t rows) const {
  std::vector<SubRangeAt> needed;
  // Rows that follow the first of their sub-range: (position, of which, how many are before it).
  struct Following {
    const std::string* position;
    SubRangeAt at;
    size_t left;
  };
  const auto later = [&](const Following& a, const Following& b) {
    return IsBefore(*b.position, *a.position);
  };
  std::priority_queue<Following, std::vector<Following>, decltype(later)> following(later);
  const auto add_next = [&](SubRangeAt at, size_t left) {
    if (left > 0) following.push({&at->positions[left - 1], at, left - 1});
  };
  uint64_t counted = 0;
  for (const Item& item : items_) {
    while (counted < rows && !following.empty() &&
           IsBefore(*following.top().position, item.position)) {
      const Following next = following.top();
      following.pop();
      ++counted;
      add_next(next.at, next.left);
    }
    if (counted >= rows && !item.position.empty()) break;
    ++counted;
    if (item.has_rows) {
      add_next(item.at, item.at->positions.size() - 1);
    } else {
      needed.push_back(item.at);
    }
  }
  return needed;
}

}  // namespace tamis
