#include "tamis/filter/split_counting_bloom_filter.h"

#include <algorithm>
#include <cmath>

#include "tamis/filter/fpr.h"
#include "tamis/filter/internal/batch.h"

namespace tamis {

Result<SplitCountingBloomFilter> SplitCountingBloomFilter::Create(const Options& options) {
  TAMIS_RETURN_IF_ERROR(options.Validate());
  return SplitCountingBloomFilter(SplitGeometry::For(options.fpr, options.capacity), options.seed);
}

SplitCountingBloomFilter::SplitCountingBloomFilter(SplitGeometry geometry, uint64_t seed)
    : SplitCountingBloomFilter(geometry, seed, CounterArray(geometry.positions())) {}

SplitCountingBloomFilter::SplitCountingBloomFilter(SplitGeometry geometry, uint64_t seed,
                                                   CounterArray counters)
    : geometry_(geometry), seed_(seed), counters_(std::move(counters)) {
  assert(geometry.IsValid());
}

void SplitCountingBloomFilter::Prefetch(uint64_t hash) const {
  for (uint32_t s = 0; s < geometry_.slices; ++s) counters_.Prefetch(geometry_.Position(hash, s));
}

Bitmap SplitCountingBloomFilter::MayContain(std::span<const uint64_t> hashes) const {
  return AnswerBatch(
      hashes, [this](uint64_t hash) { Prefetch(hash); },
      [this](uint64_t hash) { return MayContain(hash); });
}

Status SplitCountingBloomFilter::Merge(const SplitCountingBloomFilter& other) {
  if (geometry_ != other.geometry_ || seed_ != other.seed_) {
    return InvalidArgument("cannot merge split counting Bloom filters of different size or seed");
  }
  counters_.Add(other.counters_);
  count_ += other.count_;
  ignored_decrements_ += other.ignored_decrements_;
  return Status::Ok();
}

void SplitCountingBloomFilter::Clear() { *this = SplitCountingBloomFilter(geometry_, seed_); }

std::vector<uint64_t> SplitCountingBloomFilter::Projection() const {
  std::vector<uint64_t> bits((geometry_.positions() + 63) / 64);
  const auto words = counters_.words().words();
  for (size_t w = 0; w < bits.size(); ++w) {
    std::array<uint64_t, 4> four{};
    std::copy_n(words.begin() + w * 4, std::min<size_t>(4, words.size() - w * 4), four.begin());
    bits[w] = CounterArray::NonzeroBits(four.data());
  }
  return bits;
}

double SplitCountingBloomFilter::Fill() const {
  return static_cast<double>(counters_.nonzero()) / static_cast<double>(counters_.size());
}

double SplitCountingBloomFilter::ExpectedFpr() const { return std::pow(Fill(), geometry_.slices); }

uint64_t SplitCountingBloomFilter::CapacityFor(size_t size_bytes, double fpr) {
  const uint64_t counters = size_bytes * 2;
  SplitGeometry geometry = SplitGeometry::For(fpr, 1);
  geometry.slice_positions =
      static_cast<uint32_t>(std::clamp<uint64_t>(counters / geometry.slices, 1, UINT32_MAX));
  return geometry.Capacity();
}

double SplitCountingBloomFilter::FprFor(size_t size_bytes, uint64_t capacity) {
  const double counters = static_cast<double>(size_bytes) * 2;
  const auto keys = static_cast<double>(capacity);
  const uint32_t slices =
      std::min(fpr::BloomHashes(counters, keys), uint32_t{SplitGeometry::kMaxSlices});
  return fpr::Split(std::floor(counters / slices), keys, slices);
}

std::string SplitCountingBloomFilter::Serialize() const {
  return SealFilter(
      {.kind = kKind,
       .seed = seed_,
       .parameters = {geometry_.slices, geometry_.slice_positions, count_, ignored_decrements_,
                      counters_.nonzero(), counters_.saturated()}},
      counters_.words().words());
}

Result<SplitCountingBloomFilter> SplitCountingBloomFilter::Deserialize(std::string_view bytes,
                                                                       OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(OpenedFilter opened, OpenFilter(bytes, kKind, 6, mode));
  const auto& p = opened.header.parameters;
  if (p[0] < 1 || p[0] > SplitGeometry::kMaxSlices || p[1] < 1 || p[1] > UINT32_MAX) {
    return FilterDataLoss(kKind, "impossible geometry");
  }
  const SplitGeometry geometry{static_cast<uint32_t>(p[0]), static_cast<uint32_t>(p[1])};
  if (CounterArray::WordsFor(geometry.positions()) != opened.payload.size()) {
    return FilterDataLoss(kKind, "its slices do not fit the payload");
  }
  CounterArray counters(opened.Take(0, opened.payload.size()), geometry.positions(), p[4], p[5]);
  if (mode == OpenMode::kCopy && !counters.IsConsistent()) {
    return FilterDataLoss(kKind, "its counters do not add up");
  }
  SplitCountingBloomFilter filter(geometry, opened.header.seed, std::move(counters));
  filter.count_ = p[2];
  filter.ignored_decrements_ = p[3];
  return filter;
}

}  // namespace tamis
