#include "tamis/lsm/hook_state.h"

#include <rocksdb/table_properties.h>

#include <cstdlib>
#include <utility>

#include "tamis/lsm/sst_keys.h"

namespace tamis::lsm {

TreeFilter::FileNumber FileNumberOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return std::strtoull(path.c_str() + (slash == std::string::npos ? 0 : slash + 1), nullptr, 10);
}

void HookState::OnCreated(const rocksdb::TableFileCreationInfo& info) {
  const auto& properties = info.table_properties.user_collected_properties;
  std::optional<uint64_t> number;
  if (const auto at = properties.find(kCollection); at != properties.end()) {
    number = std::strtoull(at->second.c_str(), nullptr, 10);
  }
  auto collection = collected_.Announced(number);
  if (!info.status.ok() || info.file_size == 0) return;
  const auto owner = collection.has_value() ? std::optional(collection->family) : FamilyOf(info);
  if (!Counts(info, owner)) return;
  if (!collection.has_value()) {
    // A file that no collector of ours has seen: its keys leave the memtable, and are not counted.
    if (owner.has_value()) tree_->families().AddBypassReasons(*owner, kUnreadable);
    return;
  }
  const bool is_compaction = info.reason == rocksdb::TableFileCreationReason::kCompaction;
  tree_->FileCreated({.number = FileNumberOf(info.file_path),
                      .family = collection->family,
                      .identity = IdentityOf(info.table_properties)},
                     std::move(collection->hashes),
                     is_compaction ? std::optional<int>(info.job_id) : std::nullopt);
}

bool HookState::Counts(const rocksdb::TableFileCreationInfo& info, std::optional<uint32_t> family) {
  using Reason = rocksdb::TableFileCreationReason;
  const std::lock_guard lock(mutex_);
  if (!database_.empty()) return info.db_name == database_;
  // The outputs of a compaction may also be found later: its inputs stay counted until all live
  // files are known. The files of a recovery are installed before the opening ends.
  if (info.reason != Reason::kCompaction && info.reason != Reason::kRecovery &&
      family.has_value()) {
    unfinished_.insert_or_assign({info.db_name, FileNumberOf(info.file_path)},
                                 Unfinished{.family = *family});
  }
  return false;
}

void HookState::Finish(const std::string& database, TreeFilter::FileNumber number) {
  std::optional<uint32_t> family;
  {
    const std::lock_guard lock(mutex_);
    if (unfinished_.empty()) return;
    const auto at = unfinished_.find({database, number});
    if (at == unfinished_.end()) return;
    if (at->second.passes_through) family = at->second.family;
    unfinished_.erase(at);
  }
  if (family.has_value()) ArrivalEnded(*family);
}

void HookState::OnDeleted(const std::string& database, const std::string& path) {
  Finish(database, FileNumberOf(path));
  if (!IsOurs(database)) return;
  tree_->FileDeleted(FileNumberOf(path));
  Wake();
}

void HookState::OnFlushed(const std::string& database, const std::string& path) {
  Finish(database, FileNumberOf(path));
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
  return id < kNoFamily ? std::optional(static_cast<uint32_t>(id)) : FamilyNamed(info.cf_name);
}

void HookState::AddUncounted(uint32_t family) {
  uncounted_.Add(family);
  Wake();
}

void HookState::ArrivalEnded(uint32_t family) noexcept {
  uncounted_.ArrivalEnded(family);
  Wake();
}

bool HookState::SetDatabase(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (!database_.empty() && name != database_) return false;
  database_ = name;
  std::erase_if(unfinished_, [&](const auto& at) { return at.first.first != name; });
  for (auto& [file, unfinished] : unfinished_) {
    if (unfinished.passes_through) continue;
    uncounted_.ArrivalBegan(unfinished.family);
    unfinished.passes_through = true;
  }
  return true;
}

bool HookState::IsOurs(const std::string& database) const {
  const std::lock_guard lock(mutex_);
  return !database_.empty() && database == database_;
}

void HookState::SetWake(std::function<void()> wake) {
  const std::lock_guard lock(waking_);
  wake_ = std::move(wake);
}

void HookState::Wake() {
  const std::lock_guard lock(waking_);
  if (wake_) wake_();
}

}  // namespace tamis::lsm
