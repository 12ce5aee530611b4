#include "tamis/lsm/grace_period.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bitset>
#include <cstddef>
#include <new>
#include <thread>
#include <utility>

namespace tamis::lsm {
namespace {

bool Membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

// Whether FenceAll does what it says; asked once, before the first reader.
bool CanFenceAll() {
  static const bool can = Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  return can;
}

}  // namespace

// The slots of all threads of the process.
class GracePeriod::Places {
 public:
  // kShared: all are taken.
  static uint32_t Take() {
    if (!CanFenceAll()) return kShared;
    const std::lock_guard lock(mutex_);
    for (uint32_t place = kShared + 1; place < kSlots; ++place) {
      if (taken_[place]) continue;
      taken_[place] = true;
      return place;
    }
    return kShared;
  }
  static void GiveBack(uint32_t place) {
    const std::lock_guard lock(mutex_);
    taken_[place] = false;
  }

 private:
  static constinit std::mutex mutex_;
  static constinit std::bitset<kSlots> taken_;
};

constinit std::mutex GracePeriod::Places::mutex_;
constinit std::bitset<GracePeriod::kSlots> GracePeriod::Places::taken_;

uint32_t GracePeriod::FindMine() {
  struct AtEnd {
    ~AtEnd() {
      if (mine_ != kShared) Places::GiveBack(std::exchange(mine_, kShared));
    }
  };
  thread_local const AtEnd at_end;
  mine_ = Places::Take();
  return mine_;
}

bool GracePeriod::Wait() {
  const std::lock_guard lock(waiting_);
  // A reader that enters after this fence sees the new pointer; the others are seen below, in one
  // of the phases.
  if (CanFenceAll() && !Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return false;
  // Twice: a reader may have read the phase long before it counted itself.
  for (int turn = 0; turn < 2; ++turn) {
    const uint64_t old = phase_.fetch_add(1, std::memory_order_seq_cst) % 2;
    for (Slot& slot : slots_) {
      while (slot.inside[old].load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
    }
  }
  return true;
}

namespace {

// Some reader may use it for ever.
void Leak(std::shared_ptr<const void> kept) noexcept {
  alignas(std::shared_ptr<const void>) std::byte never_destroyed[sizeof kept];
  new (never_destroyed) std::shared_ptr<const void>(std::move(kept));
}

}  // namespace

void GracePeriod::Retire(std::shared_ptr<const void> replaced) noexcept {
  try {
    const std::lock_guard lock(retiring_);
    retired_.push_back(std::move(replaced));
    return;
  } catch (const std::bad_alloc&) {
  }
  if (!Wait()) Leak(std::move(replaced));
}

void GracePeriod::Collect() {
  std::vector<std::shared_ptr<const void>> collected;
  {
    const std::lock_guard lock(retiring_);
    collected.swap(retired_);
  }
  if (collected.empty() || Wait()) return;
  for (std::shared_ptr<const void>& one : collected) {
    try {
      const std::lock_guard lock(retiring_);
      retired_.push_back(std::move(one));
    } catch (const std::bad_alloc&) {
      Leak(std::move(one));
    }
  }
}

}  // namespace tamis::lsm
