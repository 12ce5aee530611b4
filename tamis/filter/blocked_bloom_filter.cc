#include "tamis/filter/blocked_bloom_filter.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tamis/filter/fpr.h"

namespace tamis {
namespace {

// The number of lanes that needs fewer bits: 8 down to about 0.07 %, then 16.
uint32_t LanesFor(double fpr) {
  return fpr::SplitBlockBits(fpr, 8) <= fpr::SplitBlockBits(fpr, 16) ? 8 : 16;
}

}  // namespace

Result<BlockedBloomFilter> BlockedBloomFilter::Create(const Options& options) {
  TAMIS_RETURN_IF_ERROR(options.Validate());
  const uint32_t lanes = LanesFor(options.fpr);
  const double bits =
      static_cast<double>(options.capacity) * fpr::SplitBlockBits(options.fpr, lanes);
  const SplitBlocks blocks(lanes, std::max<uint64_t>(1, std::ceil(bits / (32.0 * lanes))));
  return BlockedBloomFilter(options.seed, blocks, WordArray(blocks.words()));
}

Bitmap BlockedBloomFilter::Insert(std::span<const uint64_t> hashes) {
  Bitmap inserted = AllOnes(hashes.size());
  blocks_.Set(words_.MutableData(), hashes);
  count_ += hashes.size();
  return inserted;
}

Status BlockedBloomFilter::Merge(const BlockedBloomFilter& other) {
  if (blocks_.blocks() != other.blocks_.blocks() || blocks_.lanes() != other.blocks_.lanes() ||
      seed_ != other.seed_) {
    return InvalidArgument("cannot merge blocked Bloom filters of different size or seed");
  }
  uint64_t* words = words_.MutableData();
  for (size_t i = 0; i < words_.size(); ++i) words[i] |= other.words_[i];
  count_ += other.count_;
  return Status::Ok();
}

void BlockedBloomFilter::Clear() {
  words_ = WordArray(words_.size());
  count_ = 0;
}

double BlockedBloomFilter::Fill() const {
  uint64_t set = 0;
  for (const uint64_t word : words_.words()) set += std::popcount(word);
  return static_cast<double>(set) / (static_cast<double>(words_.size()) * 64);
}

double BlockedBloomFilter::ExpectedFpr() const { return blocks_.ExpectedFpr(words_.data()); }

uint64_t BlockedBloomFilter::CapacityFor(size_t size_bytes, double fpr) {
  return static_cast<uint64_t>(static_cast<double>(size_bytes) * 8 /
                               fpr::SplitBlockBits(fpr, LanesFor(fpr)));
}

double BlockedBloomFilter::FprFor(size_t size_bytes, uint64_t capacity) {
  const double bits = static_cast<double>(size_bytes) * 8 / static_cast<double>(capacity);
  return std::min(fpr::SplitBlock(bits, 8), fpr::SplitBlock(bits, 16));
}

std::string BlockedBloomFilter::Serialize() const {
  return SealFilter(
      {.kind = kKind, .seed = seed_, .parameters = {blocks_.lanes(), blocks_.blocks(), count_}},
      words_.words());
}

Result<BlockedBloomFilter> BlockedBloomFilter::Deserialize(std::string_view bytes, OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(OpenedFilter opened, OpenFilter(bytes, kKind, 3, mode));
  const auto& p = opened.header.parameters;
  if (p[0] != 8 && p[0] != 16) return FilterDataLoss(kKind, "it has neither 8 nor 16 lanes");
  const auto lanes = static_cast<uint32_t>(p[0]);
  const size_t words = opened.payload.size();
  if (words == 0 || words % (lanes / 2) != 0 || words / (lanes / 2) != p[1]) {
    return FilterDataLoss(kKind, "its blocks do not fit the payload");
  }
  BlockedBloomFilter filter(opened.header.seed, SplitBlocks(lanes, p[1]), opened.Take(0, words));
  filter.count_ = p[2];
  return filter;
}

}  // namespace tamis
