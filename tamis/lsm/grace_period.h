// GracePeriod: tells a writer when no reader can still be using an object that it has replaced.
//
// A reader holds a Guard (Enter) while it uses an object whose pointer it has loaded (seq_cst,
// after Enter). A writer that has replaced the pointer calls Wait, and may delete the old object if
// Wait returns true. A writer that does not want to wait calls Retire; a later Collect frees the
// object. Readers never wait. Each slot has two counters, so that Wait does not wait for readers
// that came after it (McKenney's SRCU).
//
// A reader must be counted, as the writer sees it, before it loads the pointer. Readers do not pay
// for that order: Wait has the system put a fence into every running thread (membarrier, as liburcu
// does). A locked instruction in each lookup would not only take its time, but keep the next lookup
// from beginning before this one has its cache line. If the system has no such call, and in threads
// beyond the slots, readers use a locked instruction all the same.
//
// Threads: safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace tamis::lsm {

class GracePeriod {
 public:
  class Guard {
   public:
    Guard(std::atomic<uint64_t>* inside, uint32_t slot) : inside_(inside), slot_(slot) {}
    ~Guard() {
      if (slot_ != kShared) {
        inside_->store(inside_->load(std::memory_order_relaxed) - 1, std::memory_order_release);
      } else {
        inside_->fetch_sub(1, std::memory_order_release);
      }
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    std::atomic<uint64_t>* const inside_;
    const uint32_t slot_;
  };

  [[nodiscard]] Guard Enter() {
    const uint32_t mine = Mine();
    std::atomic<uint64_t>* const inside =
        &slots_[mine].inside[phase_.load(std::memory_order_relaxed) % 2];
    if (mine != kShared) {
      inside->store(inside->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // the rest is done by Wait
    } else {
      inside->fetch_add(1, std::memory_order_seq_cst);
    }
    return {inside, mine};
  }

  // Waits until no reader that entered before is left. False: the system now refuses membarrier,
  // which it allowed at first (a sandbox was entered since): readers may be left, and nothing may
  // be deleted. REQUIRES: the thread holds no Guard.
  [[nodiscard]] bool Wait();

  // Keeps the replaced object until a Collect that begins later, or until this object ends. When
  // memory does not suffice for that, it waits itself. REQUIRES: as Wait.
  void Retire(std::shared_ptr<const void> replaced) noexcept;
  // Waits, then frees the retired objects. REQUIRES: as Wait.
  void Collect();
  // How many retired objects are kept.
  size_t retired() const {
    const std::lock_guard lock(retiring_);
    return retired_.size();
  }

  static constexpr uint32_t kSlots = 128;
  static constexpr uint32_t kShared = 0;  // the slot of threads that have none of their own
  // The slot of this thread, the same in all GracePeriods.
  static uint32_t Mine() {
    const uint32_t mine = mine_;
    if (mine == kUnknown) [[unlikely]]
      return FindMine();
    return mine;
  }

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX;

  struct alignas(64) Slot {
    std::atomic<uint64_t> inside[2]{};
  };
  class Places;

  static uint32_t FindMine();

  // It has no destructor, since other destructors that run at the end of a thread may still use it.
  static thread_local constinit uint32_t mine_;

  Slot slots_[kSlots];
  std::atomic<uint64_t> phase_{0};
  std::mutex waiting_;
  mutable std::mutex retiring_;
  std::vector<std::shared_ptr<const void>> retired_;
};

inline thread_local constinit uint32_t GracePeriod::mine_ = GracePeriod::kUnknown;

}  // namespace tamis::lsm
