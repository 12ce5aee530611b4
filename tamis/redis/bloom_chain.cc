#include "tamis/redis/bloom_chain.h"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

#include "tamis/base/coding.h"

namespace tamis::redis {
namespace {

constexpr size_t kHeaderSize = 20;

double FirstRate(const BloomChain::Options& options) {
  return options.scaling && options.growth != 0
             ? std::max(options.error_rate * 0.5, std::numeric_limits<double>::min())
             : options.error_rate;
}

Status BadBytes(std::string why) { return {StatusCode::kDataLoss, "Bloom filter: " + why}; }

}  // namespace

// Where an item lies in the newest link, which was fetched ahead: one that is new, as most are,
// touches all of its bits there.
struct BloomChain::Probes {
  Probes() = default;
  Probes(const BloomHash& of, const BloomChain& chain) : hash(of), links(chain.links_.size()) {
    const Link& newest = chain.links_.back();
    count = std::min(BloomLink::kAhead, newest.hashes);
    for (uint32_t i = 0; i < count; ++i) {
      bits[i] = newest.BitOf(hash.a + i * hash.b);
      __builtin_prefetch(newest.bytes.data() + (bits[i] >> 3), 1);
    }
  }

  bool Test(const Link& newest) const {
    for (uint32_t i = 0; i < count; ++i) {
      if (!newest.Has(bits[i])) return false;
    }
    return newest.Test(hash, count);
  }
  void Set(Link& newest) const {
    for (uint32_t i = 0; i < count; ++i) newest.Set(bits[i]);
    for (uint32_t i = count; i < newest.hashes; ++i) {
      newest.Set(newest.BitOf(hash.a + i * hash.b));
    }
  }

  BloomHash hash;
  size_t links;  // how many the chain had
  uint32_t count;
  uint64_t bits[BloomLink::kAhead];
};

uint64_t BloomChain::FirstLinkBytes(const Options& options) {
  const auto geometry = BloomLink::GeometryFor(FirstRate(options), options.capacity);
  return geometry ? geometry->bits / 8 : 0;
}

Result<BloomChain> BloomChain::Create(const Options& options) {
  BloomChain chain;
  if (options.scaling && options.growth != 0) {
    chain.growth_ = options.growth;
  } else {
    chain.options_ |= kNotScaling;  // and the growth is the same for all of them
  }
  if (!chain.AddLink(FirstRate(options), options.capacity)) {
    return Status(StatusCode::kResourceExhausted, "memory does not suffice for the filter");
  }
  chain.present_ = chain.data_bytes_;
  return chain;
}

bool BloomChain::AddLink(double error_rate, uint64_t entries) try {
  links_.reserve(links_.size() + 1);
  auto link = BloomLink::Create(error_rate, entries);
  if (!link) return false;
  data_bytes_ += link->bytes.size();
  links_.push_back(std::move(*link));
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

uint64_t BloomChain::BitsFor(uint64_t entries, double bits_per_entry) {
  const double bits = static_cast<double>(entries) * bits_per_entry;
  return bits >= 1 && bits < static_cast<double>(BloomLink::kGreatestBits)
             ? static_cast<uint64_t>(bits)
             : 0;
}

Result<BloomChain> BloomChain::FromParts(Parts parts, uint64_t greatest_bytes) {
  if (parts.links.empty()) return BadBytes("no link");
  if (parts.size >= BloomLink::kGreatestBits) return BadBytes("more items than can be");
  constexpr uint32_t kKnown = kNoRounding | kEntriesAreBits | kHash64 | kNotScaling;
  if ((parts.options & ~kKnown) != 0) return BadBytes("unknown options");
  if (parts.growth > std::numeric_limits<uint32_t>::max()) return BadBytes("growth out of range");
  if ((parts.options & kNotScaling) == 0 && parts.growth == 0) {
    return BadBytes("it scales, with a growth of 0");
  }
  BloomChain chain;
  chain.options_ = parts.options;
  chain.growth_ = static_cast<uint32_t>(parts.growth);
  uint64_t size = 0;
  bool missing = false;
  for (const Link& link : parts.links) {
    TAMIS_RETURN_IF_ERROR(link.Check());
    // Each is below 2^62 and the sum is compared each time: no overflow.
    chain.data_bytes_ += link.Bytes();
    if (link.size > parts.size || size > parts.size - link.size) {
      return BadBytes("the links have more items than the filter");
    }
    size += link.size;
    if (link.bytes.size() > link.Bytes() || (missing && link.bytes.size() != 0)) {
      return BadBytes("a link's bytes are not those of its bits");
    }
    chain.present_ += link.bytes.size();
    if (link.bytes.size() < link.Bytes()) {
      missing = true;
      if (chain.data_bytes_ > greatest_bytes) {
        return BadBytes("greater than a key may be; see tamis-max-bytes");
      }
    }
    if (chain.data_bytes_ >= BloomLink::kGreatestBits) return BadBytes("more bytes than can be");
  }
  if (size != parts.size) return BadBytes("the links have fewer items than the filter");
  chain.size_ = size;
  for (Link& link : parts.links) {
    link.SetReciprocal();
    if (link.bytes.size() == link.Bytes()) continue;
    ByteArray bytes = ByteArray::Zeroed(link.Bytes());
    if (bytes.data() == nullptr) {
      return Status(StatusCode::kResourceExhausted, "memory does not suffice for the filter");
    }
    std::copy_n(link.bytes.data(), link.bytes.size(), bytes.data());
    link.bytes = std::move(bytes);
  }
  chain.links_ = std::move(parts.links);
  return chain;
}

Result<BloomChain> BloomChain::FromHeader(std::string_view header, uint64_t greatest_bytes) {
  Reader reader(header);
  Parts parts;
  parts.size = reader.Fixed64();
  const uint32_t links = reader.Fixed32();
  parts.options = reader.Fixed32();
  parts.growth = reader.Fixed32();
  if (!reader.ok() || reader.rest().size() != uint64_t{links} * BloomLink::kHeaderSize) {
    return BadBytes("a header of another size than its links have");
  }
  parts.links.resize(links);
  for (Link& link : parts.links) {
    if (!link.ReadHeader(&reader)) return BadBytes("a link's bytes are not those of its bits");
  }
  return FromParts(std::move(parts), greatest_bytes);
}

std::string BloomChain::Header() const {
  std::string header;
  header.reserve(kHeaderSize + BloomLink::kHeaderSize * links_.size());
  PutFixed64(&header, size_);
  PutFixed32(&header, static_cast<uint32_t>(links_.size()));
  PutFixed32(&header, options_);
  PutFixed32(&header, growth_);
  for (const Link& link : links_) link.AppendHeader(&header);
  return header;
}

std::string_view BloomChain::Chunk(uint64_t position) const {
  for (const Link& link : links_) {
    if (position < link.bytes.size()) {
      const uint64_t size = std::min<uint64_t>(link.bytes.size() - position, kGreatestChunk);
      return {reinterpret_cast<const char*>(link.bytes.data()) + position, size};
    }
    position -= link.bytes.size();
  }
  return {};
}

BloomChain::Loaded BloomChain::LoadChunk(uint64_t position, std::string_view chunk) {
  if (partial() && position > present_) return Loaded::kOutOfOrder;
  uint64_t at = position;
  for (Link& link : links_) {
    if (at < link.bytes.size()) {
      if (chunk.size() > link.bytes.size() - at) return Loaded::kTooLong;
      std::copy(chunk.begin(), chunk.end(), link.bytes.data() + at);
      present_ = std::max(present_, position + chunk.size());
      return Loaded::kOk;
    }
    at -= link.bytes.size();
  }
  return Loaded::kNoLink;
}

BloomChain::Added BloomChain::Add(std::string_view item, uint64_t greatest_bytes) {
  if (partial()) return Added::kPartial;
  return AddProbes(Probes(BloomHash(item, hash64()), *this), greatest_bytes);
}

size_t BloomChain::Add(std::span<const std::string_view> items, uint64_t greatest_bytes,
                       Added* out) {
  constexpr size_t kGroup = 16;
  std::array<Probes, kGroup> probes;
  size_t done = 0;
  for (size_t begin = 0; begin < items.size(); begin += kGroup) {
    const size_t count = std::min(kGroup, items.size() - begin);
    if (partial()) {
      out[done] = Added::kPartial;
      return done + 1;
    }
    for (size_t i = 0; i < count; ++i)
      probes[i] = Probes(BloomHash(items[begin + i], hash64()), *this);
    for (size_t i = 0; i < count; ++i) {
      // Items before it may have added a link.
      const Added added =
          AddProbes(probes[i].links == links_.size() ? probes[i] : Probes(probes[i].hash, *this),
                    greatest_bytes);
      out[done++] = added;
      if (added != Added::kNew && added != Added::kPerhaps) return done;
    }
  }
  return done;
}

bool BloomChain::OlderContain(const BloomHash& hash) const {
  for (size_t i = links_.size() - 1; i-- > 0;) links_[i].FetchFirst(hash);
  for (size_t i = links_.size() - 1; i-- > 0;) {
    if (links_[i].Test(hash)) return true;
  }
  return false;
}

// REQUIRES: the probes are of the newest link.
BloomChain::Added BloomChain::AddProbes(const Probes& probes, uint64_t greatest_bytes) {
  if (OlderContain(probes.hash) || probes.Test(links_.back())) return Added::kPerhaps;
  if (const Link& newest = links_.back(); newest.size >= newest.entries) {
    if (!scaling()) return Added::kFull;
    const double rate = std::max(newest.error_rate * 0.5, std::numeric_limits<double>::min());
    if (newest.entries > BloomLink::kGreatestBits / growth_) return Added::kTooLarge;
    const uint64_t entries = newest.entries * growth_;
    const auto geometry = BloomLink::GeometryFor(rate, entries);
    if (!geometry || SizeBytes() + 64 + geometry->bits / 8 > greatest_bytes) {
      return Added::kTooLarge;
    }
    if (!AddLink(rate, entries)) return Added::kNoMemory;
    present_ = data_bytes_;
    Probes(probes.hash, *this).Set(links_.back());
  } else {
    probes.Set(links_.back());
  }
  ++links_.back().size;
  ++size_;
  return Added::kNew;
}

bool BloomChain::MayContain(std::string_view item) const {
  if (partial()) return true;
  const BloomHash hash(item, hash64());
  links_.back().FetchFirst(hash);
  return (links_.size() > 1 && OlderContain(hash)) || links_.back().Test(hash);
}

// Two probes are fetched ahead for all items; those that pass them are mostly hits, and get the
// rest.
void BloomChain::MayContain(std::span<const std::string_view> items, bool* out) const {
  if (partial()) {
    std::fill_n(out, items.size(), true);
    return;
  }
  constexpr size_t kGroup = 32;
  struct Probe {
    BloomHash hash;
    size_t item;
    uint64_t bits[BloomLink::kAhead];
  };
  std::array<Probe, kGroup> probes;
  std::array<uint32_t, kGroup> passed;
  for (size_t begin = 0; begin < items.size(); begin += kGroup) {
    size_t live = std::min(kGroup, items.size() - begin);
    for (size_t i = 0; i < live; ++i) {
      probes[i].hash = BloomHash(items[begin + i], hash64());
      probes[i].item = begin + i;
      out[begin + i] = false;
    }
    for (size_t l = links_.size(); l-- > 0 && live > 0;) {
      const Link& link = links_[l];
      const uint8_t* bytes = link.bytes.data();
      const uint32_t first = std::min(BloomLink::kFirst, link.hashes);
      const uint32_t ahead = std::min(BloomLink::kAhead, link.hashes);
      const auto fetch = [&](Probe& probe, uint32_t from, uint32_t to) {
        for (uint32_t i = from; i < to; ++i) {
          probe.bits[i] = link.BitOf(probe.hash.a + i * probe.hash.b);
          __builtin_prefetch(bytes + (probe.bits[i] >> 3));
        }
      };
      const auto passes = [&](const Probe& probe, uint32_t from, uint32_t to) {
        for (uint32_t i = from; i < to; ++i) {
          if (!link.Has(probe.bits[i])) return false;
        }
        return true;
      };
      for (size_t i = 0; i < live; ++i) fetch(probes[i], 0, first);
      size_t passes_first = 0;
      for (size_t i = 0; i < live; ++i) {
        if (!passes(probes[i], 0, first)) continue;
        fetch(probes[i], first, ahead);
        passed[passes_first++] = static_cast<uint32_t>(i);
      }
      for (size_t j = 0; j < passes_first; ++j) {
        const Probe& probe = probes[passed[j]];
        out[probe.item] = passes(probe, first, ahead) && link.Test(probe.hash, ahead);
      }
      size_t kept = 0;
      for (size_t i = 0; i < live; ++i) {
        if (out[probes[i].item]) continue;
        if (kept != i) {
          probes[kept].hash = probes[i].hash;
          probes[kept].item = probes[i].item;
        }
        ++kept;
      }
      live = kept;
    }
  }
}

Status BloomChain::Merge(const BloomChain& other) {
  if (partial() || other.partial()) return InvalidArgument("chunks are missing");
  bool alike = options_ == other.options_ && growth_ == other.growth_;
  for (size_t i = 0; alike && i < std::min(links_.size(), other.links_.size()); ++i) {
    alike = links_[i].bits == other.links_[i].bits && links_[i].hashes == other.links_[i].hashes;
  }
  if (!alike) {
    return InvalidArgument(
        "the filters were not made with the same error rate, capacity and "
        "expansion");
  }
  // Steps that can fail come first.
  auto more = other.CopyLinks(links_.size());
  if (!more) return {StatusCode::kResourceExhausted, "memory does not suffice for the filter"};
  links_.reserve(links_.size() + more->size());
  for (size_t i = 0; i < std::min(links_.size(), other.links_.size()); ++i) {
    uint8_t* to = links_[i].bytes.data();
    const uint8_t* from = other.links_[i].bytes.data();
    for (size_t at = 0; at < links_[i].bytes.size(); ++at) to[at] |= from[at];
    links_[i].size += other.links_[i].size;
  }
  for (Link& link : *more) {
    data_bytes_ += link.bytes.size();
    links_.push_back(std::move(link));
  }
  present_ = data_bytes_;
  size_ += other.size_;
  return Status::Ok();
}

uint64_t BloomChain::MaxCapacity(uint64_t greatest_bytes) const {
  uint64_t capacity = Capacity();
  uint64_t bytes = SizeBytes();
  double rate = links_.back().error_rate;
  uint64_t entries = links_.back().entries;
  while (scaling() && growth_ != 0 && entries <= BloomLink::kGreatestBits / growth_) {
    rate *= 0.5;
    entries *= growth_;
    const auto geometry = rate > 0 ? BloomLink::GeometryFor(rate, entries) : std::nullopt;
    if (!geometry || bytes + 64 + geometry->bits / 8 > greatest_bytes) break;
    bytes += 64 + geometry->bits / 8;
    capacity += entries;
  }
  return capacity;
}

double BloomChain::error_rate() const { return links_.front().error_rate * (scaling() ? 2 : 1); }

uint64_t BloomChain::Capacity() const {
  uint64_t capacity = 0;
  for (const Link& link : links_) capacity += link.entries;
  return capacity;
}

std::optional<std::vector<BloomChain::Link>> BloomChain::CopyLinks(size_t begin) const {
  std::vector<Link> links;
  for (size_t i = begin; i < links_.size(); ++i) {
    auto copy = links_[i].Copy();
    if (!copy) return std::nullopt;
    links.push_back(std::move(*copy));
  }
  return links;
}

std::optional<BloomChain> BloomChain::Copy() const {
  auto links = CopyLinks(0);
  if (!links) return std::nullopt;
  BloomChain copy;
  copy.size_ = size_;
  copy.options_ = options_;
  copy.growth_ = growth_;
  copy.data_bytes_ = data_bytes_;
  copy.present_ = present_;
  copy.links_ = std::move(*links);
  return copy;
}

}  // namespace tamis::redis
