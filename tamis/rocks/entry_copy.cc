#include "tamis/rocks/entry_copy.h"

#include <algorithm>
#include <new>
#include <utility>

#include "tamis/base/coding.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

constexpr size_t kRegionPrefixSize = 8;

}  // namespace

// Notes each change of an entry in a batch.
class EntryCopy::Notes : public rocksdb::WriteBatch::Handler {
 public:
  explicit Notes(EntryCopy* copy) : copy_(*copy), family_(copy->store_->index()->GetID()) {}

  rocksdb::Status PutCF(uint32_t family, const rocksdb::Slice& key,
                        const rocksdb::Slice& value) override {
    if (family == family_) copy_.NoteChange(key.ToStringView(), value.ToString());
    return rocksdb::Status::OK();
  }
  rocksdb::Status DeleteCF(uint32_t family, const rocksdb::Slice& key) override {
    if (family == family_) copy_.NoteChange(key.ToStringView(), std::nullopt);
    return rocksdb::Status::OK();
  }

 private:
  EntryCopy& copy_;
  const uint32_t family_;
};

bool EntryCopy::HasCompleteIndex(const Region& region) {
  const auto indexes = region.indexes();
  return std::ranges::any_of(*indexes,
                             [](const auto& index) { return index.second.entries_complete; });
}

Result<std::shared_ptr<EntryCopy>> EntryCopy::Prepare(const ServerContext& context,
                                                      const Region& region,
                                                      const std::string& split_key) {
  if (!HasCompleteIndex(region)) return std::shared_ptr<EntryCopy>();
  TAMIS_ASSIGN_OR_RETURN(const uint64_t id, context.catalog->PrepareRegion());
  try {
    return std::shared_ptr<EntryCopy>(new EntryCopy(context, region, split_key, id));
  } catch (const std::bad_alloc&) {
    context.catalog->Discard(id);
    throw;
  }
}

EntryCopy::EntryCopy(const ServerContext& context, const Region& region, std::string split_key,
                     uint64_t daughter_id)
    : catalog_(context.catalog),
      store_(context.store),
      region_(region.info()),
      daughter_id_(daughter_id),
      split_key_(std::move(split_key)),
      most_bytes_(context.options.copied_change_bytes),
      forgets_changes_(context.options.faults.changes_left_by_copy),
      file_(context.store, daughter_id) {}

void EntryCopy::Begin(const Region& region) {
  schema_ = region.schema();
  const auto indexes = region.indexes();
  for (const auto& [index_id, state] : *indexes) {
    if (state.entries_complete) indexes_.emplace(index_id, state.filter);
  }
  at_ = indexes_.begin();
  rocksdb::DB* db = store_->db();
  snapshot_ = std::shared_ptr<const rocksdb::Snapshot>(
      db->GetSnapshot(),
      [db](const rocksdb::Snapshot* snapshot) { db->ReleaseSnapshot(snapshot); });
  std::lock_guard lock(mutex_);
  begun_ = true;
}

EntryCopy::~EntryCopy() {
  try {
    catalog_->Discard(daughter_id_);
  } catch (const std::bad_alloc&) {
    // The entries are garbage from the next opening of the store on.
  }
}

Result<bool> EntryCopy::IsUpper(uint32_t index_id, std::string_view entry) const {
  const auto split = SplitIndexEntry(*schema_, indexes_.at(index_id)->index(), entry);
  if (!split.ok()) return split.status();
  return split->second >= split_key_ && region_.Contains(split->second);
}

std::string EntryCopy::DaughterKey(std::string_view key) const {
  std::string daughters = RegionIndexPrefix(daughter_id_);
  daughters.append(key.substr(kRegionPrefixSize));
  return daughters;
}

Result<bool> EntryCopy::Copy(uint64_t entries) {
  for (uint64_t seen = 0; at_ != indexes_.end(); ++at_, cursor_.reset()) {
    const uint32_t index_id = at_->first;
    if (!cursor_) {
      rocksdb::ReadOptions read_options;
      read_options.snapshot = snapshot_.get();
      read_options.fill_cache = false;
      cursor_ = std::make_unique<EntryCursor>(*store_, IndexPrefix(region_.id.number(), index_id),
                                              read_options);
      cursor_->Seek("");
    }
    const std::string prefix = IndexPrefix(daughter_id_, index_id);
    for (; cursor_->Valid(); cursor_->Next(), ++seen) {
      if (seen >= entries) return true;
      TAMIS_ASSIGN_OR_RETURN(const bool upper, IsUpper(index_id, cursor_->entry()));
      if (!upper) continue;
      TAMIS_RETURN_IF_ERROR(file_.Add(prefix + std::string(cursor_->entry()), cursor_->value()));
    }
    TAMIS_RETURN_IF_ERROR(cursor_->status());
  }
  snapshot_.reset();
  return false;
}

Status EntryCopy::TakeIn() {
  TAMIS_RETURN_IF_ERROR(file_.TakeIn());
  TAMIS_RETURN_IF_ERROR(WriteChanges());
  taken_in_ = true;
  return Status::Ok();
}

Status EntryCopy::Complete() {
  if (!taken_in_) return Unavailable("the copied entries are not in the store");
  return WriteChanges();
}

// Changes that come while it writes are noted for the next call.
Status EntryCopy::WriteChanges() {
  std::map<std::string, std::optional<std::string>> changes;
  {
    std::lock_guard lock(mutex_);
    if (spoilt_) return Unavailable("not every change of the region was noted");
    changes.swap(changes_);
    bytes_ = 0;
  }
  if (forgets_changes_ || changes.empty()) return Status::Ok();
  rocksdb::WriteBatch batch;
  for (const auto& [key, value] : changes) {
    if (value.has_value()) {
      batch.Put(store_->index(), key, *value);
    } else {
      batch.Delete(store_->index(), key);
    }
  }
  return store_->Write(&batch);
}

void EntryCopy::Note(const rocksdb::WriteBatch& batch) noexcept {
  std::lock_guard lock(mutex_);
  if (!begun_ || spoilt_) return;
  try {
    Notes notes(this);
    if (batch.Iterate(&notes).ok() && bytes_ <= most_bytes_) return;
  } catch (const std::bad_alloc&) {
    // The change is lost, so the copy is spoilt.
  }
  SpoilLocked();
}

// With the mutex held.
void EntryCopy::NoteChange(std::string_view key, std::optional<std::string> value) {
  Reader reader(key.substr(kRegionPrefixSize));
  const uint32_t index_id = reader.Big32();
  if (!indexes_.contains(index_id)) return;
  const auto upper = IsUpper(index_id, reader.rest());
  if (upper.ok() && !*upper) return;
  bytes_ += key.size() + (value.has_value() ? value->size() : 0);
  changes_.insert_or_assign(DaughterKey(key), std::move(value));
}

void EntryCopy::Spoil() noexcept {
  std::lock_guard lock(mutex_);
  SpoilLocked();
}

void EntryCopy::SpoilLocked() noexcept {
  spoilt_ = true;
  changes_.clear();
}

Status WriteEntries(Store* store, const Region& region, rocksdb::WriteBatch* batch) {
  const auto copy = region.entry_copy();
  if (!copy) return store->Write(batch);
  copy->Note(*batch);
  try {
    Status written = store->Write(batch);
    if (!written.ok()) copy->Spoil();
    return written;
  } catch (const std::bad_alloc&) {
    copy->Spoil();
    throw;
  }
}

}  // namespace tamis
