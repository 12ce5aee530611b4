#include "tamis/filter/scalable_split_counting_bloom_filter.h"

#include <iterator>
#include <utility>

#include "tamis/filter/fpr.h"
#include "tamis/filter/internal/batch.h"

namespace tamis {

Result<ScalableSplitCountingBloomFilter> ScalableSplitCountingBloomFilter::Create(
    const Options& options) {
  TAMIS_RETURN_IF_ERROR(options.Validate());
  return ScalableSplitCountingBloomFilter(SplitGeometry::For(options.fpr, options.capacity),
                                          options.seed);
}

ScalableSplitCountingBloomFilter::ScalableSplitCountingBloomFilter(SplitGeometry geometry,
                                                                   uint64_t seed)
    : geometry_(geometry), seed_(seed) {
  layers_.emplace_back(geometry, seed);
}

std::optional<uint32_t> ScalableSplitCountingBloomFilter::FindLayer(uint64_t hash) const {
  for (uint32_t i = 0; i < layers(); ++i) {
    if (layers_[i].MayContain(hash)) return i;
  }
  return std::nullopt;
}

std::optional<uint64_t> ScalableSplitCountingBloomFilter::CountBound(uint64_t hash) const {
  uint64_t sum = 0;
  for (const SplitCountingBloomFilter& layer : layers_) {
    uint32_t least = CounterArray::kSaturated;
    for (uint32_t s = 0; s < geometry_.slices; ++s) {
      least = std::min(least, layer.Counter(geometry_.Position(hash, s)));
    }
    if (least == CounterArray::kSaturated) return std::nullopt;
    sum += least;
  }
  return sum;
}

bool ScalableSplitCountingBloomFilter::MatchesBeyond(uint64_t hash, uint32_t layer) const {
  for (uint32_t i = layer + 1; i < layers(); ++i) {
    if (layers_[i].MayContain(hash)) return true;
  }
  return false;
}

uint32_t ScalableSplitCountingBloomFilter::LayerFor(uint64_t hash) {
  if (const auto found = FindLayer(hash)) return *found;
  for (uint32_t i = 0; i < layers(); ++i) {
    if (!layers_[i].IsHalfFull()) return i;
  }
  layers_.emplace_back(geometry_, seed_);
  return layers() - 1;
}

Bitmap ScalableSplitCountingBloomFilter::MayContain(std::span<const uint64_t> hashes) const {
  return AnswerBatch(
      hashes,
      [this](uint64_t hash) {
        for (const auto& layer : layers_) layer.Prefetch(hash);
      },
      [this](uint64_t hash) { return MayContain(hash); });
}

Status ScalableSplitCountingBloomFilter::Merge(const ScalableSplitCountingBloomFilter& other) {
  if (geometry_ != other.geometry_ || seed_ != other.seed_) {
    return InvalidArgument(
        "cannot merge scalable split counting Bloom filters of different layer size or seed");
  }
  auto theirs = other.layers_;
  layers_.reserve(layers_.size() + theirs.size());
  std::move(theirs.begin(), theirs.end(), std::back_inserter(layers_));
  stuck_count_ += other.stuck_count_;
  return Status::Ok();
}

void ScalableSplitCountingBloomFilter::Clear() {
  SplitCountingBloomFilter empty(geometry_, seed_);
  layers_.erase(layers_.begin() + 1, layers_.end());
  layers_.front() = std::move(empty);
  stuck_count_ = 0;
}

size_t ScalableSplitCountingBloomFilter::SizeBytes() const {
  size_t size = 0;
  for (const auto& layer : layers_) size += layer.SizeBytes();
  return size;
}

uint64_t ScalableSplitCountingBloomFilter::Count() const {
  uint64_t count = 0;
  for (const auto& layer : layers_) count += layer.Count();
  return count;
}

double ScalableSplitCountingBloomFilter::Fill() const {
  double sum = 0;
  for (const auto& layer : layers_) sum += layer.Fill();
  return sum / layers();
}

double ScalableSplitCountingBloomFilter::ExpectedFpr() const {
  double absent = 1;
  for (const auto& layer : layers_) absent *= 1 - layer.ExpectedFpr();
  return 1 - absent;
}

uint64_t ScalableSplitCountingBloomFilter::saturated_count() const {
  uint64_t count = 0;
  for (const auto& layer : layers_) count += layer.saturated_count();
  return count;
}

uint64_t ScalableSplitCountingBloomFilter::ignored_decrements() const {
  uint64_t count = 0;
  for (const auto& layer : layers_) count += layer.ignored_decrements();
  return count;
}

uint64_t ScalableSplitCountingBloomFilter::CapacityFor(size_t size_bytes, double fpr) {
  return SplitCountingBloomFilter::CapacityFor(size_bytes, fpr);
}

double ScalableSplitCountingBloomFilter::FprFor(size_t size_bytes, uint64_t capacity) {
  return SplitCountingBloomFilter::FprFor(size_bytes, capacity);
}

// The payload: for each layer four words (count, ignored decrements, nonzero, saturated), then its
// counters.
std::string ScalableSplitCountingBloomFilter::Serialize() const {
  std::vector<std::array<uint64_t, 4>> tallies;
  tallies.reserve(layers_.size());
  std::vector<std::span<const uint64_t>> parts;
  for (const auto& layer : layers_) {
    tallies.push_back({layer.count_, layer.ignored_decrements_, layer.counters_.nonzero(),
                       layer.counters_.saturated()});
    parts.emplace_back(tallies.back());
    parts.push_back(layer.counters_.words().words());
  }
  return SealFilter(
      {.kind = kKind,
       .seed = seed_,
       .parameters = {geometry_.slices, geometry_.slice_positions, layers(), stuck_count_}},
      parts);
}

Result<ScalableSplitCountingBloomFilter> ScalableSplitCountingBloomFilter::Deserialize(
    std::string_view bytes, OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(OpenedFilter opened, OpenFilter(bytes, kKind, 4, mode));
  const auto& p = opened.header.parameters;
  if (p[0] < 1 || p[0] > SplitGeometry::kMaxSlices || p[1] < 1 || p[1] > UINT32_MAX) {
    return FilterDataLoss(kKind, "impossible geometry");
  }
  const SplitGeometry geometry{static_cast<uint32_t>(p[0]), static_cast<uint32_t>(p[1])};
  const uint64_t counter_words = CounterArray::WordsFor(geometry.positions());
  const uint64_t words = opened.payload.size();
  if (p[2] < 1 || words % (counter_words + 4) != 0 || words / (counter_words + 4) != p[2]) {
    return FilterDataLoss(kKind, "its layers do not fit the payload");
  }
  ScalableSplitCountingBloomFilter filter(SplitGeometry{}, opened.header.seed);
  filter.geometry_ = geometry;
  filter.stuck_count_ = p[3];
  filter.layers_.clear();
  for (uint64_t begin = 0; begin < words; begin += counter_words + 4) {
    const auto tallies = opened.payload.subspan(begin, 4);
    CounterArray counters(opened.Take(begin + 4, counter_words), geometry.positions(), tallies[2],
                          tallies[3]);
    if (mode == OpenMode::kCopy && !counters.IsConsistent()) {
      return FilterDataLoss(kKind, "the counters of a layer do not add up");
    }
    SplitCountingBloomFilter layer(geometry, opened.header.seed, std::move(counters));
    layer.count_ = tallies[0];
    layer.ignored_decrements_ = tallies[1];
    filter.layers_.push_back(std::move(layer));
  }
  return filter;
}

}  // namespace tamis
