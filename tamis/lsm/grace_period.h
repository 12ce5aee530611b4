// GracePeriod: when nobody can be using any more what has just been replaced.
//
// Who replaces something that readers use under a Guard: Wait, then delete; or, where waiting is
// not wanted, Retire, and somebody will Collect.
//
// A reader holds a Guard while it uses what it has loaded from a pointer (seq_cst, after Enter).
// Who has put something else there calls Wait, and may then delete the old. Readers never wait; two
// counters a slot, so that Wait does not wait for readers who came after it (McKenney's SRCU).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tamis::lsm {

class GracePeriod {
 public:
  class Guard {
   public:
    explicit Guard(std::atomic<uint64_t>* inside) : inside_(inside) {}
    ~Guard() { inside_->fetch_sub(1, std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    std::atomic<uint64_t>* inside_;
  };

  [[nodiscard]] Guard Enter() {
    std::atomic<uint64_t>* inside =
        &slots_[Mine()].inside[phase_.load(std::memory_order_relaxed) % 2];
    inside->fetch_add(1, std::memory_order_seq_cst);
    return Guard(inside);
  }

  // REQUIRES: the thread holds no Guard.
  void Wait() {
    const std::lock_guard lock(waiting_);
    // Twice: a reader may have read the phase long before it counted itself.
    for (int turn = 0; turn < 2; ++turn) {
      const uint64_t old = phase_.fetch_add(1, std::memory_order_seq_cst) % 2;
      for (Slot& slot : slots_) {
        while (slot.inside[old].load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
      }
    }
  }

  // Keeps it until a Collect that begins later, or its own end.
  void Retire(std::shared_ptr<const void> replaced) {
    const std::lock_guard lock(retiring_);
    retired_.push_back(std::move(replaced));
  }
  // REQUIRES: as Wait.
  void Collect() {
    std::vector<std::shared_ptr<const void>> collected;
    {
      const std::lock_guard lock(retiring_);
      collected.swap(retired_);
    }
    if (!collected.empty()) Wait();
  }

 private:
  static constexpr uint32_t kSlots = 64;  // threads beyond share them

  struct alignas(64) Slot {
    std::atomic<uint64_t> inside[2]{};
  };

  static uint32_t Mine() {
    static std::atomic<uint32_t> next{0};
    thread_local const uint32_t mine = next.fetch_add(1, std::memory_order_relaxed) % kSlots;
    return mine;
  }

  Slot slots_[kSlots];
  std::atomic<uint64_t> phase_{0};
  std::mutex waiting_;
  std::mutex retiring_;
  std::vector<std::shared_ptr<const void>> retired_;
};

}  // namespace tamis::lsm
