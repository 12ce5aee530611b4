#include "tamis/rocks/index_change.h"

#include <optional>

#include "tamis/rocks/index_entry.h"

namespace tamis {
namespace {

// Whether the store has the entry. Exactly the entries in the store are counted, so this is needed
// while the entries of the index are still being written for the region.
Result<bool> Exists(const Store& store, const std::string& entry_key) {
  std::string value;
  const rocksdb::Status status =
      store.db()->Get(rocksdb::ReadOptions(), store.index(), entry_key, &value);
  if (status.IsNotFound()) return false;
  if (!status.ok()) return FromRocks(status, "read an index entry");
  return true;
}

}  // namespace

Status IndexChange::Collect(const ServerContext& context, const RegionInfo& region,
                            const TableSchema& schema, uint32_t index_id, bool entries_complete,
                            std::span<const RowChange> changes) {
  const IndexSpec& index = filter->index();
  const uint64_t region_id = region.id.number();
  for (const RowChange& change : changes) {
    if (!change.touched) continue;
    std::optional<IndexEntry> before, after;
    if (change.before.has_value()) before = IndexEntry::Of(schema, index, *change.before);
    if (change.after.has_value()) after = IndexEntry::Of(schema, index, *change.after);
    const bool same = before.has_value() && after.has_value() && before->values == after->values;
    if (before.has_value() && !same) {
      std::string key = before->StoreKey(region_id, index_id, change.key);
      bool exists = true;
      if (!entries_complete) {
        TAMIS_ASSIGN_OR_RETURN(exists, Exists(*context.store, key));
      }
      if (exists) {
        delete_keys.push_back(std::move(key));
        remove.push_back(std::move(before->filter_key));
      }
    }
    if (!after.has_value()) continue;
    held.push_back(after->filter_key);
    const bool rewrite = !index.include.empty() && (!same || before->included != after->included) &&
                         !context.options.faults.included_columns_left;
    if (same && entries_complete && !rewrite) continue;
    std::string key = after->StoreKey(region_id, index_id, change.key);
    bool exists = same;
    if (!entries_complete) {
      TAMIS_ASSIGN_OR_RETURN(exists, Exists(*context.store, key));
    }
    if (exists && !rewrite) continue;
    puts.emplace_back(std::move(key), std::move(after->included));
    if (!exists) add.push_back(std::move(after->filter_key));
  }
  return Status::Ok();
}

}  // namespace tamis
