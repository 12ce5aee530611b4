// KeyRepeats: estimates which share of the keys that were read are repetitions of earlier ones.
//
// It counts a sample, chosen by hash, so that a key is in the sample each time or never. Memory is
// bounded. Threads: exclusive access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_set>

namespace tamis {

class KeyRepeats {
 public:
  static constexpr size_t kMostSampled = 4096;

  void Add(std::string_view key);

  // The share of the added keys that are repetitions; from 0 to 1.
  double Share() const {
    if (sampled_ == 0) return 0;
    return 1 - static_cast<double>(hashes_.size()) / static_cast<double>(sampled_);
  }

 private:
  uint64_t mask_ = 0;     // hashes without these bits are in the sample
  uint64_t sampled_ = 0;  // about how many added keys are in the sample, repetitions included
  std::unordered_set<uint64_t> hashes_;
};

}  // namespace tamis
