#include "tamis/redis/bloom_link.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace tamis::redis {
namespace {

constexpr double kLn2 = 0.693147180559945;
constexpr double kLn2Squared = 0.480453013918201;
// A link of the least error rate that a double can say has 1075.
constexpr uint32_t kGreatestHashes = 1100;

Status BadLink(std::string why) { return {StatusCode::kDataLoss, "Bloom filter: " + why}; }

}  // namespace

std::optional<BloomLink::Geometry> BloomLink::GeometryFor(double error_rate, uint64_t entries) {
  Geometry geometry;
  geometry.bits_per_entry = -std::log(error_rate) / kLn2Squared;
  const double bits = static_cast<double>(entries) * geometry.bits_per_entry;
  if (!(bits < static_cast<double>(kGreatestBits))) return std::nullopt;
  geometry.bits = (std::max<uint64_t>(static_cast<uint64_t>(bits), 1) + 63) / 64 * 64;
  geometry.hashes = static_cast<uint32_t>(std::ceil(kLn2 * geometry.bits_per_entry));
  return geometry;
}

std::optional<BloomLink> BloomLink::Create(double error_rate, uint64_t entries) {
  const auto geometry = GeometryFor(error_rate, entries);
  if (!geometry) return std::nullopt;
  BloomLink link;
  link.bytes = ByteArray::Zeroed(geometry->bits / 8);
  if (link.bytes.data() == nullptr) return std::nullopt;
  link.bits = geometry->bits;
  link.SetReciprocal();
  link.error_rate = error_rate;
  link.bits_per_entry = geometry->bits_per_entry;
  link.hashes = geometry->hashes;
  link.entries = entries;
  return link;
}

std::optional<BloomLink> BloomLink::Copy() const {
  BloomLink copy;
  copy.bits = bits;
  copy.reciprocal = reciprocal;
  copy.size = size;
  copy.error_rate = error_rate;
  copy.bits_per_entry = bits_per_entry;
  copy.hashes = hashes;
  copy.entries = entries;
  copy.n2 = n2;
  copy.bytes = ByteArray::Zeroed(bytes.size());
  if (copy.bytes.data() == nullptr) return std::nullopt;
  std::memcpy(copy.bytes.data(), bytes.data(), bytes.size());
  return copy;
}

Status BloomLink::Check() const {
  if (bits == 0 || bits >= kGreatestBits) {
    return BadLink("a link of " + std::to_string(bits) + " bits");
  }
  if (n2 != 0 && (n2 > 62 || bits != uint64_t{1} << n2)) {
    return BadLink("a link whose bits are not 2^n2");
  }
  if (!(error_rate > 0 && error_rate < 1)) return BadLink("error rate not in (0, 1)");
  if (!(bits_per_entry > 0 && bits_per_entry < kGreatestHashes * 2)) {
    return BadLink("bits per entry out of range");
  }
  // The number of hashes must follow from the bits per entry, which also bounds it.
  if (hashes == 0 || hashes > kGreatestHashes ||
      hashes != static_cast<uint32_t>(std::ceil(kLn2 * bits_per_entry))) {
    return BadLink(std::to_string(hashes) + " hashes do not fit the bits per entry");
  }
  if (entries == 0 || entries >= kGreatestBits) {
    return BadLink("a link for " + std::to_string(entries) + " entries");
  }
  return Status::Ok();
}

bool BloomLink::ReadHeader(Reader* reader) {
  const uint64_t size_bytes = reader->Fixed64();
  bits = reader->Fixed64();
  size = reader->Fixed64();
  error_rate = std::bit_cast<double>(reader->Fixed64());
  bits_per_entry = std::bit_cast<double>(reader->Fixed64());
  hashes = reader->Fixed32();
  entries = reader->Fixed64();
  n2 = reader->Byte();
  return Bytes() == size_bytes;
}

void BloomLink::AppendHeader(std::string* header) const {
  PutFixed64(header, bytes.size());
  PutFixed64(header, bits);
  PutFixed64(header, size);
  PutFixed64(header, std::bit_cast<uint64_t>(error_rate));
  PutFixed64(header, std::bit_cast<uint64_t>(bits_per_entry));
  PutFixed32(header, hashes);
  PutFixed64(header, entries);
  header->push_back(static_cast<char>(n2));
}

}  // namespace tamis::redis
