#include "tamis/filter/counting_bloom_filter.h"

#include <cmath>

#include "tamis/filter/fpr.h"
#include "tamis/filter/internal/batch.h"

namespace tamis {

Result<CountingBloomFilter> CountingBloomFilter::Create(const Options& options) {
  TAMIS_RETURN_IF_ERROR(options.Validate());
  const BloomPositions positions = BloomPositions::For(options.fpr, options.capacity);
  return CountingBloomFilter(options.seed, positions, CounterArray(positions.positions));
}

bool CountingBloomFilter::Insert(uint64_t hash) {
  positions_.ForEach(hash, [this](uint64_t position) {
    counters_.Increment(position);
    return true;
  });
  ++count_;
  return true;
}

bool CountingBloomFilter::Erase(uint64_t hash) {
  if (!MayContain(hash)) return false;
  positions_.ForEach(hash, [this](uint64_t position) {
    // 0 only when a key that was never inserted is erased and has a position twice.
    if (counters_.Get(position) != 0 &&
        counters_.Decrement(position) == CounterArray::Lowering::kSticky) {
      ++ignored_decrements_;
    }
    return true;
  });
  count_ -= count_ > 0;
  return true;
}

bool CountingBloomFilter::MayContain(uint64_t hash) const {
  return positions_.ForEach(hash,
                            [this](uint64_t position) { return counters_.Get(position) != 0; });
}

Bitmap CountingBloomFilter::MayContain(std::span<const uint64_t> hashes) const {
  return AnswerBatch(
      hashes,
      [this](uint64_t hash) {
        positions_.ForEach(hash, [this](uint64_t position) {
          counters_.Prefetch(position);
          return true;
        });
      },
      [this](uint64_t hash) { return MayContain(hash); });
}

Status CountingBloomFilter::Merge(const CountingBloomFilter& other) {
  if (positions_ != other.positions_ || seed_ != other.seed_) {
    return InvalidArgument("cannot merge counting Bloom filters of different size or seed");
  }
  counters_.Add(other.counters_);
  count_ += other.count_;
  ignored_decrements_ += other.ignored_decrements_;
  return Status::Ok();
}

void CountingBloomFilter::Clear() {
  *this = CountingBloomFilter(seed_, positions_, CounterArray(positions_.positions));
}

double CountingBloomFilter::Fill() const {
  return static_cast<double>(counters_.nonzero()) / static_cast<double>(counters_.size());
}

double CountingBloomFilter::ExpectedFpr() const { return std::pow(Fill(), positions_.hashes); }

uint64_t CountingBloomFilter::CapacityFor(size_t size_bytes, double fpr) {
  return static_cast<uint64_t>(static_cast<double>(size_bytes) * 2 / fpr::BloomBits(1, fpr));
}

double CountingBloomFilter::FprFor(size_t size_bytes, uint64_t capacity) {
  const double positions = static_cast<double>(size_bytes) * 2;
  const auto keys = static_cast<double>(capacity);
  return fpr::Bloom(positions, keys, fpr::BloomHashes(positions, keys));
}

std::string CountingBloomFilter::Serialize() const {
  return SealFilter(
      {.kind = kKind,
       .seed = seed_,
       .parameters = {positions_.positions, positions_.hashes, count_, ignored_decrements_,
                      counters_.nonzero(), counters_.saturated()}},
      counters_.words().words());
}

Result<CountingBloomFilter> CountingBloomFilter::Deserialize(std::string_view bytes,
                                                             OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(OpenedFilter opened, OpenFilter(bytes, kKind, 6, mode));
  const auto& p = opened.header.parameters;
  if (p[1] < 1 || p[1] > BloomPositions::kMaxHashes) {
    return FilterDataLoss(kKind, "impossible hash count");
  }
  if (p[0] < 1 || CounterArray::WordsFor(p[0]) != opened.payload.size()) {
    return FilterDataLoss(kKind, "its counters do not fit the payload");
  }
  CounterArray counters(opened.Take(0, opened.payload.size()), p[0], p[4], p[5]);
  if (mode == OpenMode::kCopy && !counters.IsConsistent()) {
    return FilterDataLoss(kKind, "its counters do not add up");
  }
  CountingBloomFilter filter(opened.header.seed, {p[0], static_cast<uint32_t>(p[1])},
                             std::move(counters));
  filter.count_ = p[2];
  filter.ignored_decrements_ = p[3];
  return filter;
}

}  // namespace tamis
