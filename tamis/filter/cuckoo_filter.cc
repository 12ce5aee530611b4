#include "tamis/filter/cuckoo_filter.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tamis/filter/fpr.h"

namespace tamis {
namespace {

constexpr double kMaxLoad = 0.95;

// The narrowest tag that keeps the rate at full load. Seven bits still fill to capacity; with six
// and a million keys, or five and a thousand, tags have too few other buckets and inserts fail
// early.
uint32_t TagBitsFor(double fpr) {
  uint32_t bits = 8;
  while (bits < kMaxCuckooTagBits && fpr::Cuckoo(bits, kMaxLoad) > fpr) ++bits;
  return bits;
}

// In few buckets the load that can be reached varies from case to case: some are kept free.
uint64_t BucketsFor(uint64_t capacity) {
  const auto keys = static_cast<double>(capacity);
  return static_cast<uint64_t>(
      std::ceil((keys + 3 * std::sqrt(keys) + 12) / (kMaxLoad * CuckooTable::kSlots)));
}

}  // namespace

Result<CuckooFilter> CuckooFilter::Create(const Options& options) {
  const FilterOptions common{options.capacity, options.fpr, options.seed};
  TAMIS_RETURN_IF_ERROR(common.Validate());
  const uint32_t tag_bits = options.tag_bits != 0 ? options.tag_bits : TagBitsFor(options.fpr);
  if (options.tag_bits == 0 && fpr::Cuckoo(tag_bits, kMaxLoad) > options.fpr) {
    return InvalidArgument(
        "cannot make a cuckoo filter: fpr is below 2e-9, what tags of 32 bits have; take a blocked "
        "quotient or a d-left filter");
  }
  if (!IsCuckooWidth(tag_bits, options.semi_sorted)) {
    return InvalidArgument(
        std::string("cannot make a cuckoo filter: tags of ") + std::to_string(tag_bits) +
        " bits; " + (options.semi_sorted ? "semi-sorted ones have 5 to 17" : "they have 4 to 32"));
  }
  const uint64_t buckets = BucketsFor(options.capacity);
  WordArray words(CuckooTable::WordsFor(buckets, tag_bits, options.semi_sorted));
  return CuckooFilter(options.seed,
                      CuckooTable(buckets, tag_bits, options.semi_sorted, std::move(words)));
}

bool CuckooFilter::Insert(uint64_t hash) {
  const bool inserted = table_.Insert(table_.PlaceOf(hash));
  count_ += inserted;
  return inserted;
}

bool CuckooFilter::Erase(uint64_t hash) {
  const bool erased = table_.Erase(table_.PlaceOf(hash));
  count_ -= erased;
  return erased;
}

Bitmap CuckooFilter::Insert(std::span<const uint64_t> hashes) {
  Bitmap inserted = table_.Insert(hashes);
  for (const uint64_t word : inserted) count_ += std::popcount(word);
  return inserted;
}

Bitmap CuckooFilter::Erase(std::span<const uint64_t> hashes) {
  Bitmap erased = table_.Erase(hashes);
  for (const uint64_t word : erased) count_ -= std::popcount(word);
  return erased;
}

Status CuckooFilter::Merge(const CuckooFilter& other, uint32_t most_copies) {
  if (table_.buckets() != other.table_.buckets() || table_.tag_bits() != other.table_.tag_bits() ||
      table_.semi_sorted() != other.table_.semi_sorted() || seed_ != other.seed_) {
    return InvalidArgument("cannot merge cuckoo filters of different size or seed");
  }
  CuckooFilter merged = *this;
  for (uint64_t bucket = 0; bucket < other.table_.buckets(); ++bucket) {
    for (const uint32_t tag : other.table_.Tags(bucket)) {
      if (tag == 0) continue;
      const CuckooTable::Place place = merged.table_.PlaceOf(bucket, tag);
      if (merged.table_.Copies(place) >= most_copies) continue;
      if (!merged.table_.Insert(place)) {
        return ResourceExhausted("cannot merge cuckoo filters: " + std::to_string(Count()) +
                                 " and " + std::to_string(other.Count()) +
                                 " keys do not fit; build a larger filter from the keys");
      }
      ++merged.count_;
    }
  }
  *this = std::move(merged);
  return Status::Ok();
}

void CuckooFilter::Clear() {
  table_ = CuckooTable(table_.buckets(), table_.tag_bits(), table_.semi_sorted(),
                       WordArray(table_.words().size()));
  count_ = 0;
}

double CuckooFilter::Fill() const {
  return static_cast<double>(count_) / static_cast<double>(table_.buckets() * CuckooTable::kSlots);
}

double CuckooFilter::ExpectedFpr() const { return fpr::Cuckoo(tag_bits(), Fill()); }

uint64_t CuckooFilter::CapacityFor(size_t size_bytes, double fpr) {
  return static_cast<uint64_t>(static_cast<double>(size_bytes) * 8 * kMaxLoad / TagBitsFor(fpr));
}

double CuckooFilter::FprFor(size_t size_bytes, uint64_t capacity) {
  const double bits = static_cast<double>(size_bytes) * 8 * kMaxLoad;
  const auto tag_bits = static_cast<uint32_t>(bits / static_cast<double>(capacity));
  if (tag_bits < kMinCuckooTagBits) return 1;
  return fpr::Cuckoo(std::min(tag_bits, uint32_t{kMaxCuckooTagBits}), kMaxLoad);
}

std::string CuckooFilter::Serialize() const {
  return SealFilter(
      {.kind = kKind,
       .seed = seed_,
       .parameters = {table_.buckets(), table_.tag_bits(), table_.semi_sorted(), count_}},
      table_.words().words());
}

Result<CuckooFilter> CuckooFilter::Deserialize(std::string_view bytes, OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(OpenedFilter opened, OpenFilter(bytes, kKind, 4, mode));
  const auto& p = opened.header.parameters;
  const uint64_t words = opened.payload.size();
  if (p[2] > 1 || !IsCuckooWidth(p[1], p[2] == 1)) {
    return FilterDataLoss(kKind, "impossible tag width");
  }
  const auto tag_bits = static_cast<uint32_t>(p[1]);
  const bool semi_sorted = p[2] == 1;
  // The first comparison keeps the product of the second from overflowing.
  if (p[0] < 1 || p[0] > words * 64 ||
      CuckooTable::WordsFor(p[0], tag_bits, semi_sorted) != words) {
    return FilterDataLoss(kKind, "its buckets do not fit the payload");
  }
  CuckooFilter filter(opened.header.seed,
                      CuckooTable(p[0], tag_bits, semi_sorted, opened.Take(0, words)));
  filter.count_ = p[3];
  if (mode == OpenMode::kCopy &&
      (!filter.table_.IsConsistent() || filter.table_.CountTags() != p[3])) {
    return FilterDataLoss(kKind, "its buckets do not add up");
  }
  return filter;
}

}  // namespace tamis
