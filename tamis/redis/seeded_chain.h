// SeededChain: the scaling Bloom filter of valkey-bloom, bit for bit, so that a server with this
// module reads its RDB files and logs and answers for the items in them. Hash and geometry are
// those of the Rust crate `bloomfilter` 3; both were found from its documented formats and its
// published source.
//
//   Layout      links, each a plain Bloom filter with a capacity; the newest one takes the items
//   Memory      -ln(rate) / ln(2)^2 bits an item of capacity; link i has `expansion` times the
//               capacity of link i - 1, and `tightening` times its rate
//   FP rate     link 0 has the rate asked for, so that of the chain is higher as it grows:
//               rate / (1 - tightening) at most
//   MayContain  O(links * k)      Add  the same; other results than kNew leave it unchanged
//   Erase       none
//   Threads     const members may run concurrently; others need exclusive access
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/redis/byte_array.h"

namespace tamis::redis {

class SeededChain {
 public:
  using Seed = std::array<uint8_t, 32>;
  // The seed of filters that were made without a random one.
  static const Seed kFixedSeed;

  struct Options {
    double error_rate = 0.01;  // in (0, 1)
    uint64_t capacity = 100;   // the capacity of the first link, at least 1
    uint32_t expansion = 2;    // 0 = does not scale
    double tightening = 0.5;   // in (0, 1)
    Seed seed = kFixedSeed;
  };

  static constexpr size_t kLinkHeader = 45;  // version, size, hashes, seed
  struct Link {
    ByteArray bytes;  // the header of the crate, and the bits
    uint64_t bits = 0;
    uint32_t hashes = 0;
    uint64_t size = 0;  // items that were new to the chain
    uint64_t capacity = 0;
  };
  struct Parts {
    uint64_t expansion = 0;  // at most 32 bits
    double error_rate = 0;
    double tightening = 0;
    bool random_seed = false;
    std::vector<Link> links;  // oldest first; `bits` and `hashes` are those in the bytes
  };

  enum class Added { kNew, kPerhaps, kFull, kNoMemory, kTooLarge, kRateIsZero, kBadCapacity };

  // The bytes that valkey-bloom counts for a chain with this first link; 0 = more than can be.
  static uint64_t FirstSizeBytes(const Options& options);
  // kResourceExhausted when memory does not suffice. REQUIRES: options are in range.
  static Result<SeededChain> Create(const Options& options);
  // Checks all that comes from outside.
  static Result<SeededChain> FromParts(Parts parts);
  // The bytes that BF.LOAD takes. kResourceExhausted when memory does not suffice.
  static Result<SeededChain> FromDump(std::string_view dump);
  std::string Dump() const;

  // A link that would make the chain larger than `greatest_bytes` is not made: kTooLarge.
  Added Add(std::string_view item, uint64_t greatest_bytes);
  bool MayContain(std::string_view item) const;
  void MayContain(std::span<const std::string_view> items, bool* out) const;
  // To be called when an item that another server has could not be added. From now on the chain
  // may contain everything, also after it was saved and loaded.
  void Spoil();

  // How many items a chain made so can grow to within `greatest_bytes`, or until it holds `wanted`.
  // It counts the links one by one, and no further than kGrowthLinks, which takes some 20 ms.
  static constexpr uint64_t kGrowthLinks = uint64_t{1} << 16;
  struct Growth {
    uint64_t capacity = 0;
    Added end = Added::kNew;  // why it grows no further; kNew = it holds `wanted`
  };
  static Growth GrowthOf(const Options& options, uint64_t wanted, uint64_t greatest_bytes);

  uint64_t size() const;
  uint64_t Capacity() const;
  uint64_t SizeBytes() const;  // bytes by the count of valkey-bloom
  double error_rate() const { return error_rate_; }
  double tightening() const { return tightening_; }
  uint32_t expansion() const { return expansion_; }
  bool scaling() const { return expansion_ != 0; }
  bool random_seed() const { return random_seed_; }
  const Seed& seed() const { return seed_; }
  // The options that it was made with.
  Options FirstOptions() const;
  std::span<const Link> links() const { return links_; }
  std::span<Link> mutable_links() { return links_; }  // for the allocator that moves bytes

  // nullopt when memory does not suffice.
  std::optional<SeededChain> Copy() const;

 private:
  struct ItemHash;

  SeededChain() = default;
  bool AddLink(double rate, uint64_t capacity);

  uint32_t expansion_ = 0;
  double error_rate_ = 0;
  double tightening_ = 0;
  bool random_seed_ = false;
  Seed seed_ = {};
  std::vector<Link> links_;
};

}  // namespace tamis::redis
