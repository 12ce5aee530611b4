// AnyFilter: a filter whose type is chosen at run time, by its name or by its serialized bytes.
// Used by the command line, the C API and the Redis module. Code that knows the type uses the type.
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

// The properties of a type, by which a user chooses one.
struct FilterType {
  std::string_view name;  // in commands
  FilterKind kind;
  bool erases;  // the type supports Erase
  // A key that was inserted at most so often can be erased as often. One more insert makes it
  // permanent: no erase removes it any more. 0 when the type does not support Erase.
  uint32_t copies;
  std::string_view summary;  // one line
  bool fixed = false;        // built from all its keys at once, and never changed
};

// All types. The command, the conformance suite, the statistics and the fuzzer iterate over this
// list; so a new type has to be added only here and in Types().
using FilterVariant =
    std::variant<BlockedBloomFilter, BloomFilter, BlockedQuotientFilter,
                 BlockedSplitCountingBloomFilter, CountingBloomFilter, ProjectedCountingBloomFilter,
                 CuckooFilter, DLeftCountingBloomFilter, QuotientFilter, ScalableBloomFilter,
                 DynamicCountFilter, SplitCountingBloomFilter, ScalableSplitCountingBloomFilter,
                 BinaryFuseFilter>;

class AnyFilter {
 public:
  static const std::vector<FilterType>& Types();
  // nullptr when no type has that name.
  static const FilterType* FindType(std::string_view name);
  // The size of a large filter that is created for the false-positive rate `fpr`, in bits per key
  // at capacity.
  static double BitsPerKey(const FilterType& type, double fpr);
  // The false-positive rate of that filter at capacity. It can differ from `fpr`, since some types
  // offer rates in steps only.
  static double FprAtCapacity(const FilterType& type, double fpr);

  // kInvalidArgument when there is no such type (the message lists all types), or when it is fixed.
  static Result<AnyFilter> Create(std::string_view type, const FilterOptions& options);
  // Builds a filter from all its hashes, which must be distinct; a fixed type can be built only so.
  // The capacity is at least the number of hashes, and is raised if the filter refuses one of them.
  static Result<AnyFilter> Build(std::string_view type, FilterOptions options,
                                 std::span<const uint64_t> hashes);
  static Result<AnyFilter> Deserialize(std::string_view bytes, OpenMode mode = OpenMode::kCopy);
  std::string Serialize() const;

  const FilterType& type() const;

  // Inserts the hashes in order and returns how many were inserted: fewer than all when the filter
  // is full, none when it is fixed. Inserting one key again and again does not fill a filter: after
  // type().copies + 1 inserts the key is permanent, takes no more room, and its copies are no
  // longer counted.
  size_t Insert(std::span<const uint64_t> hashes);
  [[nodiscard]] bool Insert(uint64_t hash);
  // Bit i is set if hashes[i] was contained and was erased, or if it is permanent and so remains.
  // REQUIRES: type().erases, and each hash was inserted more often than erased.
  Bitmap Erase(std::span<const uint64_t> hashes);
  bool Erase(uint64_t hash);  // REQUIRES: type().erases
  bool MayContain(uint64_t hash) const;
  Bitmap MayContain(std::span<const uint64_t> hashes) const;
  // Adds the keys of `other`. kInvalidArgument unless type, size and seed are equal;
  // kFailedPrecondition for a fixed type; kResourceExhausted, with nothing changed, when the keys
  // of both do not fit.
  Status Merge(const AnyFilter& other);
  void Clear();  // REQUIRES: !type().fixed

  size_t SizeBytes() const;
  uint64_t Count() const;
  double Fill() const;
  double ExpectedFpr() const;
  // The number of erases that changed nothing because more than one layer may contain the key. The
  // keys of these erases remain until the filter is built again. 0 for types without such layers.
  uint64_t StuckErases() const;
  uint64_t seed() const;

 private:
  explicit AnyFilter(FilterVariant filter) : filter_(std::move(filter)) {}

  FilterVariant filter_;
};

}  // namespace tamis
