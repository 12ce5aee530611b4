#include "tamis/redis/cuckoo_chain.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "tamis/base/coding.h"

namespace tamis::redis {
namespace {

constexpr uint64_t kGreatestBytes = uint64_t{1} << 62;
// Above these bytes an erase does not compact by itself, since it would take too long.
constexpr uint64_t kCompactedByErase = uint64_t{1} << 20;

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

uint64_t FirstBuckets(const CuckooChain::Options& options) {
  return std::bit_ceil(std::max<uint64_t>(options.capacity / options.bucket_size, 1));
}

}  // namespace

uint64_t CuckooChain::FirstTableBytes(const Options& options) {
  return FirstBuckets(options) * options.bucket_size;
}

Result<CuckooChain> CuckooChain::Create(const Options& options) {
  CuckooChain chain;
  chain.max_iterations_ = options.max_iterations;
  chain.tables_ = CuckooTables(FirstBuckets(options), options.bucket_size,
                               options.expansion == 0 ? 0 : std::bit_ceil(options.expansion));
  if (!chain.tables_.AddEmpty(FirstTableBytes(options))) return NoMemory();
  chain.present_ = chain.tables_.data_bytes();
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
  uint64_t data_bytes = 0;
  uint64_t present = 0;
  bool missing = false;
  std::optional<uint64_t> bytes = Times(parts.bucket_size, parts.buckets);
  for (size_t i = 0; i < parts.tables.size(); ++i) {
    if (i > 0) bytes = Times(*bytes, parts.expansion);
    if (!bytes || data_bytes > kGreatestBytes - *bytes) return BadBytes("more bytes than can be");
    data_bytes += *bytes;
    const ByteArray& table = parts.tables[i];
    if (table.size() > *bytes || (missing && table.size() != 0)) {
      return BadBytes("a table's bytes are not those of its buckets");
    }
    present += table.size();
    if (table.size() < *bytes) {
      missing = true;
      if (data_bytes > greatest_bytes) {
        return BadBytes("greater than a key may be; see tamis-max-bytes");
      }
    }
  }
  if (parts.items > data_bytes) return BadBytes("more items than places");
  CuckooChain chain;
  chain.items_ = parts.items;
  chain.deletes_ = parts.deletes;
  chain.max_iterations_ = static_cast<uint16_t>(parts.max_iterations);
  chain.present_ = present;
  chain.tables_ = CuckooTables(parts.buckets, static_cast<uint16_t>(parts.bucket_size),
                               static_cast<uint16_t>(parts.expansion));
  uint64_t size = parts.bucket_size * parts.buckets;
  for (ByteArray& table : parts.tables) {
    if (table.size() != size) {
      ByteArray whole = ByteArray::Zeroed(size);
      if (whole.data() == nullptr) return NoMemory();
      std::copy_n(table.data(), table.size(), whole.data());
      table = std::move(whole);
    }
    size *= std::max<uint64_t>(parts.expansion, 1);
    chain.tables_.Add(std::move(table));
  }
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
  PutFixed64(&header, buckets());
  PutFixed64(&header, deletes_);
  PutFixed64(&header, tables_.size());
  PutFixed16(&header, bucket_size());
  PutFixed16(&header, max_iterations_);
  PutFixed16(&header, expansion());
  return header;
}

std::string_view CuckooChain::Chunk(uint64_t position) const {
  return tables_.Bytes(position, kGreatestChunk);
}

bool CuckooChain::LoadChunk(uint64_t position, std::string_view chunk) {
  if (partial() && position > present_) return false;
  if (!tables_.SetBytes(position, chunk)) return false;
  present_ = std::max(present_, position + chunk.size());
  return true;
}

CuckooChain::Inserted CuckooChain::Insert(std::string_view item, const Limits& limits) {
  if (partial()) return Inserted::kPartial;
  const Place place = CuckooTables::PlaceOf(item);
  tables_.PrefetchNewest(place);
  return InsertPlace(place, limits);
}

CuckooChain::Inserted CuckooChain::InsertNew(std::string_view item, const Limits& limits) {
  if (partial()) return Inserted::kPartial;
  const Place place = CuckooTables::PlaceOf(item);
  tables_.PrefetchAll(place);
  return tables_.Contains(place) ? Inserted::kThere : InsertPlace(place, limits);
}

template <class Prefetch, class Visit>
void CuckooChain::ForPlaces(std::span<const std::string_view> items, Prefetch&& fetch,
                            Visit&& visit) {
  constexpr size_t kGroup = 32;
  std::array<Place, kGroup> places;
  for (size_t begin = 0; begin < items.size(); begin += kGroup) {
    const size_t count = std::min(kGroup, items.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      places[i] = CuckooTables::PlaceOf(items[begin + i]);
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
    only_new ? tables_.PrefetchAll(place) : tables_.PrefetchNewest(place);
  };
  ForPlaces(items, fetch, [&](size_t i, const Place& place) {
    out[i] = only_new && tables_.Contains(place) ? Inserted::kThere : InsertPlace(place, limits);
  });
}

CuckooChain::Inserted CuckooChain::InsertPlace(const Place& place, const Limits& limits) {
  if (!tables_.TakeFreeSlot(place) && !tables_.Kick(place, max_iterations_)) {
    if (expansion() == 0) return Inserted::kFull;
    if (tables_.size() >= std::min(limits.tables, kGreatestTables)) return Inserted::kTooManyTables;
    const auto bytes = Times(tables().back().size(), expansion());
    if (!bytes || SizeBytes() + 16 + *bytes > limits.bytes) {
      return Inserted::kTooLarge;
    }
    if (!tables_.AddEmpty(*bytes)) return Inserted::kNoMemory;
    present_ = tables_.data_bytes();
    tables_.TakeFreeSlot(place);
  }
  // Bytes from outside may have said more items than there are.
  items_ = std::min(items_ + 1, tables_.data_bytes());
  return Inserted::kYes;
}

bool CuckooChain::Erase(std::string_view item) {
  if (partial() || !tables_.Erase(CuckooTables::PlaceOf(item))) return false;
  if (items_ > 0) --items_;
  ++deletes_;
  if (tables_.size() > 1 && tables_.data_bytes() <= kCompactedByErase && deletes_ > items_ / 10.0) {
    Compact(0, ~uint64_t{0}, false);
  }
  return true;
}

bool CuckooChain::MayContain(std::string_view item) const {
  if (partial()) return true;
  const Place place = CuckooTables::PlaceOf(item);
  tables_.PrefetchAll(place);
  return tables_.Contains(place);
}

void CuckooChain::MayContain(std::span<const std::string_view> items, bool* out) const {
  if (partial()) {
    std::fill_n(out, items.size(), true);
    return;
  }
  ForPlaces(
      items, [&](const Place& place) { tables_.PrefetchAll(place); },
      [&](size_t i, const Place& place) { out[i] = tables_.Contains(place); });
}

uint64_t CuckooChain::Count(std::string_view item) const {
  return tables_.Count(CuckooTables::PlaceOf(item));
}

CompactedPiece CuckooChain::Compact(uint64_t position, uint64_t slots, bool go_on_after_stuck_tag,
                                    std::vector<ByteArray>* dropped) {
  if (partial()) return {};
  CompactedPiece piece = CompactPiece(&tables_, position, slots, go_on_after_stuck_tag, dropped);
  present_ = tables_.data_bytes();
  items_ = std::min(items_, tables_.data_bytes());
  next_piece_ = piece.next;
  if (piece.next == 0) {
    piece.changed |= deletes_ != 0;
    deletes_ = 0;
  }
  return piece;
}

std::optional<CuckooChain> CuckooChain::Copy() const {
  std::optional<CuckooTables> tables = tables_.Copy();
  if (!tables) return std::nullopt;
  CuckooChain copy;
  copy.items_ = items_;
  copy.deletes_ = deletes_;
  copy.max_iterations_ = max_iterations_;
  copy.present_ = present_;
  copy.tables_ = std::move(*tables);
  return copy;
}

}  // namespace tamis::redis
