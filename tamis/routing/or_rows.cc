#include "tamis/routing/or_rows.h"

#include "tamis/base/lookup_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tamis/routing/or_rows.cc"
#include <hwy/foreach_target.h>  // compiles this file once for each target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tamis {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void OrRowsVector(const uint64_t* rows, size_t stride, size_t count, size_t words, uint64_t* out) {
  const hn::ScalableTag<uint64_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t w = 0;
  for (; w + 4 * lanes <= words; w += 4 * lanes) {
    auto a = hn::LoadU(d, out + w);
    auto b = hn::LoadU(d, out + w + lanes);
    auto c = hn::LoadU(d, out + w + 2 * lanes);
    auto e = hn::LoadU(d, out + w + 3 * lanes);
    const uint64_t* row = rows + w;
    for (size_t r = 0; r < count; ++r, row += stride) {
      a = hn::Or(a, hn::LoadU(d, row));
      b = hn::Or(b, hn::LoadU(d, row + lanes));
      c = hn::Or(c, hn::LoadU(d, row + 2 * lanes));
      e = hn::Or(e, hn::LoadU(d, row + 3 * lanes));
    }
    hn::StoreU(a, d, out + w);
    hn::StoreU(b, d, out + w + lanes);
    hn::StoreU(c, d, out + w + 2 * lanes);
    hn::StoreU(e, d, out + w + 3 * lanes);
  }
  for (; w < words; ++w) {
    uint64_t a = out[w];
    for (size_t r = 0; r < count; ++r) a |= rows[r * stride + w];
    out[w] = a;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tamis
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tamis {

HWY_EXPORT(OrRowsVector);

void OrRows(const uint64_t* rows, size_t stride, size_t count, size_t words, uint64_t* out) {
  HWY_DYNAMIC_DISPATCH(OrRowsVector)(rows, stride, count, words, out);
}

void OrRowsScalar(const uint64_t* rows, size_t stride, size_t count, size_t words, uint64_t* out) {
  for (size_t w = 0; w < words; ++w) {
    for (size_t r = 0; r < count; ++r) out[w] |= rows[r * stride + w];
  }
}

}  // namespace tamis
#endif  // HWY_ONCE
