#include "tamis/filter/d_left_counting_bloom_filter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tamis/base/hash.h"
#include "tamis/filter/batch.h"
#include "tamis/filter/fpr.h"

namespace tamis {
namespace {

// Six of a bucket's eight cells: beyond, a key finds four full buckets now and then.
constexpr double kMaxLoad = 0.75;
constexpr double kKeysPerBucket = kMaxLoad * 4 * 8;  // in the four buckets of one number
constexpr uint32_t kMinRemainderBits = 4;
constexpr uint32_t kMaxRemainderBits = 40;

uint32_t RemainderBitsFor(double fpr) {
  const double bits = std::ceil(std::log2(kKeysPerBucket / fpr));
  return static_cast<uint32_t>(
      std::clamp(bits, double{kMinRemainderBits}, double{kMaxRemainderBits}));
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

DLeftCountingBloomFilter::Value DLeftCountingBloomFilter::Find(uint64_t hash) const {
  const auto product = static_cast<unsigned __int128>(hash) * geometry_.buckets;
  return {static_cast<uint64_t>(product >> 64),
          static_cast<uint64_t>(product) >> (64 - geometry_.remainder_bits)};
}

uint64_t DLeftCountingBloomFilter::Shift(uint64_t remainder, uint32_t subtable) const {
  return FastRange(Mix(remainder * kSubtables + subtable), geometry_.buckets);
}

uint64_t DLeftCountingBloomFilter::Bucket(const Value& value, uint32_t subtable) const {
  const uint64_t sum = value.bucket + Shift(value.remainder, subtable);
  return sum >= geometry_.buckets ? sum - geometry_.buckets : sum;
}

// A cell has 44 bits at most, so that it lies in eight bytes whatever bit it begins with.
uint64_t DLeftCountingBloomFilter::Load(const WordArray& table, uint64_t bit) const {
  uint64_t word;
  std::memcpy(&word, reinterpret_cast<const char*>(table.data()) + bit / 8, sizeof(word));
  return word >> (bit % 8) & ((uint64_t{1} << geometry_.cell_bits()) - 1);
}

void DLeftCountingBloomFilter::Store(WordArray* table, uint64_t bit, uint64_t cell) {
  char* at = reinterpret_cast<char*>(table->MutableData()) + bit / 8;
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  const uint64_t mask = ((uint64_t{1} << geometry_.cell_bits()) - 1) << (bit % 8);
  word = (word & ~mask) | cell << (bit % 8);
  std::memcpy(at, &word, sizeof(word));
}

DLeftCountingBloomFilter::Cell DLeftCountingBloomFilter::Locate(const Value& value) const {
  for (uint32_t subtable = 0; subtable < kSubtables; ++subtable) {
    const uint64_t begin = BucketBit(subtable, Bucket(value, subtable));
    for (size_t t = 0; t < tables_.size(); ++t) {
      uint64_t bit = begin;
      for (uint32_t i = 0; i < kCells; ++i, bit += geometry_.cell_bits()) {
        const uint64_t cell = Load(tables_[t], bit);
        const uint64_t counter = cell & MaxCounter();
        if (cell >> geometry_.counter_bits == value.remainder && counter != 0) {
          return {t, bit, counter};
        }
      }
    }
  }
  return {};
}

// An empty cell in the emptiest of the four buckets, the leftmost of several, of the first table
// that has one. counter 0: none has.
DLeftCountingBloomFilter::Cell DLeftCountingBloomFilter::Choose(const Value& value) const {
  for (size_t t = 0; t < tables_.size(); ++t) {
    Cell best;
    uint32_t least = kCells;
    for (uint32_t subtable = 0; subtable < kSubtables; ++subtable) {
      uint64_t bit = BucketBit(subtable, Bucket(value, subtable));
      uint64_t empty = 0;
      uint32_t used = 0;
      for (uint32_t i = 0; i < kCells; ++i, bit += geometry_.cell_bits()) {
        if ((Load(tables_[t], bit) & MaxCounter()) != 0) {
          ++used;
        } else {
          empty = bit;
        }
      }
      if (used < least) {
        least = used;
        best = {t, empty, 1};
      }
    }
    if (least < kCells) return best;
  }
  return {};
}

bool DLeftCountingBloomFilter::Add(const Value& value, uint64_t copies) {
  Cell cell = Locate(value);
  const uint64_t old = cell.counter;
  if (old == 0) {
    cell = Choose(value);
    if (cell.counter == 0) {
      if (!grows_) return false;
      tables_.emplace_back(geometry_.TableWords());
      cell = Choose(value);
    }
    ++used_;
  }
  const uint64_t counter = std::min(old + copies, MaxCounter());
  saturated_ += counter == MaxCounter() && old != MaxCounter();
  Store(&tables_[cell.table], cell.bit, value.remainder << geometry_.counter_bits | counter);
  count_ += copies;
  return true;
}

bool DLeftCountingBloomFilter::Erase(uint64_t hash) {
  const Value value = Find(hash);
  const Cell cell = Locate(value);
  if (cell.counter == 0) return false;
  count_ -= count_ > 0;
  if (cell.counter == MaxCounter()) {
    ++ignored_decrements_;
  } else if (cell.counter > 1) {
    Store(&tables_[cell.table], cell.bit,
          value.remainder << geometry_.counter_bits | (cell.counter - 1));
  } else {
    Store(&tables_[cell.table], cell.bit, 0);
    used_ -= used_ > 0;
  }
  return true;
}

Bitmap DLeftCountingBloomFilter::MayContain(std::span<const uint64_t> hashes) const {
  const auto prefetch = [this](uint64_t hash) {
    const Value value = Find(hash);
    for (uint32_t subtable = 0; subtable < kSubtables; ++subtable) {
      const uint64_t byte = BucketBit(subtable, Bucket(value, subtable)) / 8;
      for (const WordArray& table : tables_) {
        const char* bucket = reinterpret_cast<const char*>(table.data()) + byte;
        __builtin_prefetch(bucket);
        __builtin_prefetch(bucket + geometry_.cell_bits());  // it may begin near a line's end
      }
    }
  };
  return AnswerBatch(hashes, prefetch, [this](uint64_t hash) { return MayContain(hash); });
}

// visit(value, counter) -> bool for every cell in use, until one says false.
template <class Visit>
bool DLeftCountingBloomFilter::ForEachCell(Visit&& visit) const {
  for (const WordArray& table : tables_) {
    uint64_t bit = 0;
    for (uint32_t subtable = 0; subtable < kSubtables; ++subtable) {
      for (uint64_t bucket = 0; bucket < geometry_.buckets; ++bucket) {
        for (uint32_t i = 0; i < kCells; ++i, bit += geometry_.cell_bits()) {
          const uint64_t cell = Load(table, bit);
          if (cell == 0) continue;
          const uint64_t remainder = cell >> geometry_.counter_bits;
          const uint64_t shift = Shift(remainder, subtable);
          const uint64_t from =
              bucket >= shift ? bucket - shift : bucket + geometry_.buckets - shift;
          if (!visit(Value{from, remainder}, cell & MaxCounter())) return false;
        }
      }
    }
  }
  return true;
}

Status DLeftCountingBloomFilter::Merge(const DLeftCountingBloomFilter& other) {
  if (geometry_ != other.geometry_ || seed_ != other.seed_) {
    return InvalidArgument("cannot merge d-left counting Bloom filters of different size or seed");
  }
  DLeftCountingBloomFilter merged = *this;
  const bool fits = other.ForEachCell(
      [&](const Value& value, uint64_t counter) { return merged.Add(value, counter); });
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
  count_ = used_ = saturated_ = ignored_decrements_ = 0;
  tables_.clear();
  tables_.emplace_back(geometry_.TableWords());
}

size_t DLeftCountingBloomFilter::SizeBytes() const {
  return tables_.size() * tables_.front().size_bytes();
}

std::array<uint64_t, DLeftCountingBloomFilter::kSubtables> DLeftCountingBloomFilter::CellsInUse()
    const {
  std::array<uint64_t, kSubtables> used = {};
  const uint64_t subtable_cells = kCells * geometry_.buckets;
  for (const WordArray& table : tables_) {
    for (uint64_t cell = 0; cell < geometry_.TableCells(); ++cell) {
      used[cell / subtable_cells] += Load(table, cell * geometry_.cell_bits()) != 0;
    }
  }
  return used;
}

double DLeftCountingBloomFilter::Fill() const {
  return static_cast<double>(used_) / static_cast<double>(tables_.size() * geometry_.TableCells());
}

double DLeftCountingBloomFilter::ExpectedFpr() const {
  return fpr::Fingerprints(static_cast<double>(used_), static_cast<double>(geometry_.buckets),
                           geometry_.remainder_bits);
}

uint64_t DLeftCountingBloomFilter::CapacityFor(size_t size_bytes, double fpr) {
  const uint32_t cell_bits = RemainderBitsFor(fpr) + Options().counter_bits;
  return static_cast<uint64_t>(static_cast<double>(size_bytes) * 8 * kMaxLoad / cell_bits);
}

double DLeftCountingBloomFilter::FprFor(size_t size_bytes, uint64_t capacity) {
  const double cell_bits =
      static_cast<double>(size_bytes) * 8 * kMaxLoad / static_cast<double>(capacity);
  const double remainder_bits = std::floor(cell_bits) - Options().counter_bits;
  if (remainder_bits < kMinRemainderBits) return 1;
  return std::exp2(-std::min(remainder_bits, double{kMaxRemainderBits})) * kKeysPerBucket;
}

std::string DLeftCountingBloomFilter::Serialize() const {
  std::vector<std::span<const uint64_t>> parts;
  for (const WordArray& table : tables_) parts.push_back(table.words());
  return SealFilter(
      {.kind = kKind,
       .seed = seed_,
       .parameters = {geometry_.buckets, geometry_.remainder_bits, geometry_.counter_bits, grows_,
                      tables_.size(), count_, used_, saturated_, ignored_decrements_}},
      parts);
}

Result<DLeftCountingBloomFilter> DLeftCountingBloomFilter::Deserialize(std::string_view bytes,
                                                                       OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(OpenedFilter opened, OpenFilter(bytes, kKind, 9, mode));
  const auto& p = opened.header.parameters;
  const uint64_t words = opened.payload.size();
  if (p[1] < kMinRemainderBits || p[1] > kMaxRemainderBits || (p[2] != 2 && p[2] != 4) ||
      p[3] > 1) {
    return FilterDataLoss(kKind, "impossible cells");
  }
  // The first two comparisons keep the products behind them from overflowing.
  const Geometry geometry{p[0], static_cast<uint32_t>(p[1]), static_cast<uint32_t>(p[2])};
  if (p[0] < 1 || p[0] > words || p[4] < 1 || p[4] > words || words % p[4] != 0 ||
      geometry.TableWords() != words / p[4]) {
    return FilterDataLoss(kKind, "its buckets do not fit the payload");
  }
  DLeftCountingBloomFilter filter(opened.header.seed, geometry, p[3] == 1);
  for (uint64_t t = 0; t < p[4]; ++t) {
    filter.tables_.push_back(opened.Take(t * geometry.TableWords(), geometry.TableWords()));
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

// The tallies are those of the cells, an empty cell is all 0, and so is what is behind the last.
bool DLeftCountingBloomFilter::IsConsistent() const {
  uint64_t used = 0;
  uint64_t saturated = 0;
  const bool valid = ForEachCell([&](const Value&, uint64_t counter) {
    ++used;
    saturated += counter == MaxCounter();
    return counter != 0;
  });
  const uint64_t bytes = kSubtables * geometry_.buckets * geometry_.cell_bits();
  const auto clean = [&](const WordArray& table) {
    const auto* data = reinterpret_cast<const char*>(table.data());
    return std::all_of(data + bytes, data + table.size_bytes(), [](char c) { return c == 0; });
  };
  return valid && used == used_ && saturated == saturated_ &&
         std::all_of(tables_.begin(), tables_.end(), clean);
}

}  // namespace tamis
