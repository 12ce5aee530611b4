#include "tamis/lsm/file_counter.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <new>
#include <string_view>
#include <utility>

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

void FileCounter::Start(rocksdb::DB* db) {
  db_ = db;
  thread_ = std::thread([this] { Run(); });
}

void FileCounter::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wake_.notify_all();
  thread_.join();
  idle_.notify_all();
}

void FileCounter::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  wake_.notify_one();
}

bool FileCounter::Stops() {
  const std::lock_guard lock(mutex_);
  return stops_;
}

bool FileCounter::HasWork() const { return !hooks_.uncounted().empty() || tree_.HasUnreconciled(); }

void FileCounter::Run() {
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
    for (int i = 0; i < 50 && tree_.IsPartlyDeleted() && !stops_; ++i) {
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

bool FileCounter::CountAndReconcile() noexcept {
  try {
    if (!hooks_.uncounted().empty() && !CountUnknown()) return false;
    const auto unknown = tree_.Reconcile([this] {
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

std::optional<uint32_t> FileCounter::FamilyOf(const LiveFile& live) const {
  const auto family = hooks_.FamilyNamed(live.family);
  if (!family.has_value() || (tree_.families().BypassReasonsOf(*family) & kForGood) != 0)
    return std::nullopt;
  return family;
}

std::vector<FileCounter::LiveFile> FileCounter::LiveFiles() const {
  std::vector<LiveFile> files;
  if (forgets_dropped_) {
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

bool FileCounter::CountUnknown() noexcept {
  std::set<uint32_t> uncounted = hooks_.uncounted().Take();
  try {
    CountLiveFiles(uncounted);
    return true;
  } catch (const std::bad_alloc&) {
    hooks_.uncounted().GiveBack(std::move(uncounted));
    return false;
  }
}

void FileCounter::CountLiveFiles(const std::set<uint32_t>& uncounted) {
  tree_.BeginCounting();
  while (true) {
    if (Stops()) return;  // and nothing is certain
    std::map<TreeFilter::FileNumber, std::string> paths;
    std::vector<TreeFilter::File> files;
    for (const LiveFile& live : LiveFiles()) {
      const auto family = FamilyOf(live);
      if (!family.has_value()) continue;
      paths[live.number] = live.path;
      files.push_back({.number = live.number, .family = *family});
    }
    files = tree_.Uncovered(std::move(files));
    if (files.empty()) break;
    std::map<TreeFilter::FileNumber, uint64_t> entries;
    for (TreeFilter::File& file : files) {
      if (const auto read = ReadSstHead(db_->GetEnv(), paths[file.number]); read.ok()) {
        file.identity = read->identity;
        entries[file.number] = read->entries;
      }
    }
    const std::vector<TreeFilter::File> to_read = tree_.CountFromKeyFiles(files);
    uint64_t coming = 0;
    for (const TreeFilter::File& file : to_read) coming += entries[file.number];
    tree_.MakeRoom(coming);
    for (const TreeFilter::File& file : to_read) {
      if (Stops()) return;
      if ((tree_.families().BypassReasonsOf(file.family) & kForGood) != 0) continue;
      std::vector<uint64_t> hashes;
      const auto read = ReadSst(db_->GetEnv(), paths[file.number], [&](std::string_view key) {
        const uint64_t hash = tree_.HashOf(file.family, key);
        if (hashes.empty() || hashes.back() != hash) hashes.push_back(hash);
      });
      if (read.ok()) {
        tree_.CountFromHashes(file, std::move(hashes));
        continue;
      }
      // Perhaps it has been deleted meanwhile.
      const auto live = LiveFiles();
      if (std::ranges::any_of(live,
                              [&](const LiveFile& one) { return one.number == file.number; })) {
        tree_.families().AddBypassReasons(file.family, kUnreadable);
      }
    }
  }
  tree_.EndCounting();
  hooks_.uncounted().HaveCounted(uncounted);
}

void FileCounter::WaitUntilCounted() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return counted_ || stops_; });
}

void FileCounter::WaitUntilReconciled() {
  std::unique_lock lock(mutex_);
  woken_ = true;
  wake_.notify_one();
  idle_.wait(lock, [this] { return stops_ || (counted_ && !woken_ && !busy_ && !HasWork()); });
}

}  // namespace tamis::lsm
