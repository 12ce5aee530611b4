#include "tamis/lsm/column_families.h"

#include <string_view>
#include <utility>

namespace tamis::lsm {

std::string BypassReasonNames(BypassReasons reasons) {
  static constexpr std::pair<BypassReasons, std::string_view> kNames[] = {
      {kCounting, "its files are being counted"},
      {kNotShown, "its handle was not shown"},
      {kMemtables | kOtherMemtables, "its memtables are not watched"},
      {kComparator, "its comparator is not bytewise"},
      {kTimestamps, "its keys carry timestamps"},
      {kIngestion, "files are coming in"},
      {kUnreadable, "a file of it cannot be counted"},
      {kSecondary, "another process writes it"},
      {kDropped, "it was dropped, and its name is another one's"},
      {kBypass, "a batch bypassed its memtables"},
      {kNoCollector,
       "the keys of its files are not collected: its options lack the filter's collector"},
      {kNoListener, "the filter hears no events: the database's options lack its listener"},
      {kStopped, "the filter was stopped"},
      {kNoMemory, "memory ran out when keys of it were to be noted"},
  };
  std::string names;
  for (const auto& [reason, name] : kNames) {
    if ((reasons & reason) == 0) continue;
    if (!names.empty()) names += ", ";
    names += name;
  }
  return names;
}

ColumnFamilies::ColumnFamilies(GracePeriod* grace) : grace_(grace) {
  for (std::atomic<BypassReasons>& reasons : bypass_reasons_) reasons = kNotShown | kMemtables;
}

ColumnFamilies::~ColumnFamilies() {
  for (std::atomic<MemtableFilters*>& family : families_) delete family.load();
}

MemtableFilters* ColumnFamilies::Make(uint32_t id) {
  if (id >= kMaxFamilies) return nullptr;
  const std::lock_guard lock(mutex_);
  MemtableFilters* family = families_[id].load(std::memory_order_relaxed);
  if (family == nullptr) {
    family = new MemtableFilters(grace_);
    families_[id].store(family, std::memory_order_release);
  }
  return family;
}

void ColumnFamilies::AddBypassReasons(uint32_t family, BypassReasons reasons) noexcept {
  if (family >= kMaxFamilies) return;
  // Waits even if the family had these reasons: the thread that added them may be waiting still.
  bypass_reasons_[family].fetch_or(reasons);
  // If the system refuses the wait, a reader that asked before may still be at it, but very
  // unlikely.
  (void)grace_->Wait();
}

void ColumnFamilies::AddBypassReasonsOfAll(BypassReasons reasons) noexcept {
  reasons_of_all_.fetch_or(reasons);
  (void)grace_->Wait();
}

void ColumnFamilies::ClearBypassReasons(uint32_t family, BypassReasons reasons) noexcept {
  if (family < kMaxFamilies) bypass_reasons_[family].fetch_and(~reasons);
}

BypassReasons ColumnFamilies::BypassReasonsOf(uint32_t family) const {
  const BypassReasons reasons =
      family < kMaxFamilies ? bypass_reasons_[family].load() : kNotShown | kMemtables;
  return reasons | reasons_of_all_.load();
}

std::shared_ptr<MemtableFilter> ColumnFamilies::MemtableMade(uint32_t family, uint64_t guess) {
  MemtableFilters* const memtables = Make(family);
  if (memtables == nullptr) return nullptr;
  auto filter = memtables->Begin(guess);
  ClearBypassReasons(family, kMemtables);
  return filter;
}

void ColumnFamilies::MemtableGone(uint32_t family, const MemtableFilter* filter) noexcept {
  if (family >= kMaxFamilies) return;
  if (MemtableFilters* const memtables = families_[family].load(std::memory_order_acquire)) {
    memtables->End(filter);
  }
}

uint64_t ColumnFamilies::MemtableCount(uint32_t family) const {
  if (family >= kMaxFamilies) return 0;
  const MemtableFilters* const memtables = families_[family].load(std::memory_order_acquire);
  return memtables == nullptr ? 0 : memtables->Count();
}

uint64_t ColumnFamilies::MemtableBytes() const {
  uint64_t bytes = 0;
  for (const std::atomic<MemtableFilters*>& family : families_) {
    if (const MemtableFilters* const memtables = family.load()) bytes += memtables->size_bytes();
  }
  return bytes;
}

}  // namespace tamis::lsm
