#include "tamis/rocks/filter_snapshots.h"

#include "tamis/base/coding.h"
#include "tamis/rocks/store.pb.h"

namespace tamis {
namespace {

constexpr char kListKey[] = "L";
constexpr char kSnapshotPrefix[] = "S";
constexpr size_t kBatchBytes = 4 << 20;

}  // namespace

std::string FilterSnapshots::Key(const Id& id) {
  std::string key = kSnapshotPrefix;
  PutBig64(&key, id.first);
  PutBig32(&key, id.second);
  return key;
}

FilterSnapshots::FilterSnapshots(Store* store) : store_(store) {
  std::string bytes;
  pb::SnapshotList list;
  const rocksdb::Status found =
      store->db()->Get(rocksdb::ReadOptions(), store->filters(), kListKey, &bytes);
  if (!found.ok() || !list.ParseFromString(bytes)) return;
  if (list.sequence() != store->db()->GetLatestSequenceNumber()) return;
  believed_ = true;
  for (const auto& snapshot : list.snapshots()) {
    stored_.emplace(snapshot.region_id(), snapshot.index_id());
  }
  not_taken_ = stored_;
}

std::optional<std::string> FilterSnapshots::Take(uint64_t region_id, uint32_t index_id) {
  const Id id(region_id, index_id);
  {
    std::lock_guard lock(mutex_);
    if (not_taken_.erase(id) == 0) return std::nullopt;
  }
  std::string bytes;
  const rocksdb::Status found =
      store_->db()->Get(rocksdb::ReadOptions(), store_->filters(), Key(id), &bytes);
  if (!found.ok()) return std::nullopt;  // damaged: counted again
  return bytes;
}

Status FilterSnapshots::Save(std::span<const Current> filters) {
  rocksdb::WriteBatch batch;
  if (!believed_) {
    batch.DeleteRange(store_->filters(), kSnapshotPrefix, PrefixEnd(kSnapshotPrefix));
    stored_.clear();
  }
  pb::SnapshotList list;
  std::set<Id> superfluous = stored_;
  for (const Current& current : filters) {
    const Id id(current.region_id, current.index_id);
    if (!stored_.contains(id) || !current.filter->as_restored()) {
      const std::optional<std::string> bytes = current.filter->Snapshot();
      if (!bytes.has_value()) continue;
      batch.Put(store_->filters(), Key(id), *bytes);
      if (batch.GetDataSize() > kBatchBytes) {
        TAMIS_RETURN_IF_ERROR(store_->Write(&batch));
        batch.Clear();
      }
    }
    superfluous.erase(id);
    auto* snapshot = list.add_snapshots();
    snapshot->set_region_id(id.first);
    snapshot->set_index_id(id.second);
  }
  for (const Id& id : superfluous) batch.Delete(store_->filters(), Key(id));
  if (batch.Count() > 0) TAMIS_RETURN_IF_ERROR(store_->Write(&batch));
  batch.Clear();
  list.set_sequence(store_->db()->GetLatestSequenceNumber() + 1);
  batch.Put(store_->filters(), kListKey, list.SerializeAsString());
  return store_->Write(&batch);
}

}  // namespace tamis
