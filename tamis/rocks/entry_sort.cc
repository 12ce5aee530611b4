#include "tamis/rocks/entry_sort.h"

#include <algorithm>

#include "tamis/rocks/candidate_rows.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/rocks/store.h"
#include "tamis/table/codec.h"
#include "tamis/table/stored_row.h"

namespace tamis {

EntrySort::EntrySort(const ServerContext& context, const TableSchema& schema,
                     const IndexSpec& index, const pb::IndexStream& order,
                     const SearchPosition& position, RegionSnapshot* snapshot, SearchPage* page)
    : schema_(schema),
      index_(index),
      order_(order),
      position_(position),
      snapshot_(*snapshot),
      page_(*page),
      least_(position.IsDescending(),
             std::max<size_t>(page->max_rows(), context.options.page_candidates)) {}

Result<const LeastEntries*> EntrySort::OfRows() {
  RowCursor rows = snapshot_.RowsFrom(snapshot_.start());
  for (; rows.Valid(); rows.Next()) {
    const std::string_view key = rows.key();
    if (key > snapshot_.start() && page_.has_progress() && page_.IsOutOfTime()) {
      if (page_.rows() > 0) return nullptr;  // rows of earlier branches, and of the whole range
      // The least entries are known only of the rows up to here: the answer is for those.
      snapshot_.CutOffAt(std::string(key));
      page_.SetRange(snapshot_.start(), snapshot_.end());
      break;
    }
    page_.NoteProgress();
    page_.CountRowRead();
    TAMIS_RETURN_IF_ERROR(AddRow(key, rows.value()));
  }
  TAMIS_RETURN_IF_ERROR(rows.status("scan rows"));
  return &least_;
}

Result<const LeastEntries*> EntrySort::OfStream(BranchStreams::Stream* stream) {
  std::vector<std::string> keys;
  std::string from = snapshot_.start();
  for (bool ended = false; !ended;) {
    TAMIS_ASSIGN_OR_RETURN(auto key, NextKey(stream, from));
    ended = !key.has_value();
    if (!ended) {
      from = *key + '\0';
      keys.push_back(*std::move(key));
    }
    if (keys.size() < CandidateRows::kBatch && !ended) continue;
    TAMIS_RETURN_IF_ERROR(AddRows(keys));
    keys.clear();
  }
  page_.NoteProgress();
  return &least_;
}

Result<std::optional<std::string>> EntrySort::NextKey(BranchStreams::Stream* stream,
                                                      const std::string& from) const {
  std::optional<std::string> key;
  if (stream->equality()) {
    key = stream->by_key->Seek(from);
  } else if (const auto next = stream->by_entry->Next()) {
    TAMIS_ASSIGN_OR_RETURN(const auto split, SplitIndexEntry(schema_, *stream->index, *next));
    key = std::string(split.second);
  }
  if (!key.has_value()) TAMIS_RETURN_IF_ERROR(stream->status());
  return key;
}

Status EntrySort::AddRows(const std::vector<std::string>& keys) {
  std::vector<std::string> values;
  const auto statuses = snapshot_.ReadRows(keys, &values);
  for (size_t i = 0; i < keys.size(); ++i) {
    page_.CountRowRead();
    if (statuses[i].IsNotFound()) continue;
    if (!statuses[i].ok()) return FromRocks(statuses[i], "read a row");
    TAMIS_RETURN_IF_ERROR(AddRow(keys[i], values[i]));
  }
  return Status::Ok();
}

Status EntrySort::AddRow(std::string_view key, std::string_view stored) {
  TAMIS_ASSIGN_OR_RETURN(const StoredRow read, ReadStoredRow(schema_, key, stored));
  if (read.state != StoredRow::State::kRow || snapshot_.IsOutside(key)) return Status::Ok();
  const auto given = IndexEntry::Of(schema_, index_, read.row);
  if (!given.has_value()) return Status::Ok();
  std::string entry = given->values + std::string(key);
  if (IsInRanges(order_, entry) && position_.IsToCome(entry)) {
    least_.Add(std::move(entry), std::string(key));
  }
  return Status::Ok();
}

}  // namespace tamis
