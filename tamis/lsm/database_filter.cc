#include "tamis/lsm/database_filter.h"

#include <utility>

#include "tamis/lsm/faults.h"
#include "tamis/lsm/file_counter.h"
#include "tamis/lsm/hooks.h"
#include "tamis/lsm/rocksdb_version.h"

namespace tamis::lsm {

DatabaseFilter::DatabaseFilter(const Options& options, std::shared_ptr<HookState> hooks)
    : options_(options),
      hooks_(std::move(hooks)),
      tree_(hooks_->tree()),
      counter_(std::make_unique<FileCounter>(
          hooks_.get(), options.faults != nullptr && options.faults->forget_dropped)) {}

Result<std::shared_ptr<DatabaseFilter>> DatabaseFilter::Create(const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(
      auto tree,
      TreeFilter::Create({.directory = options.directory,
                          .fpr = options.fpr,
                          .seed = std::nullopt,
                          .writes_files = options.writes_files,
                          .faults = options.faults != nullptr ? *options.faults : Faults{},
                          .files = options.env->GetFileSystem()}));
  return std::shared_ptr<DatabaseFilter>(
      new DatabaseFilter(options, std::make_shared<HookState>(std::move(tree))));
}

DatabaseFilter::~DatabaseFilter() { Stop(); }

bool DatabaseFilter::MayContain(rocksdb::ColumnFamilyHandle* family,
                                const rocksdb::Slice& key) const {
  return tree_.MayContain(family->GetID(), {key.data(), key.size()});
}

void DatabaseFilter::MayContain(rocksdb::ColumnFamilyHandle* family,
                                std::span<const std::string_view> keys,
                                std::span<bool> answers) const {
  tree_.MayContain(family->GetID(), keys, answers);
}

std::string DatabaseFilter::BypassReasonsOf(rocksdb::ColumnFamilyHandle* family) const {
  return BypassReasonNames(tree_.families().BypassReasonsOf(family->GetID()));
}

void DatabaseFilter::CountLater(uint32_t family) { hooks_->AddUncounted(family); }

void DatabaseFilter::AttachTo(rocksdb::DBOptions* options) const {
  if (options->env->GetFileSystem() != options_.env->GetFileSystem()) tree_.AbandonKeyFiles();
  lsm::AttachTo(hooks_, options);
}

void DatabaseFilter::Attach(rocksdb::Options* options) const {
  AttachTo(static_cast<rocksdb::DBOptions*>(options));
  lsm::AttachTo(hooks_, static_cast<rocksdb::ColumnFamilyOptions*>(options));
}

void DatabaseFilter::Attach(rocksdb::DBOptions* options,
                            std::vector<rocksdb::ColumnFamilyDescriptor>* families) const {
  AttachTo(options);
  for (rocksdb::ColumnFamilyDescriptor& family : *families) Attach(&family.options);
}

void DatabaseFilter::Attach(rocksdb::ColumnFamilyOptions* options) const {
  lsm::AttachTo(hooks_, options);
}

void DatabaseFilter::Show(rocksdb::ColumnFamilyHandle* handle) {
  const uint32_t id = handle->GetID();
  hooks_->NameFamily(handle->GetName(), id);
  // Files that it has already, or that were taken for those of an earlier family of that name.
  rocksdb::DB* const db = db_;
  if (db != nullptr) {
    rocksdb::ColumnFamilyMetaData metadata;
    db->GetColumnFamilyMetaData(handle, &metadata);
    std::vector<TreeFilter::File> files;
    for (const rocksdb::LevelMetaData& level : metadata.levels) {
      for (const rocksdb::SstFileMetaData& file : level.files) {
        files.push_back({.number = file.file_number, .family = id});
      }
    }
    if (!tree().Uncovered(std::move(files)).empty()) hooks_->AddUncounted(id);
  }
  const rocksdb::Comparator* const comparator = handle->GetComparator();
  if (comparator->timestamp_size() > 0) tree().families().AddBypassReasons(id, kTimestamps);
  if (comparator != rocksdb::BytewiseComparator())
    tree().families().AddBypassReasons(id, kComparator);
#if TAMIS_ROCKSDB_BYPASSES_MEMTABLES
  if (db != nullptr) hooks_->bypassed().Show(db->GetRootDB(), handle);
#endif
  // The reason kMemtables alone would not do: a family of another database may have the same id.
  rocksdb::ColumnFamilyDescriptor described;
  const bool is_described = handle->GetDescriptor(&described).ok();
  if (!is_described || !HasWatchedMemtables(hooks_.get(), described.options))
    tree().families().AddBypassReasons(id, kOtherMemtables);
  if (!is_described || !HasCollector(hooks_.get(), described.options))
    tree().families().AddBypassReasons(id, kNoCollector);
  tree().families().ClearBypassReasons(id, kNotShown);
}

void DatabaseFilter::Start(rocksdb::DB* db,
                           const std::vector<rocksdb::ColumnFamilyHandle*>& handles) {
  if (was_started_) {
    throw CannotStart(
        "cannot start the filter: it was started before, and a filter is for one opening; create "
        "another one");
  }
  try {
    Watch(db, handles);
    counter_->Start(db);
    was_started_ = true;
  } catch (...) {
    Unwatch();
    throw;
  }
}

void DatabaseFilter::Watch(rocksdb::DB* db,
                           const std::vector<rocksdb::ColumnFamilyHandle*>& handles) {
  // All others say that they are none.
  if (!db->TryCatchUpWithPrimary().IsNotSupported()) {
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      tree().families().AddBypassReasons(handle->GetID(), kSecondary);
    }
  }
  const rocksdb::DBOptions options = db->GetDBOptions();
  if (!HasListener(hooks_.get(), options)) tree().families().AddBypassReasonsOfAll(kNoListener);
  if (options.env->GetFileSystem() != options_.env->GetFileSystem()) tree_.AbandonKeyFiles();
  for (rocksdb::ColumnFamilyHandle* handle : handles) Show(handle);
  if (!hooks_->SetDatabase(db->GetName())) {
    throw CannotStart(
        "cannot start the filter: it was started with another database; create one for each "
        "database");
  }
  env_ = db->GetEnv();
  db_ = db;
#if TAMIS_ROCKSDB_BYPASSES_MEMTABLES
  for (rocksdb::ColumnFamilyHandle* handle : handles)
    hooks_->bypassed().Show(db->GetRootDB(), handle);
#endif
  hooks_->SetWake([this] { counter_->Wake(); });
}

void DatabaseFilter::Unwatch() {
  hooks_->SetWake(nullptr);
  hooks_->bypassed().ForgetAll();
  db_ = nullptr;
}

void DatabaseFilter::Stop() {
  if (!counter_->IsRunning()) return;
  // The filter does not see the keys that another opening of the database writes.
  tree().families().AddBypassReasonsOfAll(kStopped);
  Unwatch();
  counter_->Stop();
}

std::unique_ptr<Ingestion> DatabaseFilter::BeginIngestion(uint32_t family,
                                                          const std::vector<std::string>& files) {
  return std::make_unique<Ingestion>(hooks_.get(), env_, family, files);
}

void DatabaseFilter::WaitUntilCounted() { counter_->WaitUntilCounted(); }

void DatabaseFilter::WaitUntilReconciled() { counter_->WaitUntilReconciled(); }

std::map<std::string, uint64_t> DatabaseFilter::Metrics() const {
  const TreeFilter::Figures figures = tree().figures();
  return {{"asked", figures.asked},
          {"excluded", figures.excluded},
          {"false_passes", figures.false_passes},
          {"disturbed", figures.disturbed},
          {"unreconciled", figures.unreconciled},
          {"counting", tree().IsCounting() ? 1u : 0u},
          {"keys", figures.filter.keys},
          {"stale", figures.stale},
          {"unwritten", figures.unwritten},
          {"files", figures.files},
          {"size_bytes", figures.filter.size_bytes},
          {"memtable_bytes", figures.memtable_bytes}};
}

}  // namespace tamis::lsm
