// GracePeriod: when nobody can be using any more what has just been replaced.
//
// A writer that replaces an object that readers use under a Guard calls Wait, then deletes it if
// Wait says so; where waiting is not wanted it calls Retire, and some later Collect frees the
// object.
//
// A reader holds a Guard while it uses what it has loaded from a pointer (seq_cst, after Enter). A
// writer that has replaced the pointer calls Wait, and may then delete the old object. Readers
// never wait; each slot has two counters, so that Wait does not wait for readers that came after it
// (McKenney's SRCU).
//
// A reader's count must be seen before what it loads is chosen. No reader pays for that order: Wait
// has the system put a fence into every running thread (membarrier, as liburcu does). A locked
// instruction in each lookup would not only take its time, but keep the next one from beginning
// before this one has its cache line. Where the system has no such call, and for threads beyond
// the slots, readers count with one all the same.
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

  // False when the system has taken back what it had granted (a sandbox entered later): nobody
  // knows, and nothing may be deleted. REQUIRES: the thread holds no Guard.
  [[nodiscard]] bool Wait();

  // Keeps it until a Collect that begins later, or its own end. Without memory for that it waits
  // itself (REQUIRES: as Wait).
  void Retire(std::shared_ptr<const void> replaced) noexcept;
  // REQUIRES: as Wait.
  void Collect();
  // How many are kept.
  size_t retired() const {
    const std::lock_guard lock(retiring_);
    return retired_.size();
  }

  static constexpr uint32_t kSlots = 128;
  static constexpr uint32_t kShared = 0;  // the slot of threads that have none of their own
  // That of this thread, in all GracePeriods.
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

  // Without a destructor, since others that run at the end of a thread may still ask.
  static thread_local constinit uint32_t mine_;

  Slot slots_[kSlots];
  std::atomic<uint64_t> phase_{0};
  std::mutex waiting_;
  mutable std::mutex retiring_;
  std::vector<std::shared_ptr<const void>> retired_;
};

inline thread_local constinit uint32_t GracePeriod::mine_ = GracePeriod::kUnknown;

}  // namespace tamis::lsm
