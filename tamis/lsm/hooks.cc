#include "tamis/lsm/hooks.h"

#include <rocksdb/db.h>
#include <rocksdb/table_properties.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string_view>
#include <thread>

#include "tamis/lsm/rocksdb_version.h"
#include "tamis/lsm/sst_keys.h"

namespace tamis::lsm {
namespace {

constexpr char kCollection[] = "tamis.lsm.collection";
constexpr char kCollectorName[] = "tamis.lsm";

// How many keys the first memtables hold is guessed; a filter that is filled beyond has to ask one
// line more.
constexpr uint64_t kBytesOfKey = 256;
constexpr uint64_t kMostGuessed = 1 << 20;

std::string_view View(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// RocksDB's threads must not see exceptions; of ours there is only a lack of memory. True when the
// work was done.
template <class Work>
bool Attempt(Work&& work) noexcept {
  try {
    work();
    return true;
  } catch (...) {
    return false;
  }
}

// Without the work the family is not to be believed any more.
template <class Work>
bool Guarded(HookState* state, std::optional<uint32_t> family, Work&& work) noexcept {
  const bool is_done = Attempt(work);
  if (!is_done && family.has_value()) state->tree().families().AddBypassReasons(*family, kNoMemory);
  return is_done;
}

// A little memory for collectors where there is no other, since RocksDB takes no refusal. More of
// them than there are places are never being filled at the same time.
class SparePlaces {
 public:
  static constexpr size_t kPlaces = 64;
  static constexpr size_t kSize = 128;

  static void* Take() {
    for (size_t i = 0; i < kPlaces; ++i) {
      if (!taken_[i].exchange(true)) return places_[i];
    }
    throw std::bad_alloc();
  }
  // False: it is none of these.
  static bool GiveBack(void* place) noexcept {
    const auto at = static_cast<const char*>(place) - places_[0];
    if (at < 0 || at >= static_cast<std::ptrdiff_t>(kPlaces * kSize)) return false;
    taken_[static_cast<size_t>(at) / kSize] = false;
    return true;
  }

 private:
  alignas(std::max_align_t) static inline char places_[kPlaces][kSize];
  static inline std::atomic<bool> taken_[kPlaces];
};

class Collector : public rocksdb::TablePropertiesCollector {
 public:
  Collector(std::shared_ptr<HookState> state, uint32_t family)
      : state_(std::move(state)), family_(family), collects_(family != kNoFamily) {}

  static constexpr uint32_t kNoFamily = INT32_MAX;  // the family of files that are written outside

  static void* operator new(size_t size) {
    static_assert(sizeof(Collector) <= SparePlaces::kSize);
    void* const place = ::operator new(size, std::nothrow);
    return place != nullptr ? place : SparePlaces::Take();
  }
  static void operator delete(void* place) noexcept {
    if (!SparePlaces::GiveBack(place)) ::operator delete(place);
  }

  rocksdb::Status AddUserKey(const rocksdb::Slice& key, const rocksdb::Slice&,
                             rocksdb::EntryType type, rocksdb::SequenceNumber, uint64_t) override {
    if (!collects_ || lacks_keys_ || type == rocksdb::kEntryRangeDeletion) {
      return rocksdb::Status::OK();
    }
    lacks_keys_ = !Guarded(state_.get(), family_, [&] {
      const uint64_t hash = state_->tree().HashOf(family_, View(key));
      if (hashes_.empty() || hashes_.back() != hash) hashes_.push_back(hash);
    });
    if (lacks_keys_) std::vector<uint64_t>().swap(hashes_);
    return rocksdb::Status::OK();
  }

  // Is called more than once.
  rocksdb::Status Finish(rocksdb::UserCollectedProperties* properties) override {
    // Without some of them no key file may be written, which a later opening would believe.
    if (!collects_ || lacks_keys_) return rocksdb::Status::OK();
    Guarded(state_.get(), family_, [&] {
      static std::atomic<uint64_t> next{1};
      if (collection_ == 0) {
        collection_ = next.fetch_add(1);
        state_->Collected(collection_, family_, std::move(hashes_));
      }
      (*properties)[kCollection] = std::to_string(collection_);
    });
    return rocksdb::Status::OK();
  }

  rocksdb::UserCollectedProperties GetReadableProperties() const override { return {}; }
  const char* Name() const override { return kCollectorName; }

 private:
  const std::shared_ptr<HookState> state_;
  const uint32_t family_;
  const bool collects_;
  uint64_t collection_ = 0;
  bool lacks_keys_ = false;
  std::vector<uint64_t> hashes_;
};

class Collectors : public rocksdb::TablePropertiesCollectorFactory {
 public:
  explicit Collectors(std::shared_ptr<HookState> state) : state_(std::move(state)) {}
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(Context context) override {
    // A file that an SstFileWriter writes has no level and causes no event. Its keys are read when
    // it is ingested.
    const bool is_of_database = context.level_at_creation != Context::kUnknownLevelAtCreation;
    return new Collector(state_, is_of_database ? context.column_family_id : Collector::kNoFamily);
  }
  const char* Name() const override { return kCollectorName; }
  bool IsOf(const HookState* state) const { return state_.get() == state; }

 private:
  const std::shared_ptr<HookState> state_;
};

class Listener : public rocksdb::EventListener {
 public:
  explicit Listener(std::shared_ptr<HookState> state) : state_(std::move(state)) {}
  const char* Name() const override { return kCollectorName; }

  void OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) noexcept override {
    if (Attempt([&] { state_->OnCreated(info); }) || !info.status.ok()) return;
    if (const auto family = state_->FamilyOf(info))
      state_->tree().families().AddBypassReasons(*family, kNoMemory);
  }
  // A deletion that cannot be noted leaves the copies of its keys, as false positives.
  void OnTableFileDeleted(const rocksdb::TableFileDeletionInfo& info) noexcept override {
    if (state_->IsOther(info.db_name)) return;
    Attempt([&] { state_->OnDeleted(info.file_path); });
  }
  // The memtable's filter was retired. While no file is deleted, only this wakes the thread that
  // frees it.
  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) noexcept override {
    state_->OnFlushed();
#if TAMIS_ROCKSDB_BYPASSES_MEMTABLES
    if (state_->IsOther(db->GetName())) return;
    Attempt([&] { state_->OnMemtableFlushed(info.cf_name); });
#else
    (void)db, (void)info;
#endif
  }
#if TAMIS_ROCKSDB_BYPASSES_MEMTABLES
  void OnMemTableSealed(const rocksdb::MemTableInfo& info) noexcept override {
    Guarded(state_.get(), state_->FamilyNamed(info.cf_name),
            [&] { state_->OnMemtableSealed(info.cf_name); });
  }
  void OnColumnFamilyHandleDeletionStarted(rocksdb::ColumnFamilyHandle* handle) override {
    state_->ForgetHandle(handle);
  }
#endif
  // A compaction that cannot be noted has unknown inputs, like a compaction that was not announced.
  void OnCompactionBegin(rocksdb::DB* db,
                         const rocksdb::CompactionJobInfo& info) noexcept override {
    if (state_->IsOther(db->GetName())) return;
    Attempt([&] {
      std::vector<TreeFilter::FileNumber> inputs;
      for (const rocksdb::CompactionFileInfo& file : info.input_file_infos) {
        inputs.push_back(file.file_number);
      }
      state_->tree().CompactionBegan(info.job_id, std::move(inputs));
    });
  }
  void OnCompactionCompleted(rocksdb::DB* db,
                             const rocksdb::CompactionJobInfo& info) noexcept override {
    if (state_->IsOther(db->GetName())) return;
    state_->tree().CompactionEnded(info.job_id);
  }
  void OnExternalFileIngested(rocksdb::DB* db,
                              const rocksdb::ExternalFileIngestionInfo& info) noexcept override {
    if (state_->IsOther(db->GetName())) return;
    Guarded(state_.get(), state_->FamilyNamed(info.cf_name), [&] { state_->OnIngested(info); });
  }

  bool IsOf(const HookState* state) const { return state_.get() == state; }

 private:
  const std::shared_ptr<HookState> state_;
};

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
    return state_->tree().HashOf(family_, View(UserKey(static_cast<const char*>(handle))));
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

class WatchedMemtables : public rocksdb::MemTableRepFactory {
 public:
  WatchedMemtables(std::shared_ptr<rocksdb::MemTableRepFactory> memtables,
                   std::shared_ptr<HookState> state, uint64_t guess)
      : memtables_(std::move(memtables)), state_(std::move(state)), guess_(guess) {}

  rocksdb::MemTableRep* CreateMemTableRep(const rocksdb::MemTableRep::KeyComparator& comparator,
                                          rocksdb::Allocator* allocator,
                                          const rocksdb::SliceTransform* transform,
                                          rocksdb::Logger* logger) override {
    // RocksDB does not say here which family the memtable belongs to, so it is not watched.
    return memtables_->CreateMemTableRep(comparator, allocator, transform, logger);
  }
  rocksdb::MemTableRep* CreateMemTableRep(const rocksdb::MemTableRep::KeyComparator& comparator,
                                          rocksdb::Allocator* allocator,
                                          const rocksdb::SliceTransform* transform,
                                          rocksdb::Logger* logger, uint32_t family) override {
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
  const char* Name() const override { return memtables_->Name(); }
  std::string GetId() const override { return memtables_->GetId(); }
  bool IsInstanceOf(const std::string& name) const override {
    return memtables_->IsInstanceOf(name);
  }
  bool IsInsertConcurrentlySupported() const override {
    return memtables_->IsInsertConcurrentlySupported();
  }
  bool CanHandleDuplicatedKey() const override { return memtables_->CanHandleDuplicatedKey(); }

 private:
  const std::shared_ptr<rocksdb::MemTableRepFactory> memtables_;
  const std::shared_ptr<HookState> state_;
  const uint64_t guess_;  // how many keys one holds
};

}  // namespace

TreeFilter::FileNumber FileNumberOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return std::strtoull(path.c_str() + (slash == std::string::npos ? 0 : slash + 1), nullptr, 10);
}

void HookState::Collected(uint64_t collection, uint32_t family, std::vector<uint64_t> hashes) {
  const std::lock_guard lock(mutex_);
  ForgetCollectionsOfThread();
  collections_[collection] = {family, std::this_thread::get_id(), std::move(hashes)};
}

void HookState::ForgetCollectionsOfThread() {
  std::erase_if(collections_,
                [](const auto& at) { return at.second.collector == std::this_thread::get_id(); });
}

size_t HookState::CollectionCount() const {
  const std::lock_guard lock(mutex_);
  return collections_.size();
}

void HookState::OnCreated(const rocksdb::TableFileCreationInfo& info) {
  const auto& properties = info.table_properties.user_collected_properties;
  std::optional<Collection> collection;
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = properties.find(kCollection); at != properties.end()) {
      const auto found = collections_.find(std::strtoull(at->second.c_str(), nullptr, 10));
      if (found != collections_.end()) {
        collection = std::move(found->second);
        collections_.erase(found);
      }
    }
    // A file that failed after its keys were complete is announced without its properties.
    ForgetCollectionsOfThread();
  }
  if (!info.status.ok() || info.file_size == 0 || IsOther(info.db_name)) return;
  if (!collection.has_value()) {
    // A file that no collector of ours has seen: its keys leave the memtable, and are not counted.
    if (const auto family = FamilyOf(info))
      tree_->families().AddBypassReasons(*family, kUnreadable);
    return;
  }
  const bool is_compaction = info.reason == rocksdb::TableFileCreationReason::kCompaction;
  tree_->FileCreated({.number = FileNumberOf(info.file_path),
                      .family = collection->family,
                      .identity = IdentityOf(info.table_properties)},
                     std::move(collection->hashes),
                     is_compaction ? std::optional<int>(info.job_id) : std::nullopt);
}

void HookState::OnDeleted(const std::string& path) {
  tree_->FileDeleted(FileNumberOf(path));
  Wake();
}

void HookState::OnIngested(const rocksdb::ExternalFileIngestionInfo& info) {
  const auto family = FamilyNamed(info.cf_name);
  if (!family.has_value()) return;  // it passes through; its files are counted when it is shown
  std::optional<TreeFilter::Ticket> ticket;
  {
    const std::lock_guard lock(mutex_);
    const FileIdentity identity = IdentityOf(info.table_properties);
    auto [at, end] = expected_.equal_range({*family, info.external_file_path});
    while (at != end && at->second.identity != identity) ++at;
    if (at != end) {
      ticket = at->second.ticket;
      expected_.erase(at);
    }
  }
  if (ticket.has_value() && tree_->FileIngested(*ticket, FileNumberOf(info.internal_file_path))) {
    return;
  }
  AddUncounted(*family);  // behind our back
}

void HookState::Expect(const Expected& file) {
  const std::lock_guard lock(mutex_);
  expected_.emplace(std::pair(file.family, file.external_path), file);
}

void HookState::ExpectNoMore(uint32_t family, const std::string& external_path,
                             TreeFilter::Ticket ticket) {
  const std::lock_guard lock(mutex_);
  auto [at, end] = expected_.equal_range({family, external_path});
  while (at != end && at->second.ticket != ticket) ++at;
  if (at != end) expected_.erase(at);
}

void HookState::NameFamily(const std::string& name, uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = families_.emplace(name, id);
  if (is_new || at->second == id) return;
  tree_->families().AddBypassReasons(at->second, kDropped);
  at->second = id;
}

std::optional<uint32_t> HookState::FamilyNamed(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto at = families_.find(name);
  return at == families_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<uint32_t> HookState::FamilyOf(const rocksdb::TableFileCreationInfo& info) const {
  const uint64_t id = info.table_properties.column_family_id;
  return id < Collector::kNoFamily ? std::optional(static_cast<uint32_t>(id))
                                   : FamilyNamed(info.cf_name);
}

void HookState::AddUncounted(uint32_t family) {
  {
    const std::lock_guard lock(mutex_);
    tree_->families().AddBypassReasons(family, kIngestion);
    uncounted_.insert(family);
  }
  Wake();
}

void HookState::ArrivalBegan(uint32_t family) {
  const std::lock_guard lock(mutex_);
  tree_->families().AddBypassReasons(family, kIngestion);
  arriving_.insert(family);
}

void HookState::ArrivalEnded(uint32_t family) noexcept {
  {
    const std::lock_guard lock(mutex_);
    uncounted_.insert(arriving_.extract(arriving_.find(family)));
  }
  Wake();
}

std::set<uint32_t> HookState::TakeUncounted() {
  const std::lock_guard lock(mutex_);
  return std::exchange(uncounted_, {});
}

void HookState::GiveBackUncounted(std::set<uint32_t> families) noexcept {
  const std::lock_guard lock(mutex_);
  uncounted_.merge(families);
}

bool HookState::HasUncounted() const {
  const std::lock_guard lock(mutex_);
  return !uncounted_.empty();
}

void HookState::HaveCounted(const std::set<uint32_t>& families) {
  const std::lock_guard lock(mutex_);
  for (const uint32_t family : families) {
    if (!uncounted_.contains(family) && !arriving_.contains(family)) {
      tree_->families().ClearBypassReasons(family, kIngestion);
    }
  }
}

void HookState::ShowHandle(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle) {
  const std::lock_guard lock(handles_mutex_);
  db_ = db;
  handles_.emplace(handle->GetID(), handle);
  CheckMemtables(handle->GetID());  // one may have come while the database was open without us
}

void HookState::ForgetHandle(rocksdb::ColumnFamilyHandle* handle) {
  const std::lock_guard lock(handles_mutex_);
  std::erase_if(handles_, [&](const auto& at) { return at.second == handle; });
}

void HookState::ForgetHandles() {
  const std::lock_guard lock(handles_mutex_);
  db_ = nullptr;
  handles_.clear();
}

std::optional<uint64_t> HookState::ImmutableMemtables(uint32_t family) const {
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

void HookState::CheckMemtables(uint32_t family) {
  if (tree_->faults().ignore_bypass) return;
  // Memtables of ours can be flushed meanwhile, but no new one is made. One ends when RocksDB takes
  // it from its list, under its mutex; and the one that is written is ours, but not immutable.
  uint64_t ours = tree_->families().MemtableCount(family);
  std::optional<uint64_t> immutable;
  while (true) {
    immutable = ImmutableMemtables(family);
    const uint64_t now = tree_->families().MemtableCount(family);
    if (now == ours) break;
    ours = now;
  }
  if (ours == 0) return;  // they are not watched, which is a reason of its own
  if (!immutable.has_value() || *immutable + 1 > ours)
    tree_->families().AddBypassReasons(family, kBypass);
}

void HookState::OnMemtableSealed(const std::string& family_name) {
  const std::lock_guard lock(handles_mutex_);
  const auto family = FamilyNamed(family_name);
  if (db_ != nullptr && family.has_value()) CheckMemtables(*family);
}

void HookState::OnMemtableFlushed(const std::string& family_name) {
  const std::lock_guard lock(handles_mutex_);
  const auto family = FamilyNamed(family_name);
  if (db_ != nullptr && family.has_value() &&
      (tree_->families().BypassReasonsOf(*family) & kBypass) != 0 &&
      ImmutableMemtables(*family) == 0u) {
    tree_->families().ClearBypassReasons(*family, kBypass);
  }
}

void HookState::SetDatabase(const std::string& name) {
  const std::lock_guard lock(mutex_);
  database_ = name;
}

bool HookState::IsOther(const std::string& database) const {
  const std::lock_guard lock(mutex_);
  return !database_.empty() && database != database_;
}

void HookState::SetWake(std::function<void()> wake) {
  const std::lock_guard lock(waking_);
  wake_ = std::move(wake);
}

void HookState::Wake() {
  const std::lock_guard lock(waking_);
  if (wake_) wake_();
}

void AttachTo(const std::shared_ptr<HookState>& state, rocksdb::DBOptions* options) {
  // Options that were taken from the database itself.
  for (const auto& listener : options->listeners) {
    if (std::string_view(listener->Name()) == kCollectorName &&
        static_cast<const Listener&>(*listener).IsOf(state.get())) {
      return;
    }
  }
  options->listeners.push_back(std::make_shared<Listener>(state));
}

void AttachTo(const std::shared_ptr<HookState>& state, rocksdb::ColumnFamilyOptions* options) {
  for (const auto& factory : options->table_properties_collector_factories) {
    if (std::string_view(factory->Name()) == kCollectorName &&
        static_cast<const Collectors&>(*factory).IsOf(state.get())) {
      return;
    }
  }
  options->table_properties_collector_factories.push_back(std::make_shared<Collectors>(state));
  // With other memtables the handles are not keys that could be read.
  const auto& memtables = options->memtable_factory;
  if (memtables != nullptr &&
      std::string_view(memtables->Name()) == rocksdb::SkipListFactory::kClassName()) {
    const uint64_t guess = std::min(options->write_buffer_size / kBytesOfKey, kMostGuessed);
    options->memtable_factory = std::make_shared<WatchedMemtables>(memtables, state, guess);
  }
}

}  // namespace tamis::lsm
