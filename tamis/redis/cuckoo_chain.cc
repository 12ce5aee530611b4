#include "tamis/redis/cuckoo_chain.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "tamis/base/coding.h"
#include "tamis/redis/faults.h"
#include "tamis/redis/murmur_hash.h"

namespace tamis::redis {
namespace {

constexpr uint64_t kGreatestBytes = uint64_t{1} << 62;
// Above these bytes an erase does not compact by itself, since it would take too long.
constexpr uint64_t kCompactedByErase = uint64_t{1} << 20;

uint64_t Alternate(uint64_t bucket, uint8_t tag) { return bucket ^ (tag * uint64_t{0x5bd1e995}); }

Status BadBytes(std::string why) { return {StatusCode::kDataLoss, "Cuckoo filter: " + why}; }

Status NoMemory() {
  return {StatusCode::kResourceExhausted, "memory does not suffice for the filter"};
}

void PutFixed16(std::string* out, uint16_t value) {
  out->push_back(static_cast<char>(value & 0xff));
  out->push_back(static_cast<char>(value >> 8));
}

uint16_t Fixed16(Reader& reader) {
  const uint16_t low = reader.Byte();
  return static_cast<uint16_t>(low | reader.Byte() << 8);
}

// Bytes of the next table; nullopt when they are too many to count.
std::optional<uint64_t> Times(uint64_t bytes, uint64_t expansion) {
  if (bytes > kGreatestBytes / expansion) return std::nullopt;
  return bytes * expansion;
}

// Buckets are small: a call costs more than a look.
uint8_t* Find(uint8_t* bucket, uint8_t tag, uint32_t size) {
  if (size > 8) return static_cast<uint8_t*>(std::memchr(bucket, tag, size));
  for (uint32_t i = 0; i < size; ++i) {
    if (bucket[i] == tag) return bucket + i;
  }
  return nullptr;
}

bool Holds(const uint8_t* bucket, uint8_t tag, uint32_t size) {
  if (size > 8) return std::memchr(bucket, tag, size) != nullptr;
  bool found = false;
  for (uint32_t i = 0; i < size; ++i) found |= bucket[i] == tag;
  return found;
}

bool EightZeros(const uint8_t* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, 8);
  return word == 0;
}

// In blocks whose counts fit into a byte, which the compiler makes vectors of.
uint64_t CountTags(const uint8_t* bytes, uint64_t size) {
  constexpr uint64_t kBlock = 128;
  uint64_t count = 0;
  for (; size >= kBlock; size -= kBlock, bytes += kBlock) {
    uint8_t in_block = 0;
    for (uint64_t i = 0; i < kBlock; ++i) in_block += bytes[i] != 0 ? 1 : 0;
    count += in_block;
  }
  for (uint64_t i = 0; i < size; ++i) count += bytes[i] != 0;
  return count;
}

uint64_t FirstBuckets(const CuckooChain::Options& options) {
  return std::bit_ceil(std::max<uint64_t>(options.capacity / options.bucket_size, 1));
}

}  // namespace

uint64_t CuckooChain::FirstTableBytes(const Options& options) {
  return FirstBuckets(options) * options.bucket_size;
}

Result<CuckooChain> CuckooChain::Create(const Options& options) {
  CuckooChain chain;
  chain.buckets_ = FirstBuckets(options);
  chain.bucket_size_ = options.bucket_size;
  chain.max_iterations_ = options.max_iterations;
  chain.expansion_ = options.expansion == 0 ? 0 : std::bit_ceil(options.expansion);
  chain.data_bytes_ = chain.present_ = FirstTableBytes(options);
  ByteArray table = ByteArray::Zeroed(chain.data_bytes_);
  if (table.data() == nullptr) return NoMemory();
  chain.tables_.push_back(std::move(table));
  chain.tags_.push_back(0);
  return chain;
}

Result<CuckooChain> CuckooChain::FromParts(Parts parts, uint64_t greatest_bytes) {
  if (parts.tables.empty()) return BadBytes("no table");
  if (parts.tables.size() > kGreatestTables) return BadBytes("too many tables");
  if (parts.buckets >= kGreatestBytes || !std::has_single_bit(parts.buckets)) {
    return BadBytes(std::to_string(parts.buckets) + " buckets, not a power of two");
  }
  if (parts.bucket_size < 1 || parts.bucket_size > 255) return BadBytes("bucket size out of range");
  if (parts.max_iterations < 1 || parts.max_iterations > 65535) {
    return BadBytes("iterations out of range");
  }
  if (parts.expansion > 32768 || (parts.expansion != 0 && !std::has_single_bit(parts.expansion))) {
    return BadBytes("expansion out of range");
  }
  if (parts.expansion == 0 && parts.tables.size() > 1) {
    return BadBytes("several tables, and it does not grow");
  }
  CuckooChain chain;
  bool missing = false;
  std::optional<uint64_t> bytes = Times(parts.bucket_size, parts.buckets);
  for (size_t i = 0; i < parts.tables.size(); ++i) {
    if (i > 0) bytes = Times(*bytes, parts.expansion);
    if (!bytes || chain.data_bytes_ > kGreatestBytes - *bytes) {
      return BadBytes("more bytes than can be");
    }
    chain.data_bytes_ += *bytes;
    const ByteArray& table = parts.tables[i];
    if (table.size() > *bytes || (missing && table.size() != 0)) {
      return BadBytes("a table's bytes are not those of its buckets");
    }
    chain.present_ += table.size();
    if (table.size() < *bytes) {
      missing = true;
      if (chain.data_bytes_ > greatest_bytes) {
        return BadBytes("greater than a key may be; see tamis-max-bytes");
      }
    }
  }
  if (parts.items > chain.data_bytes_) return BadBytes("more items than places");
  chain.items_ = parts.items;
  chain.deletes_ = parts.deletes;
  chain.buckets_ = parts.buckets;
  chain.bucket_size_ = static_cast<uint16_t>(parts.bucket_size);
  chain.max_iterations_ = static_cast<uint16_t>(parts.max_iterations);
  chain.expansion_ = static_cast<uint16_t>(parts.expansion);
  uint64_t size = parts.bucket_size * parts.buckets;
  for (ByteArray& table : parts.tables) {
    if (table.size() != size) {
      ByteArray whole = ByteArray::Zeroed(size);
      if (whole.data() == nullptr) return NoMemory();
      std::copy_n(table.data(), table.size(), whole.data());
      table = std::move(whole);
    }
    size *= std::max<uint64_t>(parts.expansion, 1);
    chain.tags_.push_back(CountTags(table.data(), table.size()));
  }
  chain.tables_ = std::move(parts.tables);
  return chain;
}

Result<CuckooChain> CuckooChain::FromHeader(std::string_view header, uint64_t greatest_bytes) {
  if (header.size() != kHeaderSize) return BadBytes("a header of another size");
  Reader reader(header);
  Parts parts;
  parts.items = reader.Fixed64();
  parts.buckets = reader.Fixed64();
  parts.deletes = reader.Fixed64();
  const uint64_t tables = reader.Fixed64();
  parts.bucket_size = Fixed16(reader);
  parts.max_iterations = Fixed16(reader);
  parts.expansion = Fixed16(reader);
  if (tables > kGreatestTables) return BadBytes("too many tables");
  parts.tables.resize(tables);
  return FromParts(std::move(parts), greatest_bytes);
}

std::string CuckooChain::Header() const {
  std::string header;
  PutFixed64(&header, items_);
  PutFixed64(&header, buckets_);
  PutFixed64(&header, deletes_);
  PutFixed64(&header, tables_.size());
  PutFixed16(&header, bucket_size_);
  PutFixed16(&header, max_iterations_);
  PutFixed16(&header, expansion_);
  return header;
}

std::string_view CuckooChain::Chunk(uint64_t position) const {
  for (const ByteArray& table : tables_) {
    if (position < table.size()) {
      return {reinterpret_cast<const char*>(table.data()) + position,
              std::min<uint64_t>(table.size() - position, kGreatestChunk)};
    }
    position -= table.size();
  }
  return {};
}

bool CuckooChain::LoadChunk(uint64_t position, std::string_view chunk) {
  if (partial() && position > present_) return false;
  uint64_t at = position;
  for (size_t i = 0; i < tables_.size(); ++i) {
    ByteArray& table = tables_[i];
    if (at < table.size()) {
      if (chunk.size() > table.size() - at) return false;
      tags_[i] -= CountTags(table.data() + at, chunk.size());
      std::copy(chunk.begin(), chunk.end(), table.data() + at);
      tags_[i] += CountTags(table.data() + at, chunk.size());
      present_ = std::max(present_, position + chunk.size());
      return true;
    }
    at -= table.size();
  }
  return false;
}

CuckooChain::Place CuckooChain::PlaceOf(std::string_view item) {
  const uint64_t hash = MurmurHash64A(item, 0);
  const auto tag = static_cast<uint8_t>(hash % 255 + 1);
  return {hash, Alternate(hash, tag), tag};
}

uint8_t* CuckooChain::Bucket(size_t table, uint64_t hash) {
  return tables_[table].data() + (hash & (Buckets(table) - 1)) * bucket_size_;
}

const uint8_t* CuckooChain::Bucket(size_t table, uint64_t hash) const {
  return tables_[table].data() + (hash & (Buckets(table) - 1)) * bucket_size_;
}

CuckooChain::Inserted CuckooChain::Insert(std::string_view item, const Limits& limits) {
  if (partial()) return Inserted::kPartial;
  const Place place = PlaceOf(item);
  PrefetchNewest(place);
  return InsertPlace(place, limits);
}

CuckooChain::Inserted CuckooChain::InsertNew(std::string_view item, const Limits& limits) {
  if (partial()) return Inserted::kPartial;
  const Place place = PlaceOf(item);
  PrefetchAll(place);
  return Contains(place) ? Inserted::kThere : InsertPlace(place, limits);
}

void CuckooChain::PrefetchNewest(const Place& place) const {
  __builtin_prefetch(Bucket(tables_.size() - 1, place.hash), 1);
  __builtin_prefetch(Bucket(tables_.size() - 1, place.other), 1);
}

void CuckooChain::PrefetchAll(const Place& place) const {
  constexpr size_t kFetched = 8;  // more would drive out one another
  for (size_t i = tables_.size(), end = i - std::min(i, kFetched); i-- > end;) {
    __builtin_prefetch(Bucket(i, place.hash));
    __builtin_prefetch(Bucket(i, place.other));
  }
}

template <class Prefetch, class Visit>
void CuckooChain::ForPlaces(std::span<const std::string_view> items, Prefetch&& fetch,
                            Visit&& visit) {
  constexpr size_t kGroup = 32;
  std::array<Place, kGroup> places;
  for (size_t begin = 0; begin < items.size(); begin += kGroup) {
    const size_t count = std::min(kGroup, items.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      places[i] = PlaceOf(items[begin + i]);
      fetch(places[i]);
    }
    for (size_t i = 0; i < count; ++i) visit(begin + i, places[i]);
  }
}

void CuckooChain::Insert(std::span<const std::string_view> items, bool only_new,
                         const Limits& limits, Inserted* out) {
  if (partial()) {
    std::fill_n(out, items.size(), Inserted::kPartial);
    return;
  }
  const auto fetch = [&](const Place& place) {
    only_new ? PrefetchAll(place) : PrefetchNewest(place);
  };
  ForPlaces(items, fetch, [&](size_t i, const Place& place) {
    out[i] = only_new && Contains(place) ? Inserted::kThere : InsertPlace(place, limits);
  });
}

CuckooChain::Inserted CuckooChain::InsertPlace(const Place& place, const Limits& limits) {
  if (!TakeFreeSlot(place) && !Kick(place)) {
    if (expansion_ == 0) return Inserted::kFull;
    if (tables_.size() >= std::min(limits.tables, kGreatestTables)) return Inserted::kTooManyTables;
    const auto bytes = Times(tables_.back().size(), expansion_);
    if (!bytes || SizeBytes() + 16 + *bytes > limits.bytes) {
      return Inserted::kTooLarge;
    }
    if (!AddTable(*bytes)) return Inserted::kNoMemory;
    TakeFreeSlot(place);
  }
  // Bytes from outside may have said more items than there are.
  items_ = std::min(items_ + 1, data_bytes_);
  return Inserted::kYes;
}

bool CuckooChain::AddTable(uint64_t bytes) try {
  tables_.reserve(tables_.size() + 1);
  tags_.reserve(tags_.size() + 1);
  ByteArray table = ByteArray::Zeroed(bytes);
  if (table.data() == nullptr) return false;
  data_bytes_ += bytes;
  present_ = data_bytes_;
  tables_.push_back(std::move(table));
  tags_.push_back(0);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

bool CuckooChain::TakeFreeSlot(const Place& place) {
  for (size_t i = tables_.size(); i-- > 0;) {
    for (const uint64_t hash : {place.hash, place.other}) {
      uint8_t* bucket = Bucket(i, hash);
      if (uint8_t* slot = Find(bucket, 0, bucket_size_)) {
        *slot = place.tag;
        ++tags_[i];
        return true;
      }
    }
  }
  return false;
}

bool CuckooChain::Kick(const Place& place) {
  const size_t newest = tables_.size() - 1;
  uint64_t bucket = place.hash;
  uint8_t tag = place.tag;
  uint32_t slot = 0;
  for (uint32_t i = 0; i < max_iterations_; ++i) {
    std::swap(Bucket(newest, bucket)[slot], tag);
    bucket = Alternate(bucket, tag);
    uint8_t* other = Bucket(newest, bucket);
    if (uint8_t* empty = Find(other, 0, bucket_size_)) {
      *empty = tag;
      ++tags_[newest];
      return true;
    }
    slot = (slot + 1) % bucket_size_;
  }
  for (uint32_t i = 0; i < max_iterations_; ++i) {
    slot = (slot + bucket_size_ - 1) % bucket_size_;
    bucket = Alternate(bucket, tag);
    std::swap(Bucket(newest, bucket)[slot], tag);
  }
  return false;
}

bool CuckooChain::Erase(std::string_view item) {
  if (partial()) return false;
  const Place place = PlaceOf(item);
  for (size_t i = tables_.size(); i-- > 0;) {
    for (const uint64_t hash : {place.hash, place.other}) {
      void* slot = std::memchr(Bucket(i, hash), place.tag, bucket_size_);
      if (slot == nullptr) continue;
      *static_cast<uint8_t*>(slot) = 0;
      --tags_[i];
      if (items_ > 0) --items_;
      ++deletes_;
      if (tables_.size() > 1 && data_bytes_ <= kCompactedByErase && deletes_ > items_ / 10.0) {
        Compact(0, ~uint64_t{0}, false);
      }
      return true;
    }
  }
  return false;
}

bool CuckooChain::Contains(const Place& place) const {
  for (size_t i = tables_.size(); i-- > 0;) {
    for (const uint64_t hash : {place.hash, place.other}) {
      if (Holds(Bucket(i, hash), place.tag, bucket_size_)) return true;
    }
  }
  return false;
}

bool CuckooChain::MayContain(std::string_view item) const {
  if (partial()) return true;
  const Place place = PlaceOf(item);
  PrefetchAll(place);
  return Contains(place);
}

void CuckooChain::MayContain(std::span<const std::string_view> items, bool* out) const {
  if (partial()) {
    std::fill_n(out, items.size(), true);
    return;
  }
  ForPlaces(
      items, [&](const Place& place) { PrefetchAll(place); },
      [&](size_t i, const Place& place) { out[i] = Contains(place); });
}

uint64_t CuckooChain::Count(std::string_view item) const {
  const Place place = PlaceOf(item);
  uint64_t count = 0;
  for (size_t i = 0; i < tables_.size(); ++i) {
    const uint8_t* first = Bucket(i, place.hash);
    const uint8_t* second = Bucket(i, place.other);
    count += std::count(first, first + bucket_size_, place.tag);
    if (second != first) count += std::count(second, second + bucket_size_, place.tag);
  }
  return count;
}

// The tag lies in `bucket` of its table; modulo the buckets of an older one, which divide those of
// this, that is one of its buckets there.
bool CuckooChain::MoveDown(size_t table, uint64_t bucket, uint8_t tag, uint64_t* slots) {
  for (size_t i = 0; i < table; ++i) {
    for (const uint64_t hash : {bucket, Alternate(bucket, tag)}) {
      *slots -= std::min(*slots, kLook);
      if (void* slot = std::memchr(Bucket(i, hash), 0, bucket_size_)) {
        *static_cast<uint8_t*>(slot) = tag;
        ++tags_[i];
        return true;
      }
    }
  }
  return false;
}

bool CuckooChain::DropEmptyTables(std::vector<ByteArray>* dropped) {
  const size_t before = tables_.size();
  while (tables_.size() > 1 && tags_.back() == 0) {
    data_bytes_ -= tables_.back().size();
    if (dropped != nullptr) dropped->push_back(std::move(tables_.back()));
    tables_.pop_back();
    tags_.pop_back();
  }
  present_ = data_bytes_;
  items_ = std::min(items_, data_bytes_);
  return tables_.size() < before;
}

CuckooChain::Compacted CuckooChain::Compact(uint64_t position, uint64_t slots,
                                            bool go_on_after_stuck_tag,
                                            std::vector<ByteArray>* dropped) {
  if (partial()) return {};
  Compacted piece;
  piece.changed = DropEmptyTables(dropped);
  size_t i = tables_.size() - 1;
  uint64_t begin = data_bytes_ - tables_[i].size();
  uint64_t at = 0;
  if (position != 0 && position < data_bytes_) {
    while (position < begin) begin -= tables_[--i].size();
    at = position - begin;
  }
  for (; i > 0; begin -= tables_[--i].size(), at = 0) {
    uint8_t* const table = tables_[i].data();
    const uint64_t size = tables_[i].size();
    bool left = false;  // a tag of this piece, which alone says nothing
    while (at < size && tags_[i] > 0) {
      if (slots == 0) {
        piece.next = next_piece_ = begin + at;
        return piece;
      }
      if (slots >= 8 && at + 8 <= size && EightZeros(table + at)) {
        slots -= 8;
        at += 8;
        continue;
      }
      --slots;
      if (uint8_t& slot = table[at]; slot != 0) {
        if (MoveDown(i, at / bucket_size_, slot, &slots)) {
          slot = 0;
          --tags_[i];
          piece.changed = true;
        } else {
          left = true;
        }
      }
      ++at;
    }
    if (faults.drops_what_was_passed && !left) tags_[i] = 0;
    if (tags_[i] > 0 && !go_on_after_stuck_tag) break;
  }
  piece.changed |= DropEmptyTables(dropped);
  piece.changed |= deletes_ != 0;
  deletes_ = 0;
  next_piece_ = 0;
  return piece;
}

std::optional<CuckooChain> CuckooChain::Copy() const {
  CuckooChain copy;
  copy.items_ = items_;
  copy.deletes_ = deletes_;
  copy.buckets_ = buckets_;
  copy.bucket_size_ = bucket_size_;
  copy.max_iterations_ = max_iterations_;
  copy.expansion_ = expansion_;
  copy.data_bytes_ = data_bytes_;
  copy.present_ = present_;
  copy.tags_ = tags_;
  for (const ByteArray& table : tables_) {
    ByteArray bytes = ByteArray::Zeroed(table.size());
    if (bytes.data() == nullptr) return std::nullopt;
    std::memcpy(bytes.data(), table.data(), table.size());
    copy.tables_.push_back(std::move(bytes));
  }
  return copy;
}

}  // namespace tamis::redis
