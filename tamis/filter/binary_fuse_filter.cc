#include "tamis/filter/binary_fuse_filter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tamis/filter/internal/batch.h"

namespace tamis {
namespace {

constexpr uint64_t kMaxAttempts = 100;  // one is enough more than nine times of ten
constexpr uint32_t kMaxSegmentBits = 18;
constexpr uint32_t kMaxFingerprintBits = 30;  // for FilterOptions::kMinFpr

uint32_t FingerprintBits(double fpr) {
  return std::max(1u, static_cast<uint32_t>(std::ceil(-std::log2(fpr) - 1e-9)));
}

}  // namespace

// The paper's formulas for three slots a key, found there by experiment.
BinaryFuseFilter::Shape BinaryFuseFilter::ShapeFor(uint64_t keys, uint32_t fingerprint_bits) {
  const auto n = static_cast<double>(std::max<uint64_t>(keys, 2));
  Shape shape{.fingerprint_bits = fingerprint_bits};
  shape.segment_bits = std::min(
      kMaxSegmentBits, static_cast<uint32_t>(std::floor(std::log(n) / std::log(3.33) + 2.25)));
  const double slots_per_key = std::max(1.125, 0.875 + 0.25 * std::log(1e6) / std::log(n));
  const auto segments = static_cast<uint64_t>(
      std::ceil(n * slots_per_key / static_cast<double>(uint64_t{1} << shape.segment_bits)));
  shape.starts = std::max<uint64_t>(segments, 3) - 2;
  return shape;
}

Result<BinaryFuseFilter> BinaryFuseFilter::Build(std::span<const uint64_t> hashes,
                                                 const Options& options) {
  FilterOptions checked = options;
  checked.capacity = std::max<uint64_t>(1, hashes.size());
  TAMIS_RETURN_IF_ERROR(checked.Validate());
  BinaryFuseFilter filter;
  filter.seed_ = options.seed;
  std::vector<uint64_t> mixed(hashes.size());
  for (; filter.attempt_ < kMaxAttempts; ++filter.attempt_) {
    std::transform(hashes.begin(), hashes.end(), mixed.begin(),
                   [&](uint64_t hash) { return Mixed(hash, filter.attempt_); });
    // In order, the slots are walked through once instead of at random.
    std::sort(mixed.begin(), mixed.end());
    mixed.erase(std::unique(mixed.begin(), mixed.end()), mixed.end());
    filter.count_ = mixed.size();
    filter.shape_ = ShapeFor(filter.count_, FingerprintBits(options.fpr));
    filter.words_ = WordArray(filter.shape_.words());
    if (filter.TryToBuild(mixed)) return filter;
    mixed.resize(hashes.size());
  }
  return Internal("cannot build a binary fuse filter of " + std::to_string(filter.count_) +
                  " keys: none of " + std::to_string(kMaxAttempts) + " attempts went well");
}

BinaryFuseFilter::Place BinaryFuseFilter::Find(uint64_t mixed) const {
  const uint64_t segment = uint64_t{1} << shape_.segment_bits;
  const uint64_t first = FastRange(mixed, shape_.starts << shape_.segment_bits);
  return {{first, (first + segment) ^ (mixed >> 18 & (segment - 1)),
           (first + 2 * segment) ^ (mixed & (segment - 1))},
          (mixed ^ mixed >> 32) & shape_.mask()};
}

bool BinaryFuseFilter::TryToBuild(std::span<const uint64_t> mixed) {
  // For each slot, the number of keys that use it, and their XOR, which is the key when it is one.
  const uint64_t slots = shape_.slots();
  std::vector<uint32_t> counts(slots);
  std::vector<uint64_t> sums(slots);
  for (const uint64_t key : mixed) {
    for (const uint64_t slot : Find(key).slots) {
      ++counts[slot];
      sums[slot] ^= key;
    }
  }

  struct Turn {
    uint64_t key;
    uint64_t slot;  // which is the key's own
  };
  std::vector<Turn> turns;  // the last is given its slot first
  turns.reserve(mixed.size());
  std::vector<uint64_t> alone;
  const auto take = [&](uint64_t slot) {
    alone.push_back(slot);
    while (!alone.empty()) {
      const uint64_t own = alone.back();
      alone.pop_back();
      if (counts[own] != 1) continue;  // its key was taken by another of its slots
      const uint64_t key = sums[own];
      turns.push_back({key, own});
      for (const uint64_t other : Find(key).slots) {
        sums[other] ^= key;
        if (--counts[other] == 1) alone.push_back(other);
      }
    }
  };
  for (uint64_t slot = 0; slot < slots; ++slot) {
    if (counts[slot] == 1) take(slot);
  }
  if (turns.size() < mixed.size()) return false;

  uint64_t* words = words_.MutableData();
  for (; !turns.empty(); turns.pop_back()) {
    const Turn& turn = turns.back();
    const Place place = Find(turn.key);
    uint64_t fingerprint = place.fingerprint;
    for (const uint64_t slot : place.slots) fingerprint ^= Load(slot);  // the own one is still 0
    const uint64_t bit = turn.slot * shape_.fingerprint_bits;
    words[bit / 64] |= fingerprint << (bit % 64);
    if (bit % 64 + shape_.fingerprint_bits > 64)
      words[bit / 64 + 1] |= fingerprint >> (64 - bit % 64);
  }
  return true;
}

uint64_t BinaryFuseFilter::Load(uint64_t slot) const {
  const uint64_t bit = slot * shape_.fingerprint_bits;
  uint64_t word;
  std::memcpy(&word, reinterpret_cast<const char*>(words_.data()) + bit / 8, sizeof word);
  return word >> (bit % 8) & shape_.mask();
}

bool BinaryFuseFilter::MayContain(uint64_t hash) const {
  const Place place = Find(Mixed(hash, attempt_));
  const uint64_t found = Load(place.slots[0]) ^ Load(place.slots[1]) ^ Load(place.slots[2]);
  return found == place.fingerprint && count_ != 0;
}

Bitmap BinaryFuseFilter::MayContain(std::span<const uint64_t> hashes) const {
  return AnswerBatch(
      hashes,
      [this](uint64_t hash) {
        for (const uint64_t slot : Find(Mixed(hash, attempt_)).slots) {
          __builtin_prefetch(words_.data() + slot * shape_.fingerprint_bits / 64);
        }
      },
      [this](uint64_t hash) { return MayContain(hash); });
}

double BinaryFuseFilter::Fill() const {
  return static_cast<double>(count_) / static_cast<double>(shape_.slots());
}

double BinaryFuseFilter::ExpectedFpr() const {
  return count_ == 0 ? 0 : std::exp2(-static_cast<double>(shape_.fingerprint_bits));
}

uint64_t BinaryFuseFilter::CapacityFor(size_t size_bytes, double fpr) {
  const uint32_t bits = FingerprintBits(fpr);
  uint64_t low = 0;
  uint64_t high = size_bytes * 8 / bits + 1;
  while (high - low > 1) {
    const uint64_t keys = low + (high - low) / 2;
    (ShapeFor(keys, bits).words() * sizeof(uint64_t) <= size_bytes ? low : high) = keys;
  }
  return low;
}

double BinaryFuseFilter::FprFor(size_t size_bytes, uint64_t capacity) {
  uint32_t bits = 0;
  while (bits < kMaxFingerprintBits &&
         ShapeFor(capacity, bits + 1).words() * sizeof(uint64_t) <= size_bytes) {
    ++bits;
  }
  return std::exp2(-static_cast<double>(bits));
}

std::string BinaryFuseFilter::Serialize() const {
  return SealFilter({.kind = kKind,
                     .seed = seed_,
                     .parameters = {shape_.fingerprint_bits, shape_.segment_bits, shape_.starts,
                                    attempt_, count_}},
                    words_.words());
}

Result<BinaryFuseFilter> BinaryFuseFilter::Deserialize(std::string_view bytes, OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(const OpenedFilter opened, OpenFilter(bytes, kKind, 5, mode));
  const uint64_t bits = opened.header.parameters[0];
  const uint64_t segment_bits = opened.header.parameters[1];
  const uint64_t starts = opened.header.parameters[2];
  if (bits < 1 || bits > kMaxFingerprintBits) {
    return FilterDataLoss(kKind, "impossible width of fingerprints");
  }
  if (segment_bits > kMaxSegmentBits) return FilterDataLoss(kKind, "impossible segments");
  const size_t words = opened.payload.size();
  BinaryFuseFilter filter;
  filter.seed_ = opened.header.seed;
  filter.attempt_ = opened.header.parameters[3];
  filter.count_ = opened.header.parameters[4];
  filter.shape_ = {static_cast<uint32_t>(bits), static_cast<uint32_t>(segment_bits), starts};
  // Bounded first, so that what they come to does not overflow.
  if (starts < 1 || starts > words * 64 >> segment_bits || filter.shape_.words() != words) {
    return FilterDataLoss(kKind, "its segments do not fit the payload");
  }
  if (filter.count_ > filter.shape_.slots()) {
    return FilterDataLoss(kKind, "it has more keys than slots");
  }
  filter.words_ = opened.Take(0, words);
  return filter;
}

}  // namespace tamis
