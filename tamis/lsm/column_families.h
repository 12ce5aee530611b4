// ColumnFamilies: the column families of a tree: the filters of their memtables, and why some of
// them pass through.
//
// A family with a bypass reason gives no answers: every key may be there. Reasons of all families
// hold for each of them, also for those that come later. One of these is kCounting, until
// EndCounting: the files that were there before are not counted yet.
//
// Threads: safe; readers take no lock. The GracePeriod outlives it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "tamis/lsm/grace_period.h"
#include "tamis/lsm/memtable_filters.h"

namespace tamis::lsm {

// Why a column family passes through: a set of bits; 0: it does not.
using BypassReasons = uint32_t;
inline constexpr BypassReasons kCounting = 1;  // its files are being counted
inline constexpr BypassReasons kNotShown = 2;  // its handle was not shown, so its kind is not known
inline constexpr BypassReasons kMemtables = 4;  // its memtables do not report their keys
inline constexpr BypassReasons kComparator =
    8;  // not bytewise: equal keys may differ in their bytes
inline constexpr BypassReasons kTimestamps = 16;  // keys carry user timestamps
inline constexpr BypassReasons kIngestion = 32;   // files come in that are not counted yet
inline constexpr BypassReasons kUnreadable = 64;  // a live file of it cannot be counted
inline constexpr BypassReasons kSecondary = 128;  // another process writes the database
inline constexpr BypassReasons kDropped =
    256;  // it was dropped, and there is a new one of its name
inline constexpr BypassReasons kNoMemory = 512;  // keys of it could not be noted
inline constexpr BypassReasons kBypass = 1024;   // a memtable of it was not made by our factory
// Its options lack the filter's factory of memtables, or its collector of keys.
inline constexpr BypassReasons kOtherMemtables = 2048;
inline constexpr BypassReasons kNoCollector = 4096;
inline constexpr BypassReasons kNoListener = 8192;  // the database's options lack the listener
inline constexpr BypassReasons kStopped = 16384;    // the filter was stopped
// Reasons that stay until the database is opened again; the files of such a family need not be
// known. Files in another order than that of bytes cannot be read back.
inline constexpr BypassReasons kForGood =
    kUnreadable | kNoMemory | kComparator | kTimestamps | kNoCollector;
std::string BypassReasonNames(BypassReasons reasons);  // "counting, memtables"; "" for none

class ColumnFamilies {
 public:
  explicit ColumnFamilies(GracePeriod* grace);
  ~ColumnFamilies();

  // The filters of the family's memtables; nullptr: it passes through. REQUIRES: a guard of the
  // GracePeriod is held, since before this call.
  const MemtableFilters* Answering(uint32_t id) const {
    if (id >= kMaxFamilies) return nullptr;
    const MemtableFilters* const family = families_[id].load(std::memory_order_acquire);
    const bool answers = reasons_of_all_.load(std::memory_order_acquire) == 0 &&
                         bypass_reasons_[id].load(std::memory_order_acquire) == 0;
    return answers ? family : nullptr;
  }

  // A new family has the reasons kNotShown and kMemtables until they are cleared. When
  // AddBypassReasons has returned, every reader knows of the reasons and passes keys of the family
  // through. It waits for the readers that are inside of MayContain, so a reader must not call it.
  void AddBypassReasons(uint32_t family, BypassReasons reasons) noexcept;
  void ClearBypassReasons(uint32_t family, BypassReasons reasons) noexcept;
  void AddBypassReasonsOfAll(BypassReasons reasons) noexcept;
  BypassReasons BypassReasonsOf(uint32_t family) const;  // with those of all families

  bool IsCounting() const {
    return (reasons_of_all_.load(std::memory_order_acquire) & kCounting) != 0;
  }
  void EndCounting() { reasons_of_all_.fetch_and(~kCounting, std::memory_order_release); }

  // A memtable is made: each key must be added to the returned filter before it goes into the
  // memtable. `guess`: how many keys there will be, for the first memtables of a family.
  std::shared_ptr<MemtableFilter> MemtableMade(uint32_t family, uint64_t guess = 1 << 15);
  // A memtable ends: its keys are in files that are counted, or gone for good.
  void MemtableGone(uint32_t family, const MemtableFilter* filter) noexcept;
  // Memtables that were made and have not ended: the one that is written, and immutable ones.
  uint64_t MemtableCount(uint32_t family) const;
  uint64_t MemtableBytes() const;  // bytes of all families

 private:
  static constexpr uint32_t kMaxFamilies = 4096;  // ids beyond pass through

  MemtableFilters* Make(uint32_t id);

  GracePeriod* const grace_;
  std::mutex mutex_;  // held by a thread that makes a family
  std::array<std::atomic<MemtableFilters*>, kMaxFamilies> families_{};
  std::array<std::atomic<BypassReasons>, kMaxFamilies>
      bypass_reasons_;  // here, to add some without memory
  std::atomic<BypassReasons> reasons_of_all_{kCounting};
};

}  // namespace tamis::lsm
