// KeyRepeats: an estimate of how many of the keys that were read came before.
//
// A sample by hash: a key is in it or not, however often it comes. Memory is bounded.
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

  // The share of the added keys that came before; from 0 to 1.
  double Share() const {
    if (sampled_ == 0) return 0;
    return 1 - static_cast<double>(hashes_.size()) / static_cast<double>(sampled_);
  }

 private:
  uint64_t mask_ = 0;     // hashes without these bits are in the sample
  uint64_t sampled_ = 0;  // keys of the present mask, repeats counted, about
  std::unordered_set<uint64_t> hashes_;
};

}  // namespace tamis
