#include "tamis/routing/and_rows.h"

#include "tamis/base/lookup_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tamis/routing/and_rows.cc"
#include <hwy/foreach_target.h>  // compiles this file once for each target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tamis {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void AndRowsVector(const uint64_t* const* rows, size_t count, size_t words, uint64_t* out) {
  const hn::ScalableTag<uint64_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t w = 0;
  // Four vectors at a time: enough loads under way, and each row's piece is read in one go.
  for (; w + 4 * lanes <= words; w += 4 * lanes) {
    auto a = hn::LoadU(d, rows[0] + w);
    auto b = hn::LoadU(d, rows[0] + w + lanes);
    auto c = hn::LoadU(d, rows[0] + w + 2 * lanes);
    auto e = hn::LoadU(d, rows[0] + w + 3 * lanes);
    for (size_t r = 1; r < count; ++r) {
      a = hn::And(a, hn::LoadU(d, rows[r] + w));
      b = hn::And(b, hn::LoadU(d, rows[r] + w + lanes));
      c = hn::And(c, hn::LoadU(d, rows[r] + w + 2 * lanes));
      e = hn::And(e, hn::LoadU(d, rows[r] + w + 3 * lanes));
    }
    hn::StoreU(a, d, out + w);
    hn::StoreU(b, d, out + w + lanes);
    hn::StoreU(c, d, out + w + 2 * lanes);
    hn::StoreU(e, d, out + w + 3 * lanes);
  }
  for (; w + lanes <= words; w += lanes) {
    auto a = hn::LoadU(d, rows[0] + w);
    for (size_t r = 1; r < count; ++r) a = hn::And(a, hn::LoadU(d, rows[r] + w));
    hn::StoreU(a, d, out + w);
  }
  for (; w < words; ++w) {
    uint64_t a = rows[0][w];
    for (size_t r = 1; r < count; ++r) a &= rows[r][w];
    out[w] = a;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tamis
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tamis {

HWY_EXPORT(AndRowsVector);

void AndRows(const uint64_t* const* rows, size_t count, size_t words, uint64_t* out) {
  HWY_DYNAMIC_DISPATCH(AndRowsVector)(rows, count, words, out);
}

void AndRowsScalar(const uint64_t* const* rows, size_t count, size_t words, uint64_t* out) {
  for (size_t w = 0; w < words; ++w) {
    uint64_t a = rows[0][w];
    for (size_t r = 1; r < count; ++r) a &= rows[r][w];
    out[w] = a;
  }
}

}  // namespace tamis
#endif  // HWY_ONCE
