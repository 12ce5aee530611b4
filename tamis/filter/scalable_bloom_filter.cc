#include "tamis/filter/scalable_bloom_filter.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tamis {
namespace {

uint64_t LayerCapacity(uint64_t capacity, uint32_t doublings) {
  return doublings < 31 ? std::min(capacity << doublings, FilterOptions::kMaxCapacity)
                        : FilterOptions::kMaxCapacity;
}

}  // namespace

double ScalableBloomFilter::LayerFpr(double fpr, uint32_t doublings) {
  return std::max(std::ldexp(fpr, -1 - static_cast<int>(doublings)), FilterOptions::kMinFpr);
}

Result<ScalableBloomFilter> ScalableBloomFilter::Create(const Options& options) {
  TAMIS_RETURN_IF_ERROR(options.Validate());
  ScalableBloomFilter filter(options);
  filter.Clear();
  return filter;
}

void ScalableBloomFilter::AddLayer(uint32_t doublings) {
  layers_.push_back(
      *BlockedBloomFilter::Create({.capacity = LayerCapacity(options_.capacity, doublings),
                                   .fpr = LayerFpr(options_.fpr, doublings),
                                   .seed = options_.seed}));
  doublings_ = doublings;
}

bool ScalableBloomFilter::Insert(uint64_t hash) {
  if (!MayContain(hash)) {
    if (layers_.back().Count() >= LayerCapacity(options_.capacity, doublings_)) {
      AddLayer(doublings_ + 1);
    }
    layers_.back().Insert(hash);
  }
  ++count_;
  return true;
}

bool ScalableBloomFilter::MayContain(uint64_t hash) const {
  return std::any_of(layers_.rbegin(), layers_.rend(),
                     [hash](const BlockedBloomFilter& layer) { return layer.MayContain(hash); });
}

Bitmap ScalableBloomFilter::MayContain(std::span<const uint64_t> hashes) const {
  Bitmap answers((hashes.size() + 63) / 64);
  for (const BlockedBloomFilter& layer : layers_) {
    const Bitmap more = layer.MayContain(hashes);
    for (size_t w = 0; w < answers.size(); ++w) answers[w] |= more[w];
  }
  return answers;
}

Status ScalableBloomFilter::Merge(const ScalableBloomFilter& other) {
  if (options_.capacity != other.options_.capacity || options_.fpr != other.options_.fpr ||
      options_.seed != other.options_.seed) {
    return InvalidArgument("cannot merge scalable Bloom filters of different size, rate or seed");
  }
  const std::vector<BlockedBloomFilter> theirs = other.layers_;  // may be this one's
  // The larger of the open layers stays open.
  const auto at = doublings_ >= other.doublings_ ? layers_.begin() : layers_.end();
  layers_.insert(at, theirs.begin(), theirs.end());
  doublings_ = std::max(doublings_, other.doublings_);
  count_ += other.count_;
  return Status::Ok();
}

void ScalableBloomFilter::Clear() {
  ScalableBloomFilter empty(options_);
  empty.AddLayer(0);
  *this = std::move(empty);
}

size_t ScalableBloomFilter::SizeBytes() const {
  size_t size_bytes = 0;
  for (const BlockedBloomFilter& layer : layers_) size_bytes += layer.SizeBytes();
  return size_bytes;
}

double ScalableBloomFilter::Fill() const {
  double set = 0;
  for (const BlockedBloomFilter& layer : layers_) {
    set += layer.Fill() * static_cast<double>(layer.SizeBytes());
  }
  return set / static_cast<double>(SizeBytes());
}

double ScalableBloomFilter::ExpectedFpr() const {
  double none = 1;
  for (const BlockedBloomFilter& layer : layers_) none *= 1 - layer.ExpectedFpr();
  return 1 - none;
}

uint64_t ScalableBloomFilter::CapacityFor(size_t size_bytes, double fpr) {
  return BlockedBloomFilter::CapacityFor(size_bytes, LayerFpr(fpr, 0));
}

double ScalableBloomFilter::FprFor(size_t size_bytes, uint64_t capacity) {
  return std::min(1.0, 2 * BlockedBloomFilter::FprFor(size_bytes, capacity));
}

// A layer is a whole filter after its size in bytes, which is a multiple of 8.
std::string ScalableBloomFilter::Serialize() const {
  std::vector<uint64_t> payload;
  for (const BlockedBloomFilter& layer : layers_) {
    const std::string bytes = layer.Serialize();
    payload.push_back(bytes.size());
    payload.resize(payload.size() + bytes.size() / sizeof(uint64_t));
    std::copy(bytes.begin(), bytes.end(),
              reinterpret_cast<char*>(payload.data() + payload.size()) - bytes.size());
  }
  return SealFilter({.kind = kKind,
                     .seed = options_.seed,
                     .parameters = {options_.capacity, std::bit_cast<uint64_t>(options_.fpr),
                                    layers_.size(), doublings_, count_}},
                    payload);
}

Result<ScalableBloomFilter> ScalableBloomFilter::Deserialize(std::string_view bytes,
                                                             OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(OpenedFilter opened, OpenFilter(bytes, kKind, 5, mode));
  const auto& p = opened.header.parameters;
  const Options options{p[0], std::bit_cast<double>(p[1]), opened.header.seed};
  // After 64 doublings no layer would be larger or rarer than the one before.
  if (!options.Validate().ok() || p[3] > 64) {
    return FilterDataLoss(kKind, "impossible capacity, rate or doublings");
  }
  ScalableBloomFilter filter(options);
  filter.doublings_ = static_cast<uint32_t>(p[3]);
  filter.count_ = p[4];
  auto rest = opened.payload;
  while (!rest.empty()) {
    const uint64_t size = rest[0];
    rest = rest.subspan(1);
    if (size % sizeof(uint64_t) != 0 || size / sizeof(uint64_t) > rest.size()) {
      return FilterDataLoss(kKind, "its layers do not fit the payload");
    }
    TAMIS_ASSIGN_OR_RETURN(
        BlockedBloomFilter layer,
        BlockedBloomFilter::Deserialize({reinterpret_cast<const char*>(rest.data()), size}, mode));
    if (layer.seed() != options.seed) return FilterDataLoss(kKind, "a layer has another seed");
    filter.layers_.push_back(std::move(layer));
    rest = rest.subspan(size / sizeof(uint64_t));
  }
  if (filter.layers_.empty() || filter.layers_.size() != p[2]) {
    return FilterDataLoss(kKind, "its layers do not fit the payload");
  }
  // The next layer is twice as large as the header says that the open one is; half of it may be a
  // matter of rounding.
  if (BlockedBloomFilter::CapacityFor(filter.layers_.back().SizeBytes(),
                                      LayerFpr(options.fpr, filter.doublings_)) <
      LayerCapacity(options.capacity, filter.doublings_) / 2) {
    return FilterDataLoss(kKind, "its open layer is smaller than its capacity");
  }
  return filter;
}

}  // namespace tamis
