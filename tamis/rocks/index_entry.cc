#include "tamis/rocks/index_entry.h"

namespace tamis {
namespace {

std::string EncodeIncluded(const TableSchema& schema, const IndexSpec& index, const Row& row) {
  if (index.include.empty()) return "";
  Row included(schema.columns.size());
  for (const uint32_t column : index.include) included[column] = row[column];
  return EncodeRow(schema, included);
}

}  // namespace

std::optional<IndexEntry> IndexEntry::Of(const TableSchema& schema, const IndexSpec& index,
                                         const Row& row) {
  if (IsSkipped(index, row)) return std::nullopt;
  const std::vector<std::string> prefixes = IndexPrefixes(index, row);
  return IndexEntry{prefixes.back(), MakeEntryKey(index, prefixes),
                    EncodeIncluded(schema, index, row)};
}

Result<IndexEntry> IndexEntry::OfValues(const TableSchema& schema, const IndexSpec& index,
                                        std::string_view values) {
  std::vector<std::string> prefixes;
  IndexSpec leading = index;
  for (size_t size = 1; size <= index.columns.size(); ++size) {
    leading.columns.assign(index.columns.begin(), index.columns.begin() + static_cast<long>(size));
    TAMIS_ASSIGN_OR_RETURN(const auto split, SplitIndexEntry(schema, leading, values));
    prefixes.emplace_back(split.first);
  }
  return IndexEntry{prefixes.back(), MakeEntryKey(index, prefixes), ""};
}

}  // namespace tamis
