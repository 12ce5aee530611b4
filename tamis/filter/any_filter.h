// AnyFilter: a filter whose type is chosen at run time: by its name, or by the bytes it is read
// from. Used by the command line; code that knows the type uses the type.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tamis/filter/binary_fuse_filter.h"
#include "tamis/filter/blocked_bloom_filter.h"
#include "tamis/filter/blocked_quotient_filter.h"
#include "tamis/filter/blocked_split_counting_bloom_filter.h"
#include "tamis/filter/bloom_filter.h"
#include "tamis/filter/counting_bloom_filter.h"
#include "tamis/filter/cuckoo_filter.h"
#include "tamis/filter/d_left_counting_bloom_filter.h"
#include "tamis/filter/dynamic_count_filter.h"
#include "tamis/filter/projected_counting_bloom_filter.h"
#include "tamis/filter/quotient_filter.h"
#include "tamis/filter/scalable_bloom_filter.h"
#include "tamis/filter/scalable_split_counting_bloom_filter.h"
#include "tamis/filter/split_counting_bloom_filter.h"

namespace tamis {

// Facts for the choice of a type.
struct FilterType {
  std::string_view name;  // on the command line
  FilterKind kind;
  bool erases;
  uint32_t copies;           // how often one key can be in it and be erased as often, and at the
                             // next insert it stays for good; 0 when not erasing
  std::string_view summary;  // one line
  bool fixed = false;        // built of all its keys at once and never changed
};

// All of them. The command, the conformance suite, the statistics and the fuzzer go through this
// list, so that a new filter is named here and described in Types().
using FilterVariant =
    std::variant<BlockedBloomFilter, BloomFilter, BlockedQuotientFilter,
                 BlockedSplitCountingBloomFilter, CountingBloomFilter, ProjectedCountingBloomFilter,
                 CuckooFilter, DLeftCountingBloomFilter, QuotientFilter, ScalableBloomFilter,
                 DynamicCountFilter, SplitCountingBloomFilter, ScalableSplitCountingBloomFilter,
                 BinaryFuseFilter>;

class AnyFilter {
 public:
  static const std::vector<FilterType>& Types();
  // nullptr when there is none of that name.
  static const FilterType* FindType(std::string_view name);
  // Bits a key at the rate, and the rate that a filter made for it has at capacity: some types come
  // in steps.
  static double BitsPerKey(const FilterType& type, double fpr);
  static double FprAtCapacity(const FilterType& type, double fpr);

  // kInvalidArgument when there is no such type, the message lists them, or it is a fixed one.
  static Result<AnyFilter> Create(std::string_view type, const FilterOptions& options);
  // Builds from distinct hashes, all at once: the only way to make a fixed type. The capacity is at
  // least their number, and more where a filter of that capacity refuses one.
  static Result<AnyFilter> Build(std::string_view type, FilterOptions options,
                                 std::span<const uint64_t> hashes);
  static Result<AnyFilter> Deserialize(std::string_view bytes, OpenMode mode = OpenMode::kCopy);
  std::string Serialize() const;

  const FilterType& type() const;

  // How many, from the front, were inserted; fewer than all when the filter is full. None into a
  // fixed one. However often a key is inserted, it fills no filter: one that is in it more often
  // than type().copies stays for good, takes no more room, and is no longer counted.
  size_t Insert(std::span<const uint64_t> hashes);
  [[nodiscard]] bool Insert(uint64_t hash);
  // Bit i: hashes[i] was contained and erased, or stays for good. REQUIRES: type().erases, and each
  // hash was inserted more often than erased.
  Bitmap Erase(std::span<const uint64_t> hashes);
  bool Erase(uint64_t hash);  // REQUIRES: type().erases
  bool MayContain(uint64_t hash) const;
  Bitmap MayContain(std::span<const uint64_t> hashes) const;
  // kInvalidArgument unless type, size and seed are the same; kFailedPrecondition for a fixed type;
  // kResourceExhausted, and nothing is changed, when the keys of both do not fit.
  Status Merge(const AnyFilter& other);
  void Clear();  // REQUIRES: !type().fixed

  size_t SizeBytes() const;
  uint64_t Count() const;
  double Fill() const;
  double ExpectedFpr() const;
  // Erases that changed nothing, since the key could not be told from those of another layer; a
  // filter built anew from its keys has none. 0 for types that do not have such layers.
  uint64_t StuckErases() const;
  uint64_t seed() const;

 private:
  explicit AnyFilter(FilterVariant filter) : filter_(std::move(filter)) {}

  FilterVariant filter_;
};

}  // namespace tamis
