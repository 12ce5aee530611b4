#include "tamis/filter/split_geometry.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tamis {

SplitGeometry SplitGeometry::For(double fpr, uint64_t capacity) {
  // Written so that NaN takes the strictest rate.
  const double rate = fpr >= 0x1p-32 ? std::min(fpr, 0.5) : 0x1p-32;
  const auto keys = static_cast<double>(std::clamp<uint64_t>(capacity, 1, kMaxCapacity));
  SplitGeometry geometry;
  // The tolerance keeps 2^-10 at 10 slices.
  geometry.slices = static_cast<uint32_t>(std::ceil(-std::log2(rate) - 1e-9));
  // 1 - (1 - 1/m)^n = 1/2 at m = 1 / (1 - 2^(-1/n)).
  geometry.slice_positions =
      static_cast<uint32_t>(std::ceil(-1 / std::expm1(-std::numbers::ln2 / keys)));
  return geometry;
}

uint64_t SplitGeometry::Capacity() const {
  if (slice_positions <= 2) return 1;
  return static_cast<uint64_t>(-std::numbers::ln2 / std::log1p(-1.0 / slice_positions) + 1e-6);
}

}  // namespace tamis
