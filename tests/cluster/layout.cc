#include "tests/cluster/layout.h"

#include "tamis/rocks/index_entry.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

std::string EntriesText(RocksCluster& cluster, const Region& region, const std::string& row_key,
                        const Row& row) {
  std::string text;
  Store& store = cluster.store();
  const auto indexes = region.indexes();
  for (const auto& [id, state] : *indexes) {
    const auto entry = IndexEntry::Of(*region.schema(), state.filter->index(), row);
    if (!entry.has_value()) continue;  // the index is sparse
    std::string bytes;
    const std::string key = entry->StoreKey(region.info().id.number(), id, row_key);
    const auto status = store.db()->Get(rocksdb::ReadOptions(), store.index(), key, &bytes);
    text += "\n    index " + std::to_string(id) + (state.entries_complete ? " complete" : "") +
            (state.filter->published() ? " published" : "") +
            (status.ok() ? ", entry there" : ", entry missing") +
            (state.filter->MayContain(entry->filter_key) ? ", in filter" : ", not in filter");
  }
  return text;
}

}  // namespace

std::string Layout(RocksCluster& cluster, const TableSchema& schema, const RowState& row) {
  std::string text;
  const std::string row_key = row.has_value() ? EncodeKey(schema, *row) : "";
  for (const auto& record : cluster.catalog().Regions(schema.id)) {
    auto server = cluster.LocalServer(record.server());
    auto region = server ? server->FindRegion(record.id()) : nullptr;
    text += "\n  region " + std::to_string(record.id()) + " epoch " +
            std::to_string(record.epoch()) + " of " + record.server() + "/" +
            std::to_string(record.start_code()) + ": " +
            (region ? "open at epoch " + std::to_string(region->info().epoch) : "not open") +
            (server ? ", server " + std::to_string(server->start_code()) : "") +
            (server && server->killed() ? " killed" : "") +
            (server && server->paused() ? " paused" : "");
    const bool holds = row.has_value() && row_key >= record.start() &&
                       (record.end().empty() || row_key < record.end());
    if (!holds) continue;
    text += "  <- holds the key; complete:";
    for (const uint32_t id : record.complete_indexes()) text += " " + std::to_string(id);
    if (region) text += EntriesText(cluster, *region, row_key, *row);
  }
  return text;
}

}  // namespace tamis
