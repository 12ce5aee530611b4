#include "tamis/lsm/watched_memtables.h"

#include <cstddef>
#include <unordered_set>

#include "tamis/lsm/rocksdb_version.h"

namespace tamis::lsm {
namespace {

// A memtable that tells its filter of each key before it takes it.
class WatchedMemtable : public VersionedMemtable {
 public:
  WatchedMemtable(rocksdb::Allocator* allocator, std::shared_ptr<HookState> state, uint32_t family,
                  uint64_t guess)
      : VersionedMemtable(allocator),
        state_(std::move(state)),
        family_(family),
        filter_(state_->tree().families().MemtableMade(family, guess)) {}
  ~WatchedMemtable() override { state_->tree().families().MemtableGone(family_, filter_.get()); }

  void Watch(std::unique_ptr<rocksdb::MemTableRep> memtable) { memtable_ = std::move(memtable); }

  rocksdb::KeyHandle Allocate(size_t size, char** buffer) override {
    return memtable_->Allocate(size, buffer);
  }
  void Insert(rocksdb::KeyHandle handle) override {
    Note(handle);
    memtable_->Insert(handle);
  }
  bool InsertKey(rocksdb::KeyHandle handle) override {
    Note(handle);
    return memtable_->InsertKey(handle);
  }
  void InsertWithHint(rocksdb::KeyHandle handle, void** hint) override {
    Note(handle);
    memtable_->InsertWithHint(handle, hint);
  }
  bool InsertKeyWithHint(rocksdb::KeyHandle handle, void** hint) override {
    Note(handle);
    return memtable_->InsertKeyWithHint(handle, hint);
  }
  void InsertWithHintConcurrently(rocksdb::KeyHandle handle, void** hint) override {
    NoteBesideOthers(handle);
    memtable_->InsertWithHintConcurrently(handle, hint);
  }
  bool InsertKeyWithHintConcurrently(rocksdb::KeyHandle handle, void** hint) override {
    NoteBesideOthers(handle);
    return memtable_->InsertKeyWithHintConcurrently(handle, hint);
  }
  void InsertConcurrently(rocksdb::KeyHandle handle) override {
    NoteBesideOthers(handle);
    memtable_->InsertConcurrently(handle);
  }
  bool InsertKeyConcurrently(rocksdb::KeyHandle handle) override {
    NoteBesideOthers(handle);
    return memtable_->InsertKeyConcurrently(handle);
  }
  bool Contains(const char* key) const override { return memtable_->Contains(key); }
  void MarkReadOnly() override { memtable_->MarkReadOnly(); }
  // Its file is installed, and was counted before that.
  void MarkFlushed() override {
    state_->tree().families().MemtableGone(family_, filter_.get());
    memtable_->MarkFlushed();
  }
  void Get(const rocksdb::LookupKey& key, void* arguments,
           bool (*visit)(void*, const char*)) override {
    memtable_->Get(key, arguments, visit);
  }
  uint64_t ApproximateNumEntries(const rocksdb::Slice& begin, const rocksdb::Slice& end) override {
    return memtable_->ApproximateNumEntries(begin, end);
  }
  void UniqueRandomSample(const uint64_t entries, const uint64_t sample,
                          std::unordered_set<const char*>* out) override {
    memtable_->UniqueRandomSample(entries, sample, out);
  }
  size_t ApproximateMemoryUsage() override { return memtable_->ApproximateMemoryUsage(); }
  Iterator* GetIterator(rocksdb::Arena* arena) override { return memtable_->GetIterator(arena); }
  Iterator* GetDynamicPrefixIterator(rocksdb::Arena* arena) override {
    return memtable_->GetDynamicPrefixIterator(arena);
  }
  bool IsMergeOperatorSupported() const override { return memtable_->IsMergeOperatorSupported(); }
  bool IsSnapshotSupported() const override { return memtable_->IsSnapshotSupported(); }

 private:
  uint64_t HashOf(rocksdb::KeyHandle handle) const {
    return state_->tree().HashOf(family_, UserKey(static_cast<const char*>(handle)).ToStringView());
  }
  // RocksDB ensures that no other thread inserts during an insert that is not "concurrent".
  void Note(rocksdb::KeyHandle handle) {
    if (filter_ != nullptr) filter_->AddAlone(HashOf(handle));
  }
  void NoteBesideOthers(rocksdb::KeyHandle handle) {
    if (filter_ != nullptr) filter_->Add(HashOf(handle));
  }

  const std::shared_ptr<HookState> state_;
  const uint32_t family_;
  const std::shared_ptr<MemtableFilter> filter_;  // none: the family passes through
};

}  // namespace

rocksdb::MemTableRep* WatchedMemtables::CreateMemTableRep(
    const rocksdb::MemTableRep::KeyComparator& comparator, rocksdb::Allocator* allocator,
    const rocksdb::SliceTransform* transform, rocksdb::Logger* logger, uint32_t family) {
  std::unique_ptr<rocksdb::MemTableRep> memtable(
      memtables_->CreateMemTableRep(comparator, allocator, transform, logger, family));
  std::unique_ptr<WatchedMemtable> watched;
  const bool is_watched = Guarded(state_.get(), family, [&] {
    watched = std::make_unique<WatchedMemtable>(allocator, state_, family, guess_);
  });
  if (!is_watched) return memtable.release();
  watched->Watch(std::move(memtable));
  return watched.release();
}

}  // namespace tamis::lsm
