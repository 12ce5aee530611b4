#include "tamis/lsm/bypassed_memtables.h"

namespace tamis::lsm {

void BypassedMemtables::Show(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle) {
  const std::lock_guard lock(mutex_);
  db_ = db;
  handles_.emplace(handle->GetID(), handle);
  Check(handle->GetID());  // one may have come while the database was open without us
}

void BypassedMemtables::Forget(rocksdb::ColumnFamilyHandle* handle) {
  const std::lock_guard lock(mutex_);
  std::erase_if(handles_, [&](const auto& at) { return at.second == handle; });
}

void BypassedMemtables::ForgetAll() {
  const std::lock_guard lock(mutex_);
  db_ = nullptr;
  handles_.clear();
}

std::optional<uint64_t> BypassedMemtables::ImmutableMemtables(uint32_t family) const {
  // The handle of the default family is often destroyed at once: RocksDB has one of its own.
  const auto at = handles_.find(family);
  rocksdb::ColumnFamilyHandle* const handle = at != handles_.end() ? at->second
                                              : family == 0        ? db_->DefaultColumnFamily()
                                                                   : nullptr;
  uint64_t count = 0;
  if (handle == nullptr ||
      !db_->GetIntProperty(handle, rocksdb::DB::Properties::kNumImmutableMemTable, &count)) {
    return std::nullopt;
  }
  return count;
}

void BypassedMemtables::Check(uint32_t family) {
  if (ignore_) return;
  // Memtables of ours can be flushed meanwhile, but no new one is made. One ends when RocksDB takes
  // it from its list, under its mutex; and the one that is written is ours, but not immutable.
  uint64_t ours = families_.MemtableCount(family);
  std::optional<uint64_t> immutable;
  while (true) {
    immutable = ImmutableMemtables(family);
    const uint64_t now = families_.MemtableCount(family);
    if (now == ours) break;
    ours = now;
  }
  if (ours == 0) return;  // they are not watched, which is a reason of its own
  if (!immutable.has_value() || *immutable + 1 > ours) families_.AddBypassReasons(family, kBypass);
}

void BypassedMemtables::OnSealed(uint32_t family) {
  const std::lock_guard lock(mutex_);
  if (db_ != nullptr) Check(family);
}

void BypassedMemtables::OnFlushed(uint32_t family) {
  const std::lock_guard lock(mutex_);
  if (db_ != nullptr && (families_.BypassReasonsOf(family) & kBypass) != 0 &&
      ImmutableMemtables(family) == 0u) {
    families_.ClearBypassReasons(family, kBypass);
  }
}

}  // namespace tamis::lsm
