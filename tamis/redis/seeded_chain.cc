#include "tamis/redis/seeded_chain.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <numbers>
#include <utility>

#include "tamis/base/coding.h"
#include "tamis/redis/sip_hash.h"

namespace tamis::redis {
namespace {

constexpr uint8_t kDumpVersion = 1;
constexpr uint8_t kLinkVersion = 1;
constexpr uint64_t kGreatest = uint64_t{1} << 60;
// A link of the least error rate that a double can say has 1075.
constexpr uint32_t kGreatestHashes = 1100;
constexpr uint64_t kPrime = 0xffffffffffffffc5u;  // the greatest below 2^64

// The bytes that valkey-bloom counts: its structures, and a pointer for each place of its list of
// links, whose size is a power of two.
constexpr uint64_t kObjectBytes = 48;
constexpr uint64_t kLinkBytes = 24 + 184;

uint64_t ListPlaces(uint64_t links) {
  return links <= 1 ? 1 : std::bit_ceil(std::max<uint64_t>(4, links));
}

Status BadBytes(std::string why) { return {StatusCode::kDataLoss, "Bloom filter: " + why}; }

bool IsRatio(double value) { return value > 0 && value < 1; }  // not when it is no number

// Bytes of a link's bits; 0 when there are more than can be.
uint64_t BytesFor(double rate, uint64_t capacity) {
  constexpr double kLn2 = std::numbers::ln2;
  const double bytes =
      std::ceil(static_cast<double>(capacity) * std::log(rate) / (-8.0 * (kLn2 * kLn2)));
  return bytes < static_cast<double>(kGreatest) ? static_cast<uint64_t>(bytes) : 0;
}

uint32_t HashesFor(uint64_t bytes, uint64_t capacity) {
  const double hashes = std::round(static_cast<double>(bytes * 8) / static_cast<double>(capacity) *
                                   std::numbers::ln2);
  return hashes < 1 ? 1 : static_cast<uint32_t>(std::min<double>(hashes, kGreatestHashes));
}

// By squares, as the crate's language does: another order may round to another size.
double Power(double base, uint64_t exponent) {
  double power = 1;
  for (;; base *= base) {
    if ((exponent & 1) != 0) power *= base;
    exponent /= 2;
    if (exponent == 0) return power;
  }
}

// That of link number i; 0 = it is too small.
double RateOfLink(double rate, double tightening, uint64_t i) {
  const double of_link = rate * Power(tightening, i);
  return of_link > std::numeric_limits<double>::min() ? of_link : 0;
}

std::string_view TextOf(const ByteArray& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads `bits` and `hashes` of a link out of its bytes. The seed must be that of the others.
Status ReadLink(SeededChain::Link* link, SeededChain::Seed* seed, bool first) {
  Reader reader(TextOf(link->bytes));
  const uint8_t version = reader.Byte();
  const uint64_t bytes = reader.Fixed64();
  link->hashes = reader.Fixed32();
  const std::string_view of_link = reader.Bytes(seed->size());
  if (!reader.ok() || version != kLinkVersion) return BadBytes("a link without its header");
  if (bytes == 0 || bytes != reader.rest().size()) {
    return BadBytes("a link's bytes are not as many as it says");
  }
  if (link->hashes == 0 || link->hashes > kGreatestHashes) {
    return BadBytes(std::to_string(link->hashes) + " hashes");
  }
  if (first) std::memcpy(seed->data(), of_link.data(), seed->size());
  if (std::memcmp(seed->data(), of_link.data(), seed->size()) != 0) {
    return BadBytes("links of different seeds");
  }
  link->bits = bytes * 8;
  if (link->capacity == 0 || link->capacity >= kGreatest || link->size > link->capacity) {
    return BadBytes("a link of " + std::to_string(link->size) + " items and capacity " +
                    std::to_string(link->capacity));
  }
  return Status::Ok();
}

}  // namespace

const SeededChain::Seed SeededChain::kFixedSeed = {
    89, 15,  245, 34,  234, 120, 17,  218, 167, 20,  216, 9,   59, 62, 123, 217,
    29, 137, 138, 115, 62,  152, 136, 135, 48,  127, 151, 205, 40, 7,  51,  131};

struct SeededChain::ItemHash {
  // A slice is hashed with its length before it.
  ItemHash(std::string_view item, const Seed& seed)
      : first(SipHash13(std::span<const uint8_t, 16>(seed.data(), 16), item.size(), item)),
        second(SipHash13(std::span<const uint8_t, 16>(seed.data() + 16, 16), item.size(), item)) {}

  // The position of probe i.
  uint64_t Bit(const Link& link, uint32_t i) const {
    const uint64_t hash = i == 0 ? first : i == 1 ? second : (first + i * second) % kPrime;
    return hash % link.bits;
  }
  bool IsIn(const Link& link) const {
    const uint8_t* bits = link.bytes.data() + kLinkHeader;
    for (uint32_t i = 0; i < link.hashes; ++i) {
      const uint64_t bit = Bit(link, i);
      if ((bits[bit / 8] & (1 << (bit % 8))) == 0) return false;
    }
    return true;
  }
  void Set(Link& link) const {
    uint8_t* bits = link.bytes.data() + kLinkHeader;
    for (uint32_t i = 0; i < link.hashes; ++i) {
      const uint64_t bit = Bit(link, i);
      bits[bit / 8] |= static_cast<uint8_t>(1 << (bit % 8));
    }
  }

  uint64_t first;
  uint64_t second;
};

uint64_t SeededChain::FirstSizeBytes(const Options& options) {
  const uint64_t bytes = BytesFor(options.error_rate, options.capacity);
  return bytes == 0 ? 0 : kObjectBytes + 8 * ListPlaces(1) + kLinkBytes + bytes;
}

Result<SeededChain> SeededChain::Create(const Options& options) {
  SeededChain chain;
  chain.expansion_ = options.expansion;
  chain.error_rate_ = options.error_rate;
  chain.tightening_ = options.tightening;
  chain.seed_ = options.seed;
  chain.random_seed_ = options.seed != kFixedSeed;
  if (!chain.AddLink(options.error_rate, options.capacity)) {
    return Status(StatusCode::kResourceExhausted, "memory does not suffice for the filter");
  }
  return chain;
}

bool SeededChain::AddLink(double rate, uint64_t capacity) try {
  const uint64_t bytes = BytesFor(rate, capacity);
  if (bytes == 0) return false;
  links_.reserve(links_.size() + 1);
  Link link;
  link.bytes = ByteArray::Zeroed(kLinkHeader + bytes);
  if (link.bytes.data() == nullptr) return false;
  link.bits = bytes * 8;
  link.hashes = HashesFor(bytes, capacity);
  link.capacity = capacity;
  std::string header(1, static_cast<char>(kLinkVersion));
  PutFixed64(&header, bytes);
  PutFixed32(&header, link.hashes);
  header.append(reinterpret_cast<const char*>(seed_.data()), seed_.size());
  std::memcpy(link.bytes.data(), header.data(), header.size());
  links_.push_back(std::move(link));
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

Result<SeededChain> SeededChain::FromParts(Parts parts) {
  if (parts.links.empty()) return BadBytes("no link");
  if (parts.expansion > std::numeric_limits<uint32_t>::max()) {
    return BadBytes("expansion out of range");
  }
  if (!IsRatio(parts.error_rate)) return BadBytes("error rate not in (0, 1)");
  if (!IsRatio(parts.tightening)) return BadBytes("tightening ratio not in (0, 1)");
  SeededChain chain;
  uint64_t items = 0;
  for (Link& link : parts.links) {
    TAMIS_RETURN_IF_ERROR(ReadLink(&link, &chain.seed_, &link == &parts.links.front()));
    if (&link != &parts.links.back() && link.size != link.capacity) {
      return BadBytes("a link that is not full before another one");
    }
    items += link.capacity;
    if (items >= kGreatest) return BadBytes("more items than can be");
  }
  if (!parts.random_seed && chain.seed_ != kFixedSeed) {
    return BadBytes("its seed is said to be the fixed one, and is another");
  }
  chain.expansion_ = static_cast<uint32_t>(parts.expansion);
  chain.error_rate_ = parts.error_rate;
  chain.tightening_ = parts.tightening;
  chain.random_seed_ = parts.random_seed;
  chain.links_ = std::move(parts.links);
  return chain;
}

Result<SeededChain> SeededChain::FromDump(std::string_view dump) {
  Reader reader(dump);
  const uint8_t version = reader.Byte();
  if (reader.ok() && version != kDumpVersion) {
    return Status(StatusCode::kFailedPrecondition, "Bloom filter: a dump of an unknown version");
  }
  Parts parts;
  parts.expansion = reader.Fixed32();
  parts.error_rate = std::bit_cast<double>(reader.Fixed64());
  parts.tightening = std::bit_cast<double>(reader.Fixed64());
  const uint8_t random_seed = reader.Byte();
  if (random_seed > 1) return BadBytes("a flag that is neither 0 nor 1");
  parts.random_seed = random_seed == 1;
  const uint64_t links = reader.Fixed64();
  // Nothing is allocated for what the dump promises, only for what comes.
  for (uint64_t i = 0; i < links && reader.ok(); ++i) {
    Link link;
    const std::string_view bytes = reader.Bytes(reader.Fixed64());
    link.size = reader.Fixed64();
    link.capacity = reader.Fixed64();
    if (!reader.ok() || bytes.empty()) return BadBytes("the dump ends early");
    link.bytes = ByteArray::Zeroed(bytes.size());
    if (link.bytes.data() == nullptr) {
      return Status(StatusCode::kResourceExhausted, "memory does not suffice for the filter");
    }
    std::memcpy(link.bytes.data(), bytes.data(), bytes.size());
    parts.links.push_back(std::move(link));
  }
  if (!reader.AtEnd()) return BadBytes("the dump has not as many bytes as it says");
  return FromParts(std::move(parts));
}

std::string SeededChain::Dump() const {
  std::string dump(1, static_cast<char>(kDumpVersion));
  PutFixed32(&dump, expansion_);
  PutFixed64(&dump, std::bit_cast<uint64_t>(error_rate_));
  PutFixed64(&dump, std::bit_cast<uint64_t>(tightening_));
  dump += random_seed_ ? '\1' : '\0';
  PutFixed64(&dump, links_.size());
  for (const Link& link : links_) {
    PutFixed64(&dump, link.bytes.size());
    dump += TextOf(link.bytes);
    PutFixed64(&dump, link.size);
    PutFixed64(&dump, link.capacity);
  }
  return dump;
}

SeededChain::Added SeededChain::Add(std::string_view item, uint64_t greatest_bytes) {
  const ItemHash hash(item, seed_);
  if (std::ranges::any_of(links_, [&](const Link& link) { return hash.IsIn(link); })) {
    return Added::kPerhaps;
  }
  if (links_.back().size == links_.back().capacity) {
    if (expansion_ == 0) return Added::kFull;
    const double rate = RateOfLink(error_rate_, tightening_, links_.size());
    if (rate == 0) return Added::kRateIsZero;
    if (links_.back().capacity > kGreatest / expansion_) return Added::kBadCapacity;
    const uint64_t capacity = links_.back().capacity * expansion_;
    const uint64_t bytes = BytesFor(rate, capacity);
    if (bytes == 0 || SizeBytes() + kLinkBytes + bytes > greatest_bytes) return Added::kTooLarge;
    if (!AddLink(rate, capacity)) return Added::kNoMemory;
  }
  hash.Set(links_.back());
  ++links_.back().size;
  return Added::kNew;
}

bool SeededChain::MayContain(std::string_view item) const {
  const ItemHash hash(item, seed_);
  return std::ranges::any_of(links_, [&](const Link& link) { return hash.IsIn(link); });
}

void SeededChain::MayContain(std::span<const std::string_view> items, bool* out) const {
  for (size_t i = 0; i < items.size(); ++i) out[i] = MayContain(items[i]);
}

void SeededChain::Spoil() {
  Link& newest = links_.back();
  std::memset(newest.bytes.data() + kLinkHeader, 0xff, newest.bits / 8);
}

SeededChain::Growth SeededChain::GrowthOf(const Options& options, uint64_t wanted,
                                          uint64_t greatest_bytes) {
  Growth growth;
  uint64_t capacity = options.capacity;
  uint64_t bytes_of_links = 0;
  for (uint64_t links = 0; growth.capacity < wanted; ++links) {
    if (links == kGrowthLinks) return {growth.capacity, Added::kTooLarge};
    const double rate = RateOfLink(options.error_rate, options.tightening, links);
    if (rate == 0) return {growth.capacity, Added::kRateIsZero};
    const uint64_t bytes = BytesFor(rate, capacity);
    if (bytes == 0) return {growth.capacity, Added::kTooLarge};
    bytes_of_links += kLinkBytes + bytes;
    if (kObjectBytes + 8 * ListPlaces(links + 1) + bytes_of_links > greatest_bytes) {
      return {growth.capacity, Added::kTooLarge};
    }
    growth.capacity += capacity;
    if (options.expansion == 0) return {growth.capacity, Added::kFull};
    if (capacity > kGreatest / options.expansion) return {growth.capacity, Added::kBadCapacity};
    capacity *= options.expansion;
  }
  return growth;
}

uint64_t SeededChain::size() const {
  uint64_t size = 0;
  for (const Link& link : links_) size += link.size;
  return size;
}

uint64_t SeededChain::Capacity() const {
  uint64_t capacity = 0;
  for (const Link& link : links_) capacity += link.capacity;
  return capacity;
}

uint64_t SeededChain::SizeBytes() const {
  uint64_t bytes = kObjectBytes + 8 * ListPlaces(links_.size());
  for (const Link& link : links_) bytes += kLinkBytes + link.bits / 8;
  return bytes;
}

SeededChain::Options SeededChain::FirstOptions() const {
  return {error_rate_, links_.front().capacity, expansion_, tightening_, seed_};
}

std::optional<SeededChain> SeededChain::Copy() const try {
  SeededChain copy;
  copy.expansion_ = expansion_;
  copy.error_rate_ = error_rate_;
  copy.tightening_ = tightening_;
  copy.random_seed_ = random_seed_;
  copy.seed_ = seed_;
  for (const Link& link : links_) {
    Link same = {
        .bits = link.bits, .hashes = link.hashes, .size = link.size, .capacity = link.capacity};
    same.bytes = ByteArray::Zeroed(link.bytes.size());
    if (same.bytes.data() == nullptr) return std::nullopt;
    std::memcpy(same.bytes.data(), link.bytes.data(), link.bytes.size());
    copy.links_.push_back(std::move(same));
  }
  return copy;
} catch (const std::bad_alloc&) {
  return std::nullopt;
}

}  // namespace tamis::redis
