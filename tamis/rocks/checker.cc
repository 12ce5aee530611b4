#include "tamis/rocks/checker.h"

#include <fmt/format.h>

#include <map>

#include "tamis/rocks/entry_cursor.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/rocks/row_cursor.h"
#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"
#include "tamis/table/stored_row.h"

namespace tamis {
namespace {

std::string KeyText(const TableSchema& schema, std::string_view key) {
  Row row(schema.columns.size());
  if (!KeyFormat(schema).Decode(key, &row).ok()) return Value::Bytes(std::string(key)).ToString();
  std::string text;
  for (const uint32_t column : schema.key) {
    text += (text.empty() ? "" : ", ") + row[column].ToString();
  }
  return text;
}

Result<StoredRow> ReadRow(const Region& region, const TableSchema& schema, std::string_view key,
                          std::string_view bytes) {
  auto stored = ReadStoredRow(schema, key, bytes);
  if (stored.ok()) return stored;
  return stored.status().WithContext(
      fmt::format("region {}: cannot read row {}; put it again or delete it",
                  region.info().id.number(), KeyText(schema, key)));
}

// Counts stored rows that do not belong to the table, and values that read as NULL.
void NoteForeign(const Region& region, const TableSchema& schema, const StoredRow& stored,
                 std::string_view key, CheckReport* report) {
  report->undecodable_cells += stored.undecodable;
  if (stored.undecodable > 0) {
    report->Note(fmt::format("region {}: row {} has {} cells that do not decode",
                             region.info().id.number(), KeyText(schema, key), stored.undecodable));
  }
  if (stored.state != StoredRow::State::kForeignKey) return;
  ++(schema.key_parts.empty() ? report->damaged_keys : report->unparsed_rows);
  report->Note(fmt::format("region {}: row key {} does not parse", region.info().id.number(),
                           KeyText(schema, key)));
}

Result<bool> HasRow(const Store& store, uint32_t table_id, std::string_view key) {
  std::string value;
  const rocksdb::Status found =
      store.db()->Get(rocksdb::ReadOptions(), store.rows(), RowStoreKey(table_id, key), &value);
  if (!found.ok() && !found.IsNotFound()) return FromRocks(found, "read a row");
  return found.ok();
}

Status CheckIndex(const Store& store, const Region& region, const TableSchema& schema,
                  const Region::IndexState& state, CheckReport* report) {
  const IndexSpec& index = state.filter->index();
  const RegionInfo& info = region.info();
  if (!state.entries_complete) {
    ++report->incomplete;
    return Status::Ok();
  }
  std::map<std::string, std::string> expected;  // values + row key, and the included columns
  RowCursor rows(store, info.table_id, {info.start, info.end});
  for (; rows.Valid(); rows.Next()) {
    const std::string_view key = rows.key();
    TAMIS_ASSIGN_OR_RETURN(const StoredRow stored, ReadRow(region, schema, key, rows.value()));
    if (stored.state != StoredRow::State::kRow) continue;
    const auto given = IndexEntry::Of(schema, index, stored.row);
    if (!given.has_value()) continue;
    const IndexEntry& entry = *given;
    expected.emplace(entry.values + std::string(key), entry.included);
    if (!state.filter->published()) continue;
    ++report->filter_lookups;
    if (!state.filter->MayContain(entry.filter_key)) {
      ++report->missing_in_filter;
      report->Note(fmt::format("region {}: the filter of index \"{}\" says no to row {}",
                               info.id.number(), index.name, KeyText(schema, key)));
    }
  }
  TAMIS_RETURN_IF_ERROR(rows.status("read rows"));

  EntryCursor entries(store, IndexPrefix(info.id.number(), index.id));
  for (entries.Seek(""); entries.Valid(); entries.Next()) {
    const std::string_view entry = entries.entry();
    const auto split = SplitIndexEntry(schema, index, entry);
    if (!split.ok()) {
      ++report->foreign_entries;
      report->Note(fmt::format("region {}: index \"{}\" has an entry that cannot be read",
                               info.id.number(), index.name));
    } else if (!info.Contains(split->second)) {
      ++report->garbage;
    } else if (const auto found = expected.find(std::string(entry)); found != expected.end()) {
      ++report->entries;
      if (found->second != entries.value()) {
        ++report->foreign_entries;
        report->Note(
            fmt::format("region {}: index \"{}\" has other values of included columns "
                        "than row {}",
                        info.id.number(), index.name, KeyText(schema, split->second)));
      }
      expected.erase(found);
    } else {
      ++report->foreign_entries;
      TAMIS_ASSIGN_OR_RETURN(const bool has_row, HasRow(store, info.table_id, split->second));
      report->Note(fmt::format("region {}: index \"{}\" has an entry for row {}, {}",
                               info.id.number(), index.name, KeyText(schema, split->second),
                               has_row ? "which has another value" : "which is not there"));
    }
  }
  TAMIS_RETURN_IF_ERROR(entries.status());
  for (const auto& [entry, included] : expected) {
    ++report->missing_entries;
    const auto split = SplitIndexEntry(schema, index, entry);
    report->Note(fmt::format("region {}: index \"{}\" lacks the entry of row {}", info.id.number(),
                             index.name, split.ok() ? KeyText(schema, split->second) : "?"));
  }
  return Status::Ok();
}

}  // namespace

void AddTo(const Result<CheckReport>& part, Result<CheckReport>* all) {
  if (!part.ok()) {
    *all = part.status();
  } else if (all->ok()) {
    (*all)->Add(*part);
  }
}

Status CheckTiling(const std::vector<pb::RegionRecord>& regions) {
  std::string next;
  for (size_t i = 0; i < regions.size(); ++i) {
    const bool last = i + 1 == regions.size();
    if (regions[i].start() != next || regions[i].end().empty() != last) {
      return DataLoss(fmt::format(
          "the catalog is damaged: region {} does not begin where the one before it ends; "
          "restore the store from a backup",
          regions[i].id()));
    }
    next = regions[i].end();
  }
  if (regions.empty()) {
    return DataLoss("the catalog is damaged: it lists no region; restore the store from a backup");
  }
  return Status::Ok();
}

Result<CheckReport> CheckRegion(const Store& store, const Region& region) {
  CheckReport report;
  const SchemaPtr schema = region.schema();
  const RegionInfo& info = region.info();
  RowCursor rows(store, info.table_id, {info.start, info.end});
  for (; rows.Valid(); rows.Next()) {
    const std::string_view key = rows.key();
    TAMIS_ASSIGN_OR_RETURN(const StoredRow stored, ReadRow(region, *schema, key, rows.value()));
    NoteForeign(region, *schema, stored, key, &report);
    if (stored.state == StoredRow::State::kRow) ++report.rows;
  }
  TAMIS_RETURN_IF_ERROR(rows.status("read rows"));
  report.regions = 1;
  const auto indexes = region.indexes();
  for (const auto& [index_id, state] : *indexes) {
    TAMIS_RETURN_IF_ERROR(CheckIndex(store, region, *schema, state, &report));
  }
  return report;
}

}  // namespace tamis
