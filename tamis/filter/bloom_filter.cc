#include "tamis/filter/bloom_filter.h"

#include <bit>
#include <cmath>

#include "tamis/filter/fpr.h"
#include "tamis/filter/internal/batch.h"

namespace tamis {

Result<BloomFilter> BloomFilter::Create(const Options& options) {
  TAMIS_RETURN_IF_ERROR(options.Validate());
  BloomFilter filter;
  filter.seed_ = options.seed;
  filter.positions_ = BloomPositions::For(options.fpr, options.capacity);
  filter.words_ = WordArray((filter.bits() + 63) / 64);
  return filter;
}

bool BloomFilter::Insert(uint64_t hash) {
  uint64_t* words = words_.MutableData();
  positions_.ForEach(hash, [&](uint64_t bit) {
    words[bit / 64] |= uint64_t{1} << (bit % 64);
    return true;
  });
  ++count_;
  return true;
}

bool BloomFilter::MayContain(uint64_t hash) const {
  return positions_.ForEach(hash, [&](uint64_t bit) { return words_[bit / 64] >> (bit % 64) & 1; });
}

Bitmap BloomFilter::MayContain(std::span<const uint64_t> hashes) const {
  return AnswerBatch(
      hashes,
      [this](uint64_t hash) {
        positions_.ForEach(hash, [this](uint64_t bit) {
          __builtin_prefetch(words_.data() + bit / 64);
          return true;
        });
      },
      [this](uint64_t hash) { return MayContain(hash); });
}

Status BloomFilter::Merge(const BloomFilter& other) {
  if (positions_ != other.positions_ || seed_ != other.seed_) {
    return InvalidArgument("cannot merge Bloom filters of different size or seed");
  }
  uint64_t* words = words_.MutableData();
  for (size_t i = 0; i < words_.size(); ++i) words[i] |= other.words_[i];
  count_ += other.count_;
  return Status::Ok();
}

void BloomFilter::Clear() {
  words_ = WordArray(words_.size());
  count_ = 0;
}

double BloomFilter::Fill() const {
  uint64_t set = 0;
  for (const uint64_t word : words_.words()) set += std::popcount(word);
  return static_cast<double>(set) / static_cast<double>(bits());
}

double BloomFilter::ExpectedFpr() const { return std::pow(Fill(), hashes()); }

uint64_t BloomFilter::CapacityFor(size_t size_bytes, double fpr) {
  return static_cast<uint64_t>(static_cast<double>(size_bytes) * 8 / fpr::BloomBits(1, fpr));
}

double BloomFilter::FprFor(size_t size_bytes, uint64_t capacity) {
  const double bits = static_cast<double>(size_bytes) * 8;
  const auto keys = static_cast<double>(capacity);
  return fpr::Bloom(bits, keys, fpr::BloomHashes(bits, keys));
}

std::string BloomFilter::Serialize() const {
  return SealFilter({.kind = kKind, .seed = seed_, .parameters = {bits(), hashes(), count_}},
                    words_.words());
}

Result<BloomFilter> BloomFilter::Deserialize(std::string_view bytes, OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(OpenedFilter opened, OpenFilter(bytes, kKind, 3, mode));
  BloomFilter filter;
  filter.seed_ = opened.header.seed;
  filter.positions_.positions = opened.header.parameters[0];
  filter.count_ = opened.header.parameters[2];
  const uint64_t hashes = opened.header.parameters[1];
  if (hashes < 1 || hashes > BloomPositions::kMaxHashes)
    return FilterDataLoss(kKind, "impossible hash count");
  filter.positions_.hashes = static_cast<uint32_t>(hashes);
  const size_t words = opened.payload.size();
  if (filter.bits() == 0 || filter.bits() / 64 + (filter.bits() % 64 != 0) != words) {
    return FilterDataLoss(kKind, "its bits do not fit the payload");
  }
  if (mode == OpenMode::kCopy && filter.bits() % 64 != 0 &&
      opened.payload.back() >> (filter.bits() % 64) != 0) {
    return FilterDataLoss(kKind, "bits are set behind the last one");
  }
  filter.words_ = opened.Take(0, words);
  return filter;
}

}  // namespace tamis
