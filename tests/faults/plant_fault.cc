// Damages a store that no process has open, in a way that its own code never would; driven by
// check_test.py.
//
//   plant_fault DIRECTORY TABLE INDEX FAULT    prints the key of the row that suffers
//
//   missing-entry     the row's entry in the index is gone
//   foreign-entry     the index has a second entry for the row, with the value of another one
//   unreadable-entry  the index has an entry of bytes that mean nothing
//   lost-row          the row is gone, its entries stand
//   unreadable-row    the row consists of bytes that mean nothing
//   filter-bit        the saved filter does not know the row's value any more
//   other-write       something else has written to the store since it was closed
//   newer-format      the store is of a format that is not known yet
//   foreign-database  not a store at all: a RocksDB database of something else is made
#include <cstdio>
#include <map>
#include <string>

#include "tamis/base/thread_executor.h"
#include "tamis/rocks/catalog.h"
#include "tamis/rocks/filter_snapshots.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/rocks/row_cursor.h"
#include "tamis/rocks/store.h"
#include "tamis/table/stored_row.h"

namespace tamis {
namespace {

struct VictimRow {
  uint64_t region = 0;
  std::string key;
  Row row;
};

// The first and the last row of the last region that has two.
Result<std::pair<VictimRow, VictimRow>> FindRows(const Store& store, const Catalog& catalog,
                                                 const TableSchema& schema) {
  std::pair<VictimRow, VictimRow> found;
  for (const pb::RegionRecord& region : catalog.Regions(schema.id)) {
    std::vector<VictimRow> rows;
    RowCursor cursor(store, schema.id, {region.start(), region.end()});
    for (; cursor.Valid(); cursor.Next()) {
      TAMIS_ASSIGN_OR_RETURN(StoredRow read, ReadStoredRow(schema, cursor.key(), cursor.value()));
      rows.push_back({region.id(), std::string(cursor.key()), std::move(read.row)});
    }
    TAMIS_RETURN_IF_ERROR(cursor.status("read rows"));
    if (rows.size() > 1) found = {rows.front(), rows.back()};
  }
  if (found.first.key.empty()) return NotFound("no region has two rows");
  return found;
}

// Takes the value out of the saved counters, as often as they have it.
Status ForgetInFilter(FilterSnapshots* snapshots, const TableSchema& schema, const VictimRow& row,
                      const IndexSpec& index) {
  const auto bytes = snapshots->Take(row.region, index.id);
  if (!bytes.has_value()) return NotFound("no filter is saved");
  ThreadExecutor executor(1);
  const auto feed = std::make_shared<FilterFeed>(&executor, "none", 1, FilterFeed::Options{});
  auto filter = std::make_shared<IndexFilter>(feed.get(), index, row.region, 1, Faults{});
  if (!filter->RestoreGeneration(*bytes)) return DataLoss("the saved filter is damaged");
  filter->Publish();
  const EntryKey entry = IndexEntry::Of(schema, index, row.row)->filter_key;
  for (int i = 0; i < 100 && filter->MayContain(entry); ++i) filter->ClearBitsForTest(entry);
  const FilterSnapshots::Current current{row.region, index.id, filter};
  return snapshots->Save(std::span(&current, 1));
}

Status MakeForeignDatabase(const std::string& directory) {
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* db = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(options, directory, &db);
  const std::unique_ptr<rocksdb::DB> owned(db);
  if (status.ok()) status = db->Put(rocksdb::WriteOptions(), "somebody", "else");
  return FromRocks(status, "make a database");
}

Status Plant(const std::string& directory, const std::string& table, const std::string& index_name,
             const std::string& fault) {
  if (fault == "foreign-database") return MakeForeignDatabase(directory);
  TAMIS_ASSIGN_OR_RETURN(const auto store, Store::Open({.directory = directory, .create = false}));
  FilterSnapshots snapshots(store.get());
  TAMIS_ASSIGN_OR_RETURN(const auto catalog, Catalog::Load(store.get()));
  TAMIS_ASSIGN_OR_RETURN(const TableSchema schema, catalog->Table(table));
  const IndexSpec* index = schema.FindIndex(index_name);
  if (index == nullptr) return NotFound("no index \"" + index_name + "\"");
  TAMIS_ASSIGN_OR_RETURN(const auto rows, FindRows(*store, *catalog, schema));
  const auto& [row, other] = rows;
  const IndexEntry entry = *IndexEntry::Of(schema, *index, row.row);
  const IndexEntry wrong = *IndexEntry::Of(schema, *index, other.row);
  if (entry.values == wrong.values) return FailedPrecondition("the two rows have the same value");
  rocksdb::WriteBatch batch;
  if (fault == "missing-entry") {
    batch.Delete(store->index(), entry.StoreKey(row.region, index->id, row.key));
  } else if (fault == "foreign-entry") {
    batch.Put(store->index(), wrong.StoreKey(row.region, index->id, row.key), "");
  } else if (fault == "unreadable-entry") {
    batch.Put(store->index(), IndexPrefix(row.region, index->id) + "\x7fnonsense", "");
  } else if (fault == "lost-row") {
    batch.Delete(store->rows(), RowStoreKey(schema.id, row.key));
  } else if (fault == "unreadable-row") {
    batch.Put(store->rows(), RowStoreKey(schema.id, row.key), "\xff\xff\xff");
  } else if (fault == "other-write") {
    batch.Put(store->meta(), "X", "");
  } else if (fault == "newer-format") {
    pb::StoreRecord record;
    record.set_format_version(99);
    batch.Put(store->meta(), "F", record.SerializeAsString());
  } else if (fault != "filter-bit") {
    return InvalidArgument("no fault \"" + fault + "\"");
  }
  std::printf("%s\n", row.row[schema.key[0]].ToString().c_str());
  if (fault == "filter-bit") return ForgetInFilter(&snapshots, schema, row, *index);
  return store->Write(&batch);
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: plant_fault DIRECTORY TABLE INDEX FAULT\n", stderr);
    return 2;
  }
  const tamis::Status status = tamis::Plant(argv[1], argv[2], argv[3], argv[4]);
  if (!status.ok()) std::fprintf(stderr, "plant_fault: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
