#include "tamis/filter/projected_counting_bloom_filter.h"

#include <algorithm>
#include <cmath>

#include "tamis/filter/fpr.h"
#include "tamis/filter/internal/batch.h"

namespace tamis {

Result<ProjectedCountingBloomFilter> ProjectedCountingBloomFilter::Create(const Options& options) {
  TAMIS_RETURN_IF_ERROR(options.Validate());
  const double bits =
      static_cast<double>(options.capacity) * fpr::SplitBlockBits(options.fpr, kLanes);
  const SplitBlocks blocks(kLanes, std::max<uint64_t>(1, std::ceil(bits / (kLanes * kLaneBits))));
  return ProjectedCountingBloomFilter(options.seed, blocks, WordArray(blocks.words()),
                                      CounterArray(blocks.words() * 64));
}

// The bits are written as atomics, for MayContainWhileWritten. No other thread writes them, so a
// load and a store suffice. Two lanes are one word. There are no branches, since the old value of a
// counter is random.
bool ProjectedCountingBloomFilter::Insert(uint64_t hash) {
  uint64_t* bits = bits_.MutableData() + blocks_.Word(hash);
  const uint64_t first = blocks_.Block(hash) * kLanes * kLaneBits;
  for (uint32_t lane = 0; lane < kLanes; lane += 2) {
    uint64_t set = 0;
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t bit = i * kLaneBits + SplitBlocks::LaneBit(hash, lane + i);
      counters_.Increment(first + uint64_t{lane} * kLaneBits + bit);
      set |= uint64_t{1} << bit;
    }
    std::atomic_ref<uint64_t> word(bits[lane / 2]);
    word.store(word.load(std::memory_order_relaxed) | set, std::memory_order_release);
  }
  ++count_;
  return true;
}

bool ProjectedCountingBloomFilter::Erase(uint64_t hash) {
  if (!MayContain(hash)) return false;
  uint64_t* bits = bits_.MutableData() + blocks_.Word(hash);
  const uint64_t first = blocks_.Block(hash) * kLanes * kLaneBits;
  for (uint32_t lane = 0; lane < kLanes; lane += 2) {
    uint64_t cleared = 0;
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t bit = i * kLaneBits + SplitBlocks::LaneBit(hash, lane + i);
      const uint64_t position = first + uint64_t{lane} * kLaneBits + bit;
      // A bit without a counter is there only in bytes that were mapped unchecked.
      if (counters_.Get(position) == 0) continue;
      const CounterArray::Lowering lowering = counters_.Decrement(position);
      cleared |= uint64_t{lowering == CounterArray::Lowering::kCleared} << bit;
      ignored_decrements_ += lowering == CounterArray::Lowering::kSticky;
    }
    std::atomic_ref<uint64_t> word(bits[lane / 2]);
    word.store(word.load(std::memory_order_relaxed) & ~cleared, std::memory_order_release);
  }
  count_ -= count_ > 0;
  return true;
}

bool ProjectedCountingBloomFilter::MayContainWhileWritten(uint64_t hash) const {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint64_t position = Position(hash, lane);
    // atomic_ref takes no const object before C++26; it only loads here.
    const std::atomic_ref<uint64_t> word(const_cast<uint64_t&>(bits_.data()[position / 64]));
    if ((word.load(std::memory_order_acquire) >> (position % 64) & 1) == 0) return false;
  }
  return true;
}

void ProjectedCountingBloomFilter::Prefetch(uint64_t hash) const {
  __builtin_prefetch(bits_.data() + blocks_.Word(hash), 1);
  const uint64_t first = blocks_.Block(hash) * kLanes * kLaneBits;
  counters_.Prefetch(first);
  counters_.Prefetch(first + kLanes * kLaneBits / 2);
}

Bitmap ProjectedCountingBloomFilter::Insert(std::span<const uint64_t> hashes) {
  return AnswerBatch(
      hashes, [this](uint64_t hash) { Prefetch(hash); },
      [this](uint64_t hash) { return Insert(hash); });
}

Bitmap ProjectedCountingBloomFilter::Erase(std::span<const uint64_t> hashes) {
  return AnswerBatch(
      hashes, [this](uint64_t hash) { Prefetch(hash); },
      [this](uint64_t hash) { return Erase(hash); });
}

void ProjectedCountingBloomFilter::Project() {
  uint64_t* bits = bits_.MutableData();
  for (size_t w = 0; w < bits_.size(); ++w) {
    bits[w] = CounterArray::NonzeroBits(&counters_.words().data()[w * 4]);
  }
}

Status ProjectedCountingBloomFilter::Merge(const ProjectedCountingBloomFilter& other) {
  if (blocks_.blocks() != other.blocks_.blocks() || seed_ != other.seed_) {
    return InvalidArgument(
        "cannot merge projected counting Bloom filters of different size or seed");
  }
  bits_.MutableData();  // the allocation comes first, so that nothing is changed when it fails
  counters_.Add(other.counters_);
  Project();
  count_ += other.count_;
  ignored_decrements_ += other.ignored_decrements_;
  return Status::Ok();
}

void ProjectedCountingBloomFilter::Clear() {
  *this = ProjectedCountingBloomFilter(seed_, blocks_, WordArray(blocks_.words()),
                                       CounterArray(blocks_.words() * 64));
}

double ProjectedCountingBloomFilter::Fill() const {
  return static_cast<double>(counters_.nonzero()) / static_cast<double>(counters_.size());
}

double ProjectedCountingBloomFilter::ExpectedFpr() const {
  return blocks_.ExpectedFpr(bits_.data());
}

uint64_t ProjectedCountingBloomFilter::CapacityFor(size_t size_bytes, double fpr) {
  // A bit and a counter of four.
  return static_cast<uint64_t>(static_cast<double>(size_bytes) * 8 / 5 /
                               fpr::SplitBlockBits(fpr, kLanes));
}

double ProjectedCountingBloomFilter::FprFor(size_t size_bytes, uint64_t capacity) {
  const double bits = static_cast<double>(size_bytes) * 8 / 5;
  return fpr::SplitBlock(bits / static_cast<double>(capacity), kLanes);
}

std::string ProjectedCountingBloomFilter::Serialize() const {
  const std::array<std::span<const uint64_t>, 2> parts = {bits_.words(), counters_.words().words()};
  return SealFilter({.kind = kKind,
                     .seed = seed_,
                     .parameters = {blocks_.blocks(), count_, ignored_decrements_,
                                    counters_.nonzero(), counters_.saturated()}},
                    parts);
}

Result<ProjectedCountingBloomFilter> ProjectedCountingBloomFilter::Deserialize(
    std::string_view bytes, OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(OpenedFilter opened, OpenFilter(bytes, kKind, 5, mode));
  const auto& p = opened.header.parameters;
  // Four words of bits and sixteen of counters a block.
  constexpr uint64_t kBitWords = kLanes / 2;
  constexpr uint64_t kBlockWords = kBitWords * 5;
  const uint64_t words = opened.payload.size();
  if (words == 0 || words % kBlockWords != 0 || words / kBlockWords != p[0]) {
    return FilterDataLoss(kKind, "its blocks do not fit the payload");
  }
  const SplitBlocks blocks(kLanes, p[0]);
  CounterArray counters(opened.Take(blocks.words(), blocks.words() * 4), blocks.words() * 64, p[3],
                        p[4]);
  ProjectedCountingBloomFilter filter(opened.header.seed, blocks, opened.Take(0, blocks.words()),
                                      std::move(counters));
  filter.count_ = p[1];
  filter.ignored_decrements_ = p[2];
  if (mode == OpenMode::kCopy) {
    bool agree = filter.counters_.IsConsistent();
    for (size_t w = 0; agree && w < blocks.words(); ++w) {
      agree = filter.bits_[w] == CounterArray::NonzeroBits(&filter.counters_.words().data()[w * 4]);
    }
    if (!agree) return FilterDataLoss(kKind, "its bits and counters do not add up");
  }
  return filter;
}

}  // namespace tamis
