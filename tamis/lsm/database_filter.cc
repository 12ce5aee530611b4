#include "tamis/lsm/database_filter.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "tamis/base/random.h"
#include "tamis/lsm/key_file.h"
#include "tamis/lsm/sst_keys.h"

namespace tamis::lsm {
namespace {

// The deletions of one compaction's inputs come one by one: to settle them together spares the
// filter the keys that are only counted twice meanwhile.
constexpr std::chrono::milliseconds kTogether{20};

// That of the key files there, so that they can be used, or a new one, so that nobody can prepare
// keys that collide.
uint64_t SeedFor(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() != ".keys") continue;
    if (const auto file = KeyFile::Open(entry.path().string()); file.ok()) {
      return file->header().seed;
    }
  }
  return SeedFromSystem();
}

}  // namespace

Result<std::shared_ptr<DatabaseFilter>> DatabaseFilter::Create(const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(auto tree, TreeFilter::Create({.directory = options.directory,
                                                        .fpr = options.fpr,
                                                        .seed = SeedFor(options.directory),
                                                        .faults = options.faults}));
  return std::shared_ptr<DatabaseFilter>(
      new DatabaseFilter(options, std::make_shared<HookState>(std::move(tree))));
}

DatabaseFilter::~DatabaseFilter() { Stop(); }

void DatabaseFilter::Attach(rocksdb::Options* options) const {
  AttachTo(hooks_, static_cast<rocksdb::DBOptions*>(options));
  AttachTo(hooks_, static_cast<rocksdb::ColumnFamilyOptions*>(options));
}

void DatabaseFilter::Attach(rocksdb::DBOptions* options,
                            std::vector<rocksdb::ColumnFamilyDescriptor>* families) const {
  AttachTo(hooks_, options);
  for (rocksdb::ColumnFamilyDescriptor& family : *families) AttachTo(hooks_, &family.options);
}

void DatabaseFilter::Attach(rocksdb::ColumnFamilyOptions* options) const {
  AttachTo(hooks_, options);
}

void DatabaseFilter::Show(rocksdb::ColumnFamilyHandle* handle) {
  const uint32_t id = handle->GetID();
  hooks_->NameFamily(handle->GetName(), id);
  const rocksdb::Comparator* const comparator = handle->GetComparator();
  if (comparator->timestamp_size() > 0) tree().AddDoubts(id, kTimestamps);
  if (comparator != rocksdb::BytewiseComparator()) tree().AddDoubts(id, kComparator);
  tree().ClearDoubts(id, kNotShown);
}

void DatabaseFilter::Start(rocksdb::DB* db,
                           const std::vector<rocksdb::ColumnFamilyHandle*>& handles) {
  db_ = db;
  // All others say that they are none.
  if (!db->TryCatchUpWithPrimary().IsNotSupported()) {
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      tree().AddDoubts(handle->GetID(), kSecondary);
    }
  }
  for (rocksdb::ColumnFamilyHandle* handle : handles) Show(handle);
  hooks_->SetWake([this] {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    wake_.notify_one();
  });
  thread_ = std::thread([this] { Run(); });
}

void DatabaseFilter::Stop() {
  if (!thread_.joinable()) return;
  hooks_->SetWake(nullptr);
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wake_.notify_all();
  thread_.join();
  idle_.notify_all();
}

void DatabaseFilter::Run() {
  CountUnknown();
  std::unique_lock lock(mutex_);
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
    if (stops_) break;
    busy_ = true;
    lock.unlock();
    if (hooks_->HasUncounted()) CountUnknown();
    const auto unknown = tree().Settle([this] {
      std::vector<TreeFilter::FileNumber> numbers;
      for (const auto& file : LiveFiles()) numbers.push_back(file.file_number);
      return numbers;
    });
    if (!unknown.empty()) CountUnknown();
    lock.lock();
    busy_ = false;
    // What could not be settled now is tried again with the next event.
    idle_.notify_all();
    if (!woken_ && HasWork() && !stops_) {
      wake_.wait_for(lock, 10 * kTogether, [this] { return stops_ || woken_; });
    }
  }
}

std::vector<rocksdb::LiveFileMetaData> DatabaseFilter::LiveFiles() const {
  std::vector<rocksdb::LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  return files;
}

void DatabaseFilter::CountUnknown() {
  TreeFilter& tree = this->tree();
  const bool is_first = tree.IsCounting();
  const std::vector<uint32_t> uncounted = hooks_->TakeUncounted();
  tree.BeginCounting();
  std::set<TreeFilter::FileNumber> failed;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (stops_) return;  // and nothing is certain
    }
    std::map<TreeFilter::FileNumber, std::string> paths;
    std::vector<TreeFilter::File> files;
    for (const rocksdb::LiveFileMetaData& live : LiveFiles()) {
      const TreeFilter::FileNumber number = live.file_number;
      if (failed.contains(number) || tree.Knows(number)) continue;
      const auto family = hooks_->FamilyNamed(live.column_family_name);
      if (!family.has_value()) {
        failed.insert(number);  // a family that was not shown, and passes through
        continue;
      }
      paths[number] = live.db_path + live.name;
      files.push_back({.number = number, .family = *family});
    }
    if (files.empty()) break;
    for (TreeFilter::File& file : files) {
      if (const auto read = ReadSstIdentity(db_->GetEnv(), paths[file.number]); read.ok()) {
        file.identity = *read;
      }
    }
    for (const TreeFilter::File& file : tree.CountFromKeyFiles(files)) {
      {
        const std::lock_guard lock(mutex_);
        if (stops_) return;
      }
      std::vector<uint64_t> hashes;
      const auto read = ReadSst(db_->GetEnv(), paths[file.number], [&](std::string_view key) {
        const uint64_t hash = tree.HashOf(file.family, key);
        if (hashes.empty() || hashes.back() != hash) hashes.push_back(hash);
      });
      uint64_t snapshots = 0;
      db_->GetIntProperty(rocksdb::DB::Properties::kNumSnapshots, &snapshots);
      if (!read.ok()) {
        // Perhaps it has been deleted meanwhile; else it is found again, and then in vain.
        const auto live = LiveFiles();
        if (std::ranges::none_of(live,
                                 [&](const auto& one) { return one.file_number == file.number; })) {
          continue;
        }
      }
      // A snapshot may see what lies under a tombstone in a file that came without an event.
      if (!read.ok() || (!is_first && read->deletions > 0 && snapshots > 0)) {
        tree.AddDoubts(file.family, kUnreadable);
        failed.insert(file.number);
        continue;
      }
      tree.CountFromHashes(file, std::move(hashes));
    }
  }
  tree.EndCounting();
  for (const uint32_t family : uncounted) {
    const std::vector<uint32_t> again = hooks_->Uncounted();
    if (std::ranges::find(again, family) == again.end()) tree.ClearDoubts(family, kIngestion);
  }
}

void DatabaseFilter::WaitUntilCounted() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return counted_ || stops_; });
}

void DatabaseFilter::WaitUntilSettled() {
  std::unique_lock lock(mutex_);
  woken_ = true;
  wake_.notify_one();
  idle_.wait(lock, [this] { return stops_ || (counted_ && !woken_ && !busy_ && !HasWork()); });
}

DatabaseFilter::Ingestion::Ingestion(DatabaseFilter* filter, uint32_t family,
                                     const std::vector<std::string>& files)
    : filter_(filter) {
  TreeFilter& tree = filter->tree();
  for (const std::string& path : files) {
    std::vector<uint64_t> hashes;
    const auto read = ReadSst(filter->db_->GetEnv(), path, [&](std::string_view key) {
      hashes.push_back(tree.HashOf(family, key));
    });
    // RocksDB says better what is wrong with it; should it take it, it is counted afterwards.
    if (!read.ok()) continue;
    const TreeFilter::Ticket ticket =
        tree.IngestionBegan({.family = family, .identity = read->identity}, std::move(hashes));
    filter->hooks_->Expect(path, ticket);
    tickets_.emplace_back(path, ticket);
  }
}

DatabaseFilter::Ingestion::~Ingestion() {
  for (const auto& [path, ticket] : tickets_) {
    filter_->hooks_->ExpectNoMore(path);
    filter_->tree().IngestionEnded(ticket);
  }
}

}  // namespace tamis::lsm
