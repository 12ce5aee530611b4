#include "tamis/query/first_rows.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tamis/table/key_format.h"

namespace tamis {

bool FirstRows::IsInEntry(const TableSchema& schema, const IndexSpec& index, uint32_t column) {
  return schema.IsKey(column) || std::ranges::find(index.columns, column) != index.columns.end() ||
         std::ranges::find(index.include, column) != index.include.end();
}

bool FirstRows::Applies(const TableSchema& schema, const IndexOrder& order,
                        const SearchOptions& options) {
  const uint64_t wanted = options.limit > 0 ? options.limit : options.first_rows;
  if (wanted == 0 || wanted > kMost) return false;
  std::vector<bool> decides(schema.columns.size());
  options.predicate.AddColumns(&decides);
  for (const OrderTerm& term : options.order) decides[term.column] = true;
  bool rows_have_more = false;
  for (uint32_t column = 0; column < decides.size(); ++column) {
    if (IsInEntry(schema, *order.index, column)) continue;
    if (decides[column]) return false;
    rows_have_more |= !options.columns.has_value() ||
                      std::ranges::find(*options.columns, column) != options.columns->end();
  }
  return rows_have_more;
}

uint64_t FirstRows::Missing(uint64_t wanted) const {
  return wanted > given_ ? wanted - given_ : std::clamp<uint64_t>(given_, 1, kMost);
}

KeyRanges FirstRows::KeysOf(const std::vector<Row>& entries) const {
  KeyRanges keys;
  for (const Row& entry : entries) {
    const auto key = KeyFormat(*schema_).Encode(entry);
    if (key.ok()) keys.Add({*key, *key + '\0'});  // it was decoded from one
  }
  return keys;
}

void FirstRows::Add(const std::vector<Row>& entries, std::vector<Row> rows,
                    const std::function<void(const std::string&)>& left_out) {
  const KeyFormat format(*schema_);
  std::unordered_map<std::string, Row> by_key;
  for (Row& row : rows) {
    auto key = format.Encode(row);
    if (key.ok()) by_key.emplace(*std::move(key), std::move(row));
  }
  for (const Row& entry : entries) {
    const auto key = format.Encode(entry);
    if (!key.ok()) continue;
    auto row = by_key.find(*key);
    if (row == by_key.end() || ComesBefore(order_, row->second, entry) ||
        ComesBefore(order_, entry, row->second)) {
      left_out(*key);
      continue;
    }
    rows_.push_back(std::move(row->second));
    by_key.erase(row);
  }
  std::ranges::reverse(rows_);
}

Row FirstRows::Take() {
  Row row = std::move(rows_.back());
  rows_.pop_back();
  ++given_;
  return row;
}

}  // namespace tamis
