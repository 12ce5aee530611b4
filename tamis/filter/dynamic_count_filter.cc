#include "tamis/filter/dynamic_count_filter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>

#include "tamis/filter/fpr.h"
#include "tamis/filter/internal/batch.h"

namespace tamis {

Result<DynamicCountFilter> DynamicCountFilter::Create(const Options& options) {
  TAMIS_RETURN_IF_ERROR(options.Validate());
  const BloomPositions positions = BloomPositions::For(options.fpr, options.capacity);
  return DynamicCountFilter(options.seed, positions, 0, WordArray(LowWords(positions.positions)),
                            WordArray());
}

uint64_t DynamicCountFilter::High(uint64_t position) const {
  if (high_bits_ == 0) return 0;
  const uint64_t bit = position * high_bits_;
  uint64_t word;
  std::memcpy(&word, reinterpret_cast<const char*>(high_.data()) + bit / 8, sizeof(word));
  return word >> (bit % 8) & ((uint64_t{1} << high_bits_) - 1);
}

uint64_t DynamicCountFilter::Get(uint64_t position) const {
  return (low_[position / 16] >> (position % 16 * 4) & 15) | High(position) << kLowBits;
}

void DynamicCountFilter::MakeRoomFor(uint64_t value) {
  const auto bits = static_cast<uint32_t>(std::bit_width(value >> kLowBits));
  if (bits > high_bits_) SetHighBits(bits);
}

void DynamicCountFilter::Set(uint64_t position, uint64_t value) {
  MakeRoomFor(value);  // before anything is changed: it allocates
  const uint32_t shift = position % 16 * 4;
  uint64_t& low = low_.MutableData()[position / 16];
  low = (low & ~(uint64_t{15} << shift)) | (value & 15) << shift;
  if (high_bits_ == 0) return;
  const uint64_t bit = position * high_bits_;
  char* at = reinterpret_cast<char*>(high_.MutableData()) + bit / 8;
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  const uint64_t mask = ((uint64_t{1} << high_bits_) - 1) << (bit % 8);
  word = (word & ~mask) | (value >> kLowBits) << (bit % 8);
  std::memcpy(at, &word, sizeof(word));
}

void DynamicCountFilter::SetHighBits(uint32_t bits) {
  WordArray high(HighWords(positions_.positions, bits));
  for (uint64_t i = 0; bits != 0 && i < positions_.positions; ++i) {
    const uint64_t value = High(i);
    if (value == 0) continue;
    const uint64_t bit = i * bits;
    char* at = reinterpret_cast<char*>(high.MutableData()) + bit / 8;
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    word |= value << (bit % 8);
    std::memcpy(at, &word, sizeof(word));
  }
  high_ = std::move(high);
  high_bits_ = bits;
}

// Looking at all counters costs as much as there are, so it waits for as many erases.
void DynamicCountFilter::NarrowNowAndThen() try {
  if (count_ != 0 && ++erases_ < positions_.positions) return;
  erases_ = 0;
  uint64_t all = 0;
  for (uint64_t i = 0; high_bits_ != 0 && i < positions_.positions; ++i) all |= High(i);
  const auto bits = static_cast<uint32_t>(std::bit_width(all));
  if (bits < high_bits_) SetHighBits(bits);
} catch (const std::bad_alloc&) {
  // It stays as wide as it is.
}

bool DynamicCountFilter::Add(uint64_t hash) {
  constexpr uint64_t kGreatest = UINT32_MAX;
  uint64_t greatest = 0;
  positions_.ForEach(hash, [&](uint64_t position) {
    greatest = std::max(greatest, Get(position));
    return true;
  });
  // A position may come up to so many times for one key.
  if (greatest > kGreatest - positions_.hashes) return false;
  Own();
  MakeRoomFor(greatest + 1);
  positions_.ForEach(hash, [this](uint64_t position) {
    const uint64_t old = Get(position);
    nonzero_ += old == 0;
    Set(position, old + 1);
    return true;
  });
  ++count_;
  return true;
}

bool DynamicCountFilter::Erase(uint64_t hash) {
  if (!MayContain(hash)) return false;
  Own();
  positions_.ForEach(hash, [this](uint64_t position) {
    const uint64_t old = Get(position);
    if (old == 0) return true;  // only when a key was erased that was never inserted
    nonzero_ -= old == 1;
    Set(position, old - 1);
    return true;
  });
  count_ -= count_ > 0;
  NarrowNowAndThen();
  return true;
}

uint32_t DynamicCountFilter::Copies(uint64_t hash) const {
  uint64_t least = UINT32_MAX;
  positions_.ForEach(hash, [&](uint64_t position) {
    least = std::min(least, Get(position));
    return least != 0;
  });
  return static_cast<uint32_t>(least);
}

Bitmap DynamicCountFilter::MayContain(std::span<const uint64_t> hashes) const {
  return AnswerBatch(
      hashes,
      [this](uint64_t hash) {
        positions_.ForEach(hash, [this](uint64_t position) {
          __builtin_prefetch(low_.data() + position / 16);
          return true;
        });
      },
      [this](uint64_t hash) { return MayContain(hash); });
}

Status DynamicCountFilter::Merge(const DynamicCountFilter& other) {
  if (positions_ != other.positions_ || seed_ != other.seed_) {
    return InvalidArgument("cannot merge dynamic count filters of different size or seed");
  }
  DynamicCountFilter merged = *this;
  for (uint64_t i = 0; i < positions_.positions; ++i) {
    const uint64_t more = other.Get(i);
    if (more == 0) continue;
    const uint64_t old = Get(i);
    if (old + more > UINT32_MAX) {
      return ResourceExhausted("cannot merge dynamic count filters: a counter would overflow");
    }
    merged.nonzero_ += old == 0;
    merged.Set(i, old + more);
  }
  merged.count_ = count_ + other.count_;
  *this = std::move(merged);
  return Status::Ok();
}

void DynamicCountFilter::Clear() {
  *this = DynamicCountFilter(seed_, positions_, 0, WordArray(low_.size()), WordArray());
}

double DynamicCountFilter::Fill() const {
  return static_cast<double>(nonzero_) / static_cast<double>(positions_.positions);
}

double DynamicCountFilter::ExpectedFpr() const { return std::pow(Fill(), positions_.hashes); }

uint64_t DynamicCountFilter::CapacityFor(size_t size_bytes, double fpr) {
  return static_cast<uint64_t>(static_cast<double>(size_bytes) * 2 / fpr::BloomBits(1, fpr));
}

double DynamicCountFilter::FprFor(size_t size_bytes, uint64_t capacity) {
  const double counters = static_cast<double>(size_bytes) * 2;
  const auto keys = static_cast<double>(capacity);
  return fpr::Bloom(counters, keys, fpr::BloomHashes(counters, keys));
}

std::string DynamicCountFilter::Serialize() const {
  const std::array<std::span<const uint64_t>, 2> parts = {low_.words(), high_.words()};
  return SealFilter({.kind = kKind,
                     .seed = seed_,
                     .parameters = {positions_.positions, positions_.hashes, high_bits_, count_,
                                    nonzero_, erases_}},
                    parts);
}

Result<DynamicCountFilter> DynamicCountFilter::Deserialize(std::string_view bytes, OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(OpenedFilter opened, OpenFilter(bytes, kKind, 6, mode));
  const auto& p = opened.header.parameters;
  const uint64_t words = opened.payload.size();
  if (p[1] < 1 || p[1] > BloomPositions::kMaxHashes || p[2] > kMaxHighBits) {
    return FilterDataLoss(kKind, "impossible hashes or counters");
  }
  // The first comparison keeps the sizes after it from overflowing.
  const auto high_bits = static_cast<uint32_t>(p[2]);
  if (p[0] < 1 || p[0] > words * 16 || LowWords(p[0]) + HighWords(p[0], high_bits) != words) {
    return FilterDataLoss(kKind, "its counters do not fit the payload");
  }
  const uint64_t low_words = LowWords(p[0]);
  DynamicCountFilter filter(opened.header.seed, {p[0], static_cast<uint32_t>(p[1])}, high_bits,
                            opened.Take(0, low_words), opened.Take(low_words, words - low_words));
  filter.count_ = p[3];
  filter.nonzero_ = p[4];
  filter.erases_ = p[5];
  if (mode == OpenMode::kCopy) {
    // Written again, the counters are the same bytes: nothing stands after the last one.
    DynamicCountFilter made(opened.header.seed, filter.positions_, 0, WordArray(low_words),
                            WordArray());
    made.SetHighBits(high_bits);
    uint64_t nonzero = 0;
    for (uint64_t i = 0; i < p[0]; ++i) {
      const uint64_t value = filter.Get(i);
      if (value == 0) continue;
      ++nonzero;
      made.Set(i, value);
    }
    if (nonzero != p[4] || !std::ranges::equal(made.low_.words(), filter.low_.words()) ||
        !std::ranges::equal(made.high_.words(), filter.high_.words())) {
      return FilterDataLoss(kKind, "its counters do not add up");
    }
  }
  return filter;
}

}  // namespace tamis
