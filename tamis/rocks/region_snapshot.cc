#include "tamis/rocks/region_snapshot.h"

#include <algorithm>

namespace tamis {

RegionSnapshot::RegionSnapshot(const ServerContext& context, const Region& region,
                               const KeyRange& asked)
    : context_(context),
      region_(region),
      start_(std::max(asked.start, region.info().start)),
      end_(asked.end) {
  const std::string& region_end = region.info().end;
  if (end_.empty() || (!region_end.empty() && region_end < end_)) end_ = region_end;
}

Status RegionSnapshot::Take() {
  // Before the snapshot: an index that is complete now has all its entries in it.
  const auto indexes = region_.indexes();
  for (const auto& [index_id, state] : *indexes) {
    if (state.entries_complete) complete_.insert(index_id);
  }
  {
    auto fence = region_.fence().Enter(region_.info().epoch);
    if (context_.options.fence_searches && !fence.owns_lock()) {
      return Unavailable("the region is not open here any more");
    }
    rocksdb::DB* db = context_.store->db();
    snapshot_ = {db->GetSnapshot(), ReleaseSnapshot{db}};
    read_options_.snapshot = snapshot_.get();
  }
  if (context_.options.during_search) context_.options.during_search();
  return Status::Ok();
}

// Compactions may have dropped entries that were the region's when the snapshot was taken. They
// drop only what the region no longer holds, and entries of a dropped index, maybe before this
// region learns of the drop.
bool RegionSnapshot::IsCurrent() const {
  for (const uint32_t index_id : used_) {
    if (!context_.catalog->HasIndex(region_.info().table_id, index_id)) return false;
  }
  const bool verified = context_.options.faults.search_beyond_proof || context_.is_verified();
  return verified && (!context_.options.fence_searches ||
                      region_.fence().Enter(region_.info().epoch).owns_lock());
}

std::vector<rocksdb::Status> RegionSnapshot::ReadRows(const std::vector<std::string>& keys,
                                                      std::vector<std::string>* values) const {
  std::vector<std::string> store_keys;
  store_keys.reserve(keys.size());
  for (const std::string& key : keys) {
    store_keys.push_back(RowStoreKey(region_.info().table_id, key));
  }
  const std::vector<rocksdb::Slice> slices(store_keys.begin(), store_keys.end());
  const std::vector<rocksdb::ColumnFamilyHandle*> families(slices.size(), context_.store->rows());
  return context_.store->db()->MultiGet(read_options_, families, slices, values);
}

uint64_t RegionSnapshot::CountRows(uint64_t most) const {
  RowCursor rows = RowsFrom(start_);
  uint64_t count = 0;
  for (; count < most && rows.Valid(); rows.Next()) ++count;
  return rows.status("count rows").ok() ? count : most;
}

std::optional<uint64_t> RegionSnapshot::RowsOfRegion(const TableSchema& schema) const {
  std::optional<uint64_t> rows;
  const auto indexes = region_.indexes();
  for (const auto& [index_id, state] : *indexes) {
    const IndexSpec* index = schema.FindIndex(index_id);
    if (index == nullptr || index->nulls == IndexNulls::kSkip || index->IsPartial() ||
        state.filter == nullptr || !IsComplete(index_id) || !state.filter->published()) {
      continue;
    }
    rows = std::min(rows.value_or(~uint64_t{0}), state.filter->entries());
  }
  return rows;
}

std::optional<double> RegionSnapshot::ShareOfRegion() const {
  const RegionInfo& info = region_.info();
  const Store& store = *context_.store;
  const auto bytes = [&](const std::string& start, const std::string& end) {
    return static_cast<double>(store.ApproximateRowBytes(info.table_id, start, end));
  };
  const double all = bytes(info.start, info.end);
  if (all <= 0) return std::nullopt;
  return bytes(start_, end_) / all;
}

}  // namespace tamis
