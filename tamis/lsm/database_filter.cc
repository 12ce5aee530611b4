#include "tamis/lsm/database_filter.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <new>
#include <utility>

#include "tamis/lsm/faults.h"
#include "tamis/lsm/hooks.h"
#include "tamis/lsm/rocksdb_version.h"
#include "tamis/lsm/sst_keys.h"

namespace tamis::lsm {
namespace {

// The deletions of one compaction's inputs come one by one: to reconcile them together spares the
// filter the keys that are only counted twice meanwhile. So it is waited as long as some come, and
// then until they are complete.
constexpr std::chrono::milliseconds kTogether{20};
// Interval between attempts after memory ran out.
constexpr std::chrono::milliseconds kUntilMemory{500};

}  // namespace

DatabaseFilter::DatabaseFilter(const Options& options, std::shared_ptr<HookState> hooks)
    : options_(options), hooks_(std::move(hooks)), tree_(hooks_->tree()) {}

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

bool DatabaseFilter::HasWork() const {
  return !hooks_->uncounted().empty() || tree_.HasUnreconciled();
}

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
  if (db_ != nullptr) {
    rocksdb::ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(handle, &metadata);
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
  if (db_ != nullptr) hooks_->bypassed().Show(db_->GetRootDB(), handle);
#endif
  tree().families().ClearBypassReasons(id, kNotShown);
}

void DatabaseFilter::Start(rocksdb::DB* db,
                           const std::vector<rocksdb::ColumnFamilyHandle*>& handles) {
  try {
    Watch(db, handles);
    thread_ = std::thread([this] { Run(); });
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
  for (rocksdb::ColumnFamilyHandle* handle : handles) Show(handle);
  hooks_->SetDatabase(db->GetName());
  db_ = db;
#if TAMIS_ROCKSDB_BYPASSES_MEMTABLES
  for (rocksdb::ColumnFamilyHandle* handle : handles)
    hooks_->bypassed().Show(db->GetRootDB(), handle);
#endif
  hooks_->SetWake([this] {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    wake_.notify_one();
  });
}

void DatabaseFilter::Unwatch() {
  hooks_->SetWake(nullptr);
  hooks_->bypassed().ForgetAll();
}

void DatabaseFilter::Stop() {
  if (!thread_.joinable()) return;
  Unwatch();
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wake_.notify_all();
  thread_.join();
  idle_.notify_all();
}

void DatabaseFilter::Run() {
  bool is_done = CountUnknown();
  std::unique_lock lock(mutex_);
  while (!is_done && !stops_) {
    wake_.wait_for(lock, kUntilMemory, [this] { return stops_; });
    lock.unlock();
    is_done = CountUnknown();
    lock.lock();
  }
  counted_ = true;
  idle_.notify_all();
  while (!stops_) {
    if (!woken_ && !HasWork()) {
      idle_.notify_all();
      wake_.wait(lock, [this] { return stops_ || woken_; });
    }
    for (int i = 0; i < 10 && std::exchange(woken_, false) && !stops_; ++i) {
      wake_.wait_for(lock, kTogether, [this] { return stops_; });
    }
    // Some may be held by an iterator for long, so this has an end.
    for (int i = 0; i < 50 && tree().IsPartlyDeleted() && !stops_; ++i) {
      wake_.wait_for(lock, kTogether, [this] { return stops_; });
    }
    if (stops_) break;
    woken_ = false;
    busy_ = true;
    lock.unlock();
    is_done = CountAndReconcile();
    lock.lock();
    if (!is_done) {
      wake_.wait_for(lock, kUntilMemory, [this] { return stops_; });
      woken_ = true;
    }
    busy_ = false;
    // A reconciliation that was not possible now is tried again with the next event.
    idle_.notify_all();
    if (!woken_ && HasWork() && !stops_) {
      wake_.wait_for(lock, 10 * kTogether, [this] { return stops_ || woken_; });
    }
  }
}

bool DatabaseFilter::CountAndReconcile() noexcept {
  try {
    if (!hooks_->uncounted().empty() && !CountUnknown()) return false;
    const auto unknown = tree().Reconcile([this] {
      std::vector<TreeFilter::FileNumber> numbers;
      for (const LiveFile& live : LiveFiles()) {
        if (FamilyOf(live).has_value()) numbers.push_back(live.number);
      }
      return numbers;
    });
    return unknown.empty() || CountUnknown();
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::optional<uint32_t> DatabaseFilter::FamilyOf(const LiveFile& live) const {
  const auto family = hooks_->FamilyNamed(live.family);
  if (!family.has_value() || (tree_.families().BypassReasonsOf(*family) & kForGood) != 0)
    return std::nullopt;
  return family;
}

std::vector<DatabaseFilter::LiveFile> DatabaseFilter::LiveFiles() const {
  std::vector<LiveFile> files;
  if (options_.faults != nullptr && options_.faults->forget_dropped) {
    std::vector<rocksdb::LiveFileMetaData> some;
    db_->GetLiveFilesMetaData(&some);
    for (const auto& file : some) {
      files.push_back({file.column_family_name, file.file_number, file.db_path + file.name});
    }
    return files;
  }
  // Unlike GetLiveFilesMetaData, with those of dropped families. StackableDB does not forward it.
  std::vector<rocksdb::ColumnFamilyMetaData> families;
  db_->GetRootDB()->GetAllColumnFamilyMetaData(&families);
  for (const rocksdb::ColumnFamilyMetaData& family : families) {
    for (const rocksdb::LevelMetaData& level : family.levels) {
      for (const rocksdb::SstFileMetaData& file : level.files) {
        files.push_back({family.name, file.file_number, file.db_path + file.name});
      }
    }
  }
  return files;
}

bool DatabaseFilter::CountUnknown() noexcept {
  std::set<uint32_t> uncounted = hooks_->uncounted().Take();
  try {
    CountLiveFiles(uncounted);
    return true;
  } catch (const std::bad_alloc&) {
    hooks_->uncounted().GiveBack(std::move(uncounted));
    return false;
  }
}

void DatabaseFilter::CountLiveFiles(const std::set<uint32_t>& uncounted) {
  TreeFilter& tree = this->tree();
  tree.BeginCounting();
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (stops_) return;  // and nothing is certain
    }
    std::map<TreeFilter::FileNumber, std::string> paths;
    std::vector<TreeFilter::File> files;
    for (const LiveFile& live : LiveFiles()) {
      const auto family = FamilyOf(live);
      if (!family.has_value()) continue;
      paths[live.number] = live.path;
      files.push_back({.number = live.number, .family = *family});
    }
    files = tree.Uncovered(std::move(files));
    if (files.empty()) break;
    std::map<TreeFilter::FileNumber, uint64_t> entries;
    for (TreeFilter::File& file : files) {
      if (const auto read = ReadSstHead(db_->GetEnv(), paths[file.number]); read.ok()) {
        file.identity = read->identity;
        entries[file.number] = read->entries;
      }
    }
    const std::vector<TreeFilter::File> to_read = tree.CountFromKeyFiles(files);
    uint64_t coming = 0;
    for (const TreeFilter::File& file : to_read) coming += entries[file.number];
    tree.MakeRoom(coming);
    for (const TreeFilter::File& file : to_read) {
      {
        const std::lock_guard lock(mutex_);
        if (stops_) return;
      }
      if ((tree.families().BypassReasonsOf(file.family) & kForGood) != 0) continue;
      std::vector<uint64_t> hashes;
      const auto read = ReadSst(db_->GetEnv(), paths[file.number], [&](std::string_view key) {
        const uint64_t hash = tree.HashOf(file.family, key);
        if (hashes.empty() || hashes.back() != hash) hashes.push_back(hash);
      });
      if (read.ok()) {
        tree.CountFromHashes(file, std::move(hashes));
        continue;
      }
      // Perhaps it has been deleted meanwhile.
      const auto live = LiveFiles();
      if (std::ranges::any_of(live,
                              [&](const LiveFile& one) { return one.number == file.number; })) {
        tree.families().AddBypassReasons(file.family, kUnreadable);
      }
    }
  }
  tree.EndCounting();
  hooks_->uncounted().HaveCounted(uncounted);
}

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

void DatabaseFilter::WaitUntilCounted() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return counted_ || stops_; });
}

void DatabaseFilter::WaitUntilReconciled() {
  std::unique_lock lock(mutex_);
  woken_ = true;
  wake_.notify_one();
  idle_.wait(lock, [this] { return stops_ || (counted_ && !woken_ && !busy_ && !HasWork()); });
}

DatabaseFilter::Ingestion::Ingestion(DatabaseFilter* filter, uint32_t family,
                                     const std::vector<std::string>& files)
    : filter_(filter), family_(family) {
  try {
    for (const std::string& path : files) Count(path);
  } catch (const std::bad_alloc&) {
    End();
    throw;
  }
}

DatabaseFilter::Ingestion::~Ingestion() { End(); }

void DatabaseFilter::Ingestion::Count(const std::string& path) {
  TreeFilter& tree = filter_->tree();
  std::vector<uint64_t> hashes;
  const auto read = ReadSst(filter_->db_->GetEnv(), path, [&](std::string_view key) {
    hashes.push_back(tree.HashOf(family_, key));
  });
  // RocksDB says better what is wrong with it; should it take it, it is counted afterwards.
  if (!read.ok()) {
    if (!is_partial_) filter_->hooks_->uncounted().ArrivalBegan(family_);
    is_partial_ = true;
    return;
  }
  const TreeFilter::Ticket ticket =
      tree.IngestionBegan({.family = family_, .identity = *read}, std::move(hashes));
  try {
    tickets_[ticket] = path;
  } catch (const std::bad_alloc&) {
    tree.IngestionEnded(ticket);
    throw;
  }
  filter_->hooks_->Expect(
      {.family = family_, .external_path = path, .identity = *read, .ticket = ticket});
}

void DatabaseFilter::Ingestion::End() noexcept {
  for (const auto& [ticket, path] : tickets_) {
    filter_->hooks_->ExpectNoMore(family_, path, ticket);
    filter_->tree().IngestionEnded(ticket);
  }
  if (is_partial_) filter_->hooks_->ArrivalEnded(family_);
}

}  // namespace tamis::lsm
