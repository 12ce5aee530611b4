// DedupeWindow: the keys seen lately, for a stream without an end.
#pragma once

#include <cstdint>
#include <utility>

#include "tamis/filter/blocked_bloom_filter.h"

namespace tamis {

// About the last `capacity` to 2 `capacity` keys: two sets of so many that take turns. Both are
// asked, so that the rate is twice that of the options.
class DedupeWindow {
 public:
  static Result<DedupeWindow> Create(const FilterOptions& options) {
    TAMIS_ASSIGN_OR_RETURN(auto young, BlockedBloomFilter::Create(options));
    return DedupeWindow(options.capacity, std::move(young));
  }

  bool MayContain(uint64_t hash) const { return young_.MayContain(hash) || old_.MayContain(hash); }
  void Insert(uint64_t hash) {
    if (young_.Count() >= size_) {
      std::swap(young_, old_);
      young_.Clear();
    }
    young_.Insert(hash);
  }

 private:
  DedupeWindow(uint64_t size, BlockedBloomFilter young)
      : size_(size), young_(std::move(young)), old_(young_) {}

  uint64_t size_;
  BlockedBloomFilter young_;
  BlockedBloomFilter old_;
};

}  // namespace tamis
