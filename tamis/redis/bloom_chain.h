// BloomChain: the scaling Bloom filter that BF.* commands, their dumps and their RDB values speak
// of, bit for bit. Geometry and hash are theirs and not those of tamis/filter.
//
//   Layout      links, each a plain Bloom filter with a capacity; the newest one takes the items
//   Memory      -ln(rate) / ln(2)^2 bits an item of capacity; link i + 1 has `growth` times the
//               capacity of link i and half of its rate
//   FP rate     at most the rate asked for: the first link of a scaling filter is made for half
//   MayContain  O(links * k)      Add  the same; kFull = unchanged
//   Erase       none
//   Threads     const members may run concurrently; others need exclusive access
//
// A chain that is read in chunks is *partial* until the last one is there: it may contain
// everything, and takes nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/redis/bloom_link.h"
#include "tamis/redis/byte_array.h"

namespace tamis::redis {

class BloomChain {
 public:
  static constexpr size_t kGreatestChunk = size_t{16} << 20;

  struct Options {
    double error_rate = 0.01;  // in (0, 1)
    uint64_t capacity = 100;
    uint32_t growth = 2;  // 0 = does not scale
    bool scaling = true;
  };

  // Bits of the options word.
  static constexpr uint32_t kNoRounding = 1;
  static constexpr uint32_t kEntriesAreBits = 2;
  static constexpr uint32_t kHash64 = 4;
  static constexpr uint32_t kNotScaling = 8;

  using Link = BloomLink;
  struct Parts {
    uint64_t size = 0;
    uint32_t options = kNoRounding | kHash64;
    uint64_t growth = 2;      // at most 32 bits
    std::vector<Link> links;  // oldest first
  };

  enum class Added { kNew, kPerhaps, kFull, kNoMemory, kTooLarge, kPartial };

  // Bytes of the first link; 0 when they cannot be counted in 63 bits.
  static uint64_t FirstLinkBytes(const Options& options);
  // kResourceExhausted when memory does not suffice. REQUIRES: options are in range.
  static Result<BloomChain> Create(const Options& options);

  // The number of bits of a link in RDB encoding 0, which does not store it.
  static uint64_t BitsFor(uint64_t entries, double bits_per_entry);

  // Validates all input from outside, dumps and RDB values alike. Links have their bytes; in a
  // partial chain all bytes from some position on are missing, and chunks bring them. Everything is
  // checked before anything is allocated; `greatest_bytes` bounds a partial chain.
  static Result<BloomChain> FromParts(Parts parts, uint64_t greatest_bytes);
  // The header that SCANDUMP gives; all bytes are missing.
  static Result<BloomChain> FromHeader(std::string_view header, uint64_t greatest_bytes);
  std::string Header() const;

  // Bytes [position, position + size) of the links one after the other, at most kGreatestChunk and
  // those of one link; empty behind the end.
  std::string_view Chunk(uint64_t position) const;
  enum class Loaded { kOk, kNoLink, kTooLong, kOutOfOrder };
  // A partial chain takes its chunks from the front, each as often as wanted.
  Loaded LoadChunk(uint64_t position, std::string_view chunk);
  bool partial() const { return present_ < data_bytes_; }
  uint64_t present() const { return present_; }

  // To be called when an item that another server has could not be added. From now on the chain is
  // like a partial one: it may contain everything, also after it was saved and loaded.
  void Spoil() { present_ = std::min(present_, data_bytes_ - 1); }

  // A link that would make the chain larger than `greatest_bytes` is not made: kTooLarge.
  Added Add(std::string_view item, uint64_t greatest_bytes);
  // Adds the items one after the other, and stops behind the first result that is neither kNew nor
  // kPerhaps. Returns the number of results; out[i] is that of items[i].
  size_t Add(std::span<const std::string_view> items, uint64_t greatest_bytes, Added* out);
  bool MayContain(std::string_view item) const;
  // out[i] is the answer for items[i].
  void MayContain(std::span<const std::string_view> items, bool* out) const;

  // Afterwards this contains what both did. kInvalidArgument, and nothing is changed, unless links
  // of the same number are alike; one may have more of them. kResourceExhausted when memory does
  // not suffice.
  Status Merge(const BloomChain& other);

  uint64_t size() const { return size_; }
  uint64_t Capacity() const;
  // That of the chain when it has grown as far as `greatest_bytes` let it.
  uint64_t MaxCapacity(uint64_t greatest_bytes) const;
  double error_rate() const;  // that it was made for
  uint64_t SizeBytes() const { return 32 + 64 * links_.size() + data_bytes_; }
  bool scaling() const { return (options_ & kNotScaling) == 0; }
  bool hash64() const { return (options_ & kHash64) != 0; }  // else of 32 bits, as old ones are
  uint32_t options() const { return options_; }
  uint32_t growth() const { return growth_; }
  std::span<const Link> links() const { return links_; }
  std::span<Link> mutable_links() { return links_; }  // for the allocator that moves bytes

  // nullopt when memory does not suffice.
  std::optional<BloomChain> Copy() const;

 private:
  struct Probes;

  BloomChain() = default;
  Added AddProbes(const Probes& probes, uint64_t greatest_bytes);
  bool OlderContain(const BloomHash& hash) const;
  bool AddLink(double error_rate, uint64_t entries);
  std::optional<std::vector<Link>> CopyLinks(size_t begin) const;

  uint64_t size_ = 0;
  uint32_t options_ = kNoRounding | kHash64;
  uint32_t growth_ = 2;
  uint64_t data_bytes_ = 0;  // bytes of all links
  uint64_t present_ = 0;     // how many of them, from the front, are there
  std::vector<Link> links_;
};

}  // namespace tamis::redis
