#include "tamis/guard/key_repeats.h"

#include <utility>

#include "tamis/base/hash.h"

namespace tamis {

void KeyRepeats::Add(std::string_view key) {
  constexpr uint64_t kSeed = 1;
  const uint64_t hash = Hash(key, kSeed);
  if ((hash & mask_) != 0) return;
  ++sampled_;
  hashes_.insert(hash);
  while (hashes_.size() > kMostSampled) {
    mask_ = mask_ * 2 + 1;
    const double before = static_cast<double>(hashes_.size());
    std::erase_if(hashes_, [this](uint64_t kept) { return (kept & mask_) != 0; });
    // The keys that go came as often as those that stay.
    sampled_ = static_cast<uint64_t>(static_cast<double>(sampled_) *
                                     static_cast<double>(hashes_.size()) / before);
  }
}

}  // namespace tamis
