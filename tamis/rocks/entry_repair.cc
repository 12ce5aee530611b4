#include "tamis/rocks/entry_repair.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "tamis/rocks/entry_copy.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/rocks/row_cursor.h"
#include "tamis/table/stored_row.h"

namespace tamis {
namespace {

// Calls `take` with each row that exists under one of the keys.
Status ReadRows(const ServerContext& context, const Region& region, const TableSchema& schema,
                const std::vector<std::string>& keys,
                const std::function<Status(const std::string& key, const Row& row)>& take) {
  // They stand beside each other, but for rows that came since the keys were listed.
  const RegionInfo& info = region.info();
  RowCursor rows(*context.store, info.table_id, {keys.front(), info.end});
  for (const std::string& key : keys) {
    while (rows.Valid() && rows.key() < key) rows.Next();
    if (!rows.Valid()) break;
    if (rows.key() != key) continue;  // deleted since
    TAMIS_ASSIGN_OR_RETURN(const StoredRow read, ReadStoredRow(schema, key, rows.value()));
    if (read.state == StoredRow::State::kRow) TAMIS_RETURN_IF_ERROR(take(key, read.row));
  }
  return rows.status("read rows");
}

// Whether a row in the store gives the entry. No row gives an entry that cannot be read.
Result<bool> IsGiven(const ServerContext& context, const RegionInfo& region,
                     const TableSchema& schema, const RepairedIndex& index,
                     std::string_view entry) {
  const auto split = SplitIndexEntry(schema, index.filter->index(), entry);
  if (!split.ok()) return false;
  std::string stored;
  const rocksdb::Status found =
      context.store->db()->Get(rocksdb::ReadOptions(), context.store->rows(),
                               RowStoreKey(region.table_id, std::string(split->second)), &stored);
  if (found.IsNotFound()) return false;
  if (!found.ok()) return FromRocks(found, "read a row");
  TAMIS_ASSIGN_OR_RETURN(const StoredRow read, ReadStoredRow(schema, split->second, stored));
  if (read.state != StoredRow::State::kRow) return false;
  const auto given = IndexEntry::Of(schema, index.filter->index(), read.row);
  return given.has_value() && given->values == split->first;
}

}  // namespace

Status RegionMoved() { return Unavailable("a region moved meanwhile; do it again"); }

Status WriteMissingEntries(const ServerContext& context, Region& region, const TableSchema& schema,
                           std::span<const RepairedIndex> indexes,
                           const std::vector<std::string>& keys) {
  const RegionInfo& info = region.info();
  const Store& store = *context.store;
  struct Wanted {
    size_t target;
    std::string store_key;
    IndexEntry entry;
  };
  std::vector<Wanted> wanted;
  TAMIS_RETURN_IF_ERROR(
      ReadRows(context, region, schema, keys, [&](const std::string& key, const Row& row) {
        for (size_t i = 0; i < indexes.size(); ++i) {
          auto entry = IndexEntry::Of(schema, indexes[i].filter->index(), row);
          if (!entry.has_value()) continue;
          wanted.push_back(
              {i, entry->StoreKey(info.id.number(), indexes[i].index_id, key), *std::move(entry)});
        }
        return Status::Ok();
      }));
  std::ranges::sort(wanted, {}, &Wanted::store_key);
  std::vector<rocksdb::Slice> slices;
  for (const Wanted& entry : wanted) slices.emplace_back(entry.store_key);
  std::vector<rocksdb::PinnableSlice> values(wanted.size());
  std::vector<rocksdb::Status> there(wanted.size());
  store.db()->MultiGet(rocksdb::ReadOptions(), store.index(), wanted.size(), slices.data(),
                       values.data(), there.data(), /*sorted_input=*/true);
  rocksdb::WriteBatch batch;
  std::vector<std::vector<EntryKey>> added(indexes.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    IndexEntry& entry = wanted[i].entry;
    // One that stands was written and counted by a put.
    if (there[i].ok() && values[i].ToStringView() == entry.included) continue;
    if (!there[i].ok() && !there[i].IsNotFound()) {
      return FromRocks(there[i], "read an index entry");
    }
    batch.Put(store.index(), wanted[i].store_key, entry.included);
    if (!there[i].ok()) added[wanted[i].target].push_back(std::move(entry.filter_key));
  }
  if (batch.Count() == 0) return Status::Ok();
  std::vector<IndexFilter::Ticket> tickets(added.size());
  for (size_t i = 0; i < added.size(); ++i) {
    if (!added[i].empty()) indexes[i].filter->Add(added[i], &tickets[i]);
  }
  auto fence = region.fence().Enter(info.epoch);
  if (!fence.owns_lock()) return RegionMoved();
  TAMIS_RETURN_IF_ERROR(WriteEntries(context.store, region, &batch));  // else they may stand
  for (size_t i = 0; i < added.size(); ++i) indexes[i].filter->Leave(tickets[i]);
  return Status::Ok();
}

Status RemoveForeignEntries(const ServerContext& context, Region& region, const TableSchema& schema,
                            const RepairedIndex& index, std::span<const std::string> entries) {
  const RegionInfo& info = region.info();
  const std::string prefix = IndexPrefix(info.id.number(), index.index_id);
  rocksdb::WriteBatch batch;
  for (const std::string& entry : entries) {
    TAMIS_ASSIGN_OR_RETURN(const bool given, IsGiven(context, region.info(), schema, index, entry));
    if (!given) batch.Delete(context.store->index(), prefix + entry);
  }
  if (batch.Count() == 0) return Status::Ok();
  auto fence = region.fence().Enter(info.epoch);
  if (!fence.owns_lock()) return RegionMoved();
  return WriteEntries(context.store, region, &batch);
}

}  // namespace tamis
