// The byte format of all filters (docs/FORMATS.md#filters): a header of 128 bytes (magic, version,
// kind, seed, ten parameters, checksums), then words.
//
// Any bytes give a filter or kDataLoss, and never need more memory than a small multiple of their
// own size: what the parameters promise is held against the payload's size before anything is
// allocated.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/filter/internal/word_array.h"

namespace tamis {

// The numbers are stored; they never change. A kind that is laid out again gets a new one: 7 was a
// d-left counting Bloom filter of other cells.
enum class FilterKind : uint32_t {
  kBloom = 1,
  kBlockedBloom = 2,
  kCountingBloom = 3,
  kSplitCountingBloom = 4,
  kBlockedSplitCountingBloom = 5,
  kScalableSplitCountingBloom = 6,
  kCuckoo = 8,
  kQuotient = 9,
  kProjectedCountingBloom = 10,
  kBlockedQuotient = 11,
  kScalableBloom = 12,
  kDynamicCount = 13,
  kBinaryFuse = 14,
  kDLeftCountingBloom = 15,
};

std::string_view FilterKindName(FilterKind kind);  // "Bloom filter", "cuckoo filter", ...

struct FilterHeader {
  FilterKind kind{};
  uint64_t seed = 0;
  std::array<uint64_t, 10> parameters{};  // their meaning depends on the kind
};

inline constexpr size_t kFilterHeaderSize = 128;

std::string SealFilter(const FilterHeader& header, std::span<const uint64_t> payload);
std::string SealFilter(const FilterHeader& header,
                       std::span<const std::span<const uint64_t>> payload);

// How much is checked, and whether the words are copied.
enum class OpenMode {
  kCopy,    // everything is checked; nothing refers to the bytes afterwards
  kBorrow,  // the header is checked; the bytes must be aligned to 8 and outlive the filter
};

struct OpenedFilter {
  FilterHeader header;
  std::span<const uint64_t> payload;  // into the bytes
  WordArray storage;                  // kCopy: owns what payload refers to

  // The words [begin, begin + size) as the mode wants them.
  WordArray Take(size_t begin, size_t size) const;
  OpenMode mode = OpenMode::kCopy;
};

// The kind of what is there, from a valid header.
Result<FilterHeader> ReadFilterHeader(std::string_view bytes);
// Checks header and checksums.
Status VerifyFilterBytes(std::string_view bytes);
// `parameters` is how many the kind uses; the others must be 0.
Result<OpenedFilter> OpenFilter(std::string_view bytes, FilterKind kind, size_t parameters,
                                OpenMode mode);

// "cannot read a Bloom filter: WHY", kDataLoss.
Status FilterDataLoss(FilterKind kind, std::string_view why);

}  // namespace tamis
