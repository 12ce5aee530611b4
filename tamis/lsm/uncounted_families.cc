#include "tamis/lsm/uncounted_families.h"

#include <utility>

namespace tamis::lsm {

void UncountedFamilies::Add(uint32_t family) {
  const std::lock_guard lock(mutex_);
  families_.AddBypassReasons(family, kIngestion);
  uncounted_.insert(family);
}

void UncountedFamilies::ArrivalBegan(uint32_t family) {
  const std::lock_guard lock(mutex_);
  families_.AddBypassReasons(family, kIngestion);
  arriving_.insert(family);
}

void UncountedFamilies::ArrivalEnded(uint32_t family) noexcept {
  const std::lock_guard lock(mutex_);
  uncounted_.insert(arriving_.extract(arriving_.find(family)));
}

bool UncountedFamilies::empty() const {
  const std::lock_guard lock(mutex_);
  return uncounted_.empty();
}

std::set<uint32_t> UncountedFamilies::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(uncounted_, {});
}

void UncountedFamilies::GiveBack(std::set<uint32_t> families) noexcept {
  const std::lock_guard lock(mutex_);
  uncounted_.merge(families);
}

void UncountedFamilies::HaveCounted(const std::set<uint32_t>& families) {
  const std::lock_guard lock(mutex_);
  for (const uint32_t family : families) {
    if (!uncounted_.contains(family) && !arriving_.contains(family)) {
      families_.ClearBypassReasons(family, kIngestion);
    }
  }
}

}  // namespace tamis::lsm
