#include "tamis/filter/blocked_split_counting_bloom_filter.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tamis/filter/fpr.h"

namespace tamis {
namespace {

constexpr uint32_t kLanes = kCounterBlockWords;
constexpr uint32_t kLanePositions = 16;
constexpr double kCounterBits = 4;

}  // namespace

Result<BlockedSplitCountingBloomFilter> BlockedSplitCountingBloomFilter::Create(
    const Options& options) {
  TAMIS_RETURN_IF_ERROR(options.Validate());
  const double positions = static_cast<double>(options.capacity) *
                           fpr::SplitBlockBits(options.fpr, kLanes, kLanePositions);
  const auto blocks = std::max<uint64_t>(1, std::ceil(positions / (kLanes * kLanePositions)));
  return BlockedSplitCountingBloomFilter(options.seed, WordArray(blocks * kCounterBlockWords));
}

Bitmap BlockedSplitCountingBloomFilter::Insert(std::span<const uint64_t> hashes) {
  Bitmap inserted = AllOnes(hashes.size());
  Raised(hashes.size(), functions_.raise_many(words_.MutableData(), blocks(), hashes));
  return inserted;
}

Bitmap BlockedSplitCountingBloomFilter::Erase(std::span<const uint64_t> hashes) {
  Bitmap erased((hashes.size() + 63) / 64);
  const CounterChange change =
      functions_.lower_many(words_.MutableData(), blocks(), hashes, erased.data());
  uint64_t keys = 0;
  for (const uint64_t word : erased) keys += std::popcount(word);
  Lowered(keys, change);
  return erased;
}

Bitmap BlockedSplitCountingBloomFilter::MayContain(std::span<const uint64_t> hashes) const {
  Bitmap answers((hashes.size() + 63) / 64);
  functions_.test_many(words_.data(), blocks(), hashes, answers.data());
  return answers;
}

Status BlockedSplitCountingBloomFilter::Merge(const BlockedSplitCountingBloomFilter& other) {
  if (words_.size() != other.words_.size() || seed_ != other.seed_) {
    return InvalidArgument(
        "cannot merge blocked split counting Bloom filters of different size or seed");
  }
  // Allocations come first, so that nothing is changed when one fails.
  WordArray theirs = &other == this ? words_ : WordArray::Borrow(other.words_.words());
  words_.MutableData();
  CounterArray sum = AsCounters(std::move(words_));
  sum.Add(other.AsCounters(std::move(theirs)));
  nonzero_ = sum.nonzero();
  saturated_ = sum.saturated();
  words_ = std::move(sum).TakeWords();
  count_ += other.count_;
  ignored_decrements_ += other.ignored_decrements_;
  return Status::Ok();
}

void BlockedSplitCountingBloomFilter::Clear() {
  *this = BlockedSplitCountingBloomFilter(seed_, WordArray(words_.size()));
}

double BlockedSplitCountingBloomFilter::Fill() const {
  return static_cast<double>(nonzero_) /
         static_cast<double>(words_.size() * CounterArray::kPerWord);
}

double BlockedSplitCountingBloomFilter::ExpectedFpr() const {
  double sum = 0;
  for (uint64_t block = 0; block < blocks(); ++block) {
    double all = 1;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      all *= std::popcount(CounterArray::NonzeroNibbles(words_[block * kLanes + lane])) /
             static_cast<double>(kLanePositions);
    }
    sum += all;
  }
  return sum / static_cast<double>(blocks());
}

uint64_t BlockedSplitCountingBloomFilter::CapacityFor(size_t size_bytes, double fpr) {
  return static_cast<uint64_t>(static_cast<double>(size_bytes) * 8 / kCounterBits /
                               fpr::SplitBlockBits(fpr, kLanes, kLanePositions));
}

double BlockedSplitCountingBloomFilter::FprFor(size_t size_bytes, uint64_t capacity) {
  const double positions = static_cast<double>(size_bytes) * 8 / kCounterBits;
  return fpr::SplitBlock(positions / static_cast<double>(capacity), kLanes, kLanePositions);
}

std::string BlockedSplitCountingBloomFilter::Serialize() const {
  return SealFilter({.kind = kKind,
                     .seed = seed_,
                     .parameters = {blocks(), count_, ignored_decrements_, nonzero_, saturated_}},
                    words_.words());
}

Result<BlockedSplitCountingBloomFilter> BlockedSplitCountingBloomFilter::Deserialize(
    std::string_view bytes, OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(OpenedFilter opened, OpenFilter(bytes, kKind, 5, mode));
  const auto& p = opened.header.parameters;
  const uint64_t words = opened.payload.size();
  if (words == 0 || words % kCounterBlockWords != 0 || words / kCounterBlockWords != p[0]) {
    return FilterDataLoss(kKind, "its blocks do not fit the payload");
  }
  BlockedSplitCountingBloomFilter filter(opened.header.seed, opened.Take(0, words));
  filter.count_ = p[1];
  filter.ignored_decrements_ = p[2];
  filter.nonzero_ = p[3];
  filter.saturated_ = p[4];
  if (mode == OpenMode::kCopy &&
      !filter.AsCounters(WordArray::Borrow(filter.words_.words())).IsConsistent()) {
    return FilterDataLoss(kKind, "its counters do not add up");
  }
  return filter;
}

}  // namespace tamis
