#include "tamis/lsm/collected_keys.h"

#include <utility>

namespace tamis::lsm {

void CollectedKeys::Add(uint64_t number, uint32_t family, std::vector<uint64_t> hashes) {
  const std::lock_guard lock(mutex_);
  ForgetThoseOfThread();
  collections_[number] = {family, std::this_thread::get_id(), std::move(hashes)};
}

std::optional<CollectedKeys::Collection> CollectedKeys::Announced(std::optional<uint64_t> number) {
  const std::lock_guard lock(mutex_);
  std::optional<Collection> collection;
  if (number.has_value()) {
    const auto found = collections_.find(*number);
    if (found != collections_.end()) {
      collection = std::move(found->second);
      collections_.erase(found);
    }
  }
  // A file that failed after its keys were complete is announced without its properties.
  ForgetThoseOfThread();
  return collection;
}

size_t CollectedKeys::count() const {
  const std::lock_guard lock(mutex_);
  return collections_.size();
}

void CollectedKeys::ForgetThoseOfThread() {
  std::erase_if(collections_,
                [](const auto& at) { return at.second.collector == std::this_thread::get_id(); });
}

}  // namespace tamis::lsm
