#include "tamis/filter/internal/bloom_positions.h"

#include <cmath>

#include "tamis/filter/fpr.h"

namespace tamis {

BloomPositions BloomPositions::For(double fpr, uint64_t capacity) {
  const auto keys = static_cast<double>(capacity);
  double positions = std::ceil(fpr::BloomBits(keys, fpr));
  while (fpr::Bloom(positions, keys, fpr::BloomHashes(positions, keys)) > fpr) {
    positions = std::ceil(positions * 1.002);
  }
  return {static_cast<uint64_t>(positions), fpr::BloomHashes(positions, keys)};
}

}  // namespace tamis
