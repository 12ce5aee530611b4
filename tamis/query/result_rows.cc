#include "tamis/query/result_rows.h"

#include <utility>

#include "tamis/cluster/totals_message.h"
#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

bool ReadTotals(const TableSchema& schema, const std::vector<uint32_t>& columns,
                const pb::FoundRow& found, RowGroup* group) {
  if (static_cast<size_t>(found.totals_size()) != columns.size()) return false;
  for (int i = 0; i < found.totals_size(); ++i) {
    auto totals = ToTotals(schema.columns[columns[static_cast<size_t>(i)]].type, found.totals(i));
    if (!totals.ok()) return false;
    group->totals.push_back(*std::move(totals));
  }
  return true;
}

}  // namespace

std::optional<ResultRows> ResultRows::Read(const TableSchema& schema,
                                           const std::vector<uint32_t>& totals,
                                           const pb::RangeResult& result, bool with_keys) {
  ResultRows read;
  for (const pb::FoundRow& found : result.rows()) {
    RowGroup group{.row = Row(schema.columns.size()), .has_key = !result.groups()};
    if (result.groups()) {
      if (found.count() == 0) return std::nullopt;
      group.count = found.count();
      ++read.groups;
    } else if (!KeyFormat(schema).Decode(found.key(), &group.row).ok()) {
      ++read.rows_unparsed;
      continue;
    }
    if (!DecodeRow(schema, found.row(), &group.row).ok()) return std::nullopt;
    if (result.totals()) {
      if (!ReadTotals(schema, totals, found, &group)) return std::nullopt;
      ++read.groups_with_totals;
    }
    read.rows_found += group.count;
    read.rows.push_back(std::move(group));
    if (with_keys) read.keys.push_back(found.key());
  }
  return read;
}

}  // namespace tamis
