#include "tamis/filter/d_left_counting_bloom_filter.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tamis/base/hash.h"
#include "tamis/filter/fpr.h"
#include "tamis/filter/internal/batch.h"

namespace tamis {
namespace {

// Six of a bucket's eight cells: beyond, a key finds four full buckets now and then.
constexpr double kMaxCellLoad = 0.75;
constexpr double kKeysPerBucket = kMaxCellLoad * 4 * 8;  // in the four buckets of one number

uint32_t RemainderBitsFor(double fpr) {
  const double bits = std::ceil(std::log2(kKeysPerBucket / fpr));
  return static_cast<uint32_t>(std::clamp(bits, double{DLeftLayout::kMinRemainderBits},
                                          double{DLeftLayout::kMaxRemainderBits}));
}

}  // namespace

Result<DLeftCountingBloomFilter> DLeftCountingBloomFilter::Create(const Options& options) {
  const FilterOptions common{options.capacity, options.fpr, options.seed};
  TAMIS_RETURN_IF_ERROR(common.Validate());
  if (options.counter_bits != 2 && options.counter_bits != 4) {
    return InvalidArgument("cannot make a d-left counting Bloom filter: counters of " +
                           std::to_string(options.counter_bits) + " bits; they have 2 or 4");
  }
  const auto keys = static_cast<double>(options.capacity);
  const auto buckets = static_cast<uint64_t>(std::ceil((keys + std::sqrt(keys)) / kKeysPerBucket));
  DLeftCountingBloomFilter filter(
      options.seed, {buckets, RemainderBitsFor(options.fpr), options.counter_bits}, options.grows);
  filter.Clear();
  return filter;
}

DLeftLayout::Place DLeftCountingBloomFilter::Fetched(uint64_t hash) const {
  const Place place = PlaceOf(hash);
  for (size_t t = 0; t < tables_.size(); ++t) layout_.Prefetch(Bytes(t), place);
  return place;
}

// The cell that counts the value.
std::optional<DLeftCountingBloomFilter::Cell> DLeftCountingBloomFilter::Locate(
    const Place& place) const {
  for (size_t t = 0; t < tables_.size(); ++t) {
    const char* bytes = Bytes(t);
    for (uint64_t marks = DLeftLayout::MayHaveTag(bytes, place); marks != 0; marks &= marks - 1) {
      const auto mark = static_cast<uint32_t>(std::countr_zero(marks));
      const uint64_t bucket = place.buckets[mark % 8];
      if (layout_.Holds(bytes + bucket, mark / 8, place.remainder)) {
        return Cell{t, bucket, mark / 8};
      }
    }
  }
  return std::nullopt;
}

// An empty cell in the emptiest of the four buckets, the leftmost of several, of the first table
// that has one.
std::optional<DLeftCountingBloomFilter::Cell> DLeftCountingBloomFilter::Choose(
    const Place& place) const {
  for (size_t t = 0; t < tables_.size(); ++t) {
    uint64_t best = 0;
    uint32_t least = DLeftLayout::kCells;
    for (const uint64_t bucket : place.buckets) {
      const uint32_t used = layout_.CountUsed(Bytes(t) + bucket);
      best = used < least ? bucket : best;
      least = std::min(used, least);
    }
    if (least < DLeftLayout::kCells) return Cell{t, best, layout_.FirstEmpty(Bytes(t) + best)};
  }
  return std::nullopt;
}

bool DLeftCountingBloomFilter::Add(const Place& place, uint64_t copies) {
  std::optional<Cell> cell = Locate(place);
  const bool held = cell.has_value();
  if (!held) {
    cell = Choose(place);
    if (!cell && !grows_) return false;
    if (!cell) {
      tables_.emplace_back(layout_.words());
      cell = Choose(place);
    }
  }
  char* bucket = MutableBytes(cell->table) + cell->bucket;  // the last that allocates
  used_ += !held;
  const uint32_t old = layout_.Counter(bucket, cell->number);
  const auto counter =
      static_cast<uint32_t>(std::min<uint64_t>(old + copies, layout_.max_counter()));
  saturated_ += counter == layout_.max_counter() && old != counter;
  if (!held) layout_.SetRemainder(bucket, cell->number, place.remainder);
  layout_.SetCounter(bucket, cell->number, counter);
  count_ += copies;
  return true;
}

bool DLeftCountingBloomFilter::Remove(const Place& place) {
  const std::optional<Cell> cell = Locate(place);
  if (!cell) return false;
  char* bucket = MutableBytes(cell->table) + cell->bucket;
  count_ -= count_ > 0;
  const uint32_t counter = layout_.Counter(bucket, cell->number);
  if (counter == layout_.max_counter()) {
    ++ignored_decrements_;
    return true;
  }
  layout_.SetCounter(bucket, cell->number, counter - 1);
  if (counter == 1) {
    layout_.SetRemainder(bucket, cell->number, 0);
    used_ -= used_ > 0;
  }
  return true;
}

bool DLeftCountingBloomFilter::Insert(uint64_t hash) { return Add(PlaceOf(hash), 1); }
bool DLeftCountingBloomFilter::Erase(uint64_t hash) { return Remove(PlaceOf(hash)); }
bool DLeftCountingBloomFilter::MayContain(uint64_t hash) const {
  return Locate(PlaceOf(hash)).has_value();
}

Bitmap DLeftCountingBloomFilter::Insert(std::span<const uint64_t> hashes) {
  return AnswerBatchByPlaces(
      hashes, [this](uint64_t hash) { return Fetched(hash); },
      [this](const Place& place) { return Add(place, 1); });
}

Bitmap DLeftCountingBloomFilter::Erase(std::span<const uint64_t> hashes) {
  return AnswerBatchByPlaces(
      hashes, [this](uint64_t hash) { return Fetched(hash); },
      [this](const Place& place) { return Remove(place); });
}

// Table by table: a value is in one of them at most.
Bitmap DLeftCountingBloomFilter::MayContain(std::span<const uint64_t> hashes) const {
  Bitmap answers((hashes.size() + 63) / 64);
  for (size_t t = 0; t < tables_.size(); ++t) {
    FindInDLeftTable(layout_, Bytes(t), hashes.data(), hashes.size(), answers.data());
  }
  return answers;
}

// visit(value, counter) -> bool for every cell in use, until one says false.
template <class Visit>
bool DLeftCountingBloomFilter::ForEachCell(Visit&& visit) const {
  for (size_t t = 0; t < tables_.size(); ++t) {
    const char* at = Bytes(t);
    for (uint32_t subtable = 0; subtable < kSubtables; ++subtable) {
      for (uint64_t bucket = 0; bucket < buckets(); ++bucket, at += layout_.bucket_bytes()) {
        for (uint32_t cell = 0; cell < DLeftLayout::kCells; ++cell) {
          const uint32_t counter = layout_.Counter(at, cell);
          if (counter == 0) continue;
          const uint64_t remainder = layout_.Remainder(at, cell);
          // Back by the steps that led here.
          const uint64_t step = layout_.Step(remainder);
          uint64_t from = bucket;
          for (uint32_t i = 0; i < subtable; ++i) {
            from = from >= step ? from - step : from + buckets() - step;
          }
          if (!visit(DLeftLayout::Value{from, remainder}, counter)) return false;
        }
      }
    }
  }
  return true;
}

Status DLeftCountingBloomFilter::Merge(const DLeftCountingBloomFilter& other) {
  if (layout_ != other.layout_ || seed_ != other.seed_) {
    return InvalidArgument("cannot merge d-left counting Bloom filters of different size or seed");
  }
  DLeftCountingBloomFilter merged = *this;
  const bool fits = other.ForEachCell([&](const DLeftLayout::Value& value, uint32_t counter) {
    return merged.Add(layout_.PlaceOf(value), counter);
  });
  if (!fits) {
    return ResourceExhausted(
        "cannot merge d-left counting Bloom filters: " + std::to_string(Count()) + " and " +
        std::to_string(other.Count()) + " keys do not fit; build one that grows, or a larger one");
  }
  // Not the sum of the counters: some stick.
  merged.count_ = count_ + other.count_;
  merged.ignored_decrements_ = ignored_decrements_ + other.ignored_decrements_;
  *this = std::move(merged);
  return Status::Ok();
}

void DLeftCountingBloomFilter::Clear() {
  std::vector<WordArray> tables;
  tables.emplace_back(layout_.words());
  tables_ = std::move(tables);
  count_ = used_ = saturated_ = ignored_decrements_ = 0;
}

size_t DLeftCountingBloomFilter::SizeBytes() const {
  return tables_.size() * tables_.front().size_bytes();
}

std::array<uint64_t, DLeftCountingBloomFilter::kSubtables> DLeftCountingBloomFilter::CellsInUse()
    const {
  std::array<uint64_t, kSubtables> used = {};
  for (size_t t = 0; t < tables_.size(); ++t) {
    const char* bucket = Bytes(t);
    for (uint64_t& cells : used) {
      for (uint64_t i = 0; i < buckets(); ++i, bucket += layout_.bucket_bytes()) {
        cells += layout_.CountUsed(bucket);
      }
    }
  }
  return used;
}

double DLeftCountingBloomFilter::Fill() const {
  return static_cast<double>(used_) / static_cast<double>(tables_.size() * layout_.cells());
}

double DLeftCountingBloomFilter::ExpectedFpr() const {
  return fpr::Fingerprints(static_cast<double>(used_), static_cast<double>(buckets()),
                           remainder_bits());
}

uint64_t DLeftCountingBloomFilter::CapacityFor(size_t size_bytes, double fpr) {
  const uint32_t cell_bits = RemainderBitsFor(fpr) + Options().counter_bits;
  return static_cast<uint64_t>(static_cast<double>(size_bytes) * 8 * kMaxCellLoad / cell_bits);
}

double DLeftCountingBloomFilter::FprFor(size_t size_bytes, uint64_t capacity) {
  const double cell_bits =
      static_cast<double>(size_bytes) * 8 * kMaxCellLoad / static_cast<double>(capacity);
  const double remainder_bits = std::floor(cell_bits) - Options().counter_bits;
  if (remainder_bits < DLeftLayout::kMinRemainderBits) return 1;
  return std::exp2(-std::min(remainder_bits, double{DLeftLayout::kMaxRemainderBits})) *
         kKeysPerBucket;
}

std::string DLeftCountingBloomFilter::Serialize() const {
  std::vector<std::span<const uint64_t>> parts;
  for (const WordArray& table : tables_) parts.push_back(table.words());
  return SealFilter(
      {.kind = kKind,
       .seed = seed_,
       .parameters = {buckets(), remainder_bits(), layout_.counter_bits(), grows_, tables_.size(),
                      count_, used_, saturated_, ignored_decrements_}},
      parts);
}

Result<DLeftCountingBloomFilter> DLeftCountingBloomFilter::Deserialize(std::string_view bytes,
                                                                       OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(OpenedFilter opened, OpenFilter(bytes, kKind, 9, mode));
  const auto& p = opened.header.parameters;
  const uint64_t words = opened.payload.size();
  if (p[1] < DLeftLayout::kMinRemainderBits || p[1] > DLeftLayout::kMaxRemainderBits ||
      (p[2] != 2 && p[2] != 4) || p[3] > 1) {
    return FilterDataLoss(kKind, "impossible cells");
  }
  const DLeftLayout layout(p[0], static_cast<uint32_t>(p[1]), static_cast<uint32_t>(p[2]));
  // The first two comparisons keep the products after them from overflowing.
  if (p[0] < 1 || p[0] > words || p[4] < 1 || p[4] > words || words % p[4] != 0 ||
      layout.words() != words / p[4]) {
    return FilterDataLoss(kKind, "its buckets do not fit the payload");
  }
  DLeftCountingBloomFilter filter(opened.header.seed, layout, p[3] == 1);
  for (uint64_t t = 0; t < p[4]; ++t) {
    filter.tables_.push_back(opened.Take(t * layout.words(), layout.words()));
  }
  filter.count_ = p[5];
  filter.used_ = p[6];
  filter.saturated_ = p[7];
  filter.ignored_decrements_ = p[8];
  if (mode == OpenMode::kCopy && !filter.IsConsistent()) {
    return FilterDataLoss(kKind, "its cells do not add up");
  }
  return filter;
}

// The tallies are those of the cells, an empty cell is all 0, and so is what is after the last.
bool DLeftCountingBloomFilter::IsConsistent() const {
  uint64_t used = 0;
  uint64_t saturated = 0;
  for (size_t t = 0; t < tables_.size(); ++t) {
    const char* const end = Bytes(t) + layout_.bytes();
    for (const char* bucket = Bytes(t); bucket < end; bucket += layout_.bucket_bytes()) {
      for (uint32_t cell = 0; cell < DLeftLayout::kCells; ++cell) {
        const uint32_t counter = layout_.Counter(bucket, cell);
        if (counter == 0 && layout_.Remainder(bucket, cell) != 0) return false;
        used += counter != 0;
        saturated += counter == layout_.max_counter();
      }
    }
    const char* const table_end = Bytes(t) + tables_[t].size_bytes();
    if (!std::all_of(end, table_end, [](char c) { return c == 0; })) return false;
  }
  return used == used_ && saturated == saturated_;
}

}  // namespace tamis
