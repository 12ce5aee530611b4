#include "tamis/filter/filter_bytes.h"

#include <bit>

#include "tamis/base/coding.h"
#include "tamis/base/hash.h"

namespace tamis {
namespace {

static_assert(std::endian::native == std::endian::little,
              "payload words are stored as they lie in memory, little-endian");

constexpr std::string_view kMagic = "tamisflt";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderChecksumAt = 120;

std::string_view AsBytes(std::span<const uint64_t> words) {
  return {reinterpret_cast<const char*>(words.data()), words.size_bytes()};
}

struct RawHeader {
  FilterHeader header;
  uint64_t payload_size = 0;
  uint64_t payload_checksum = 0;
};

Status Bad(std::string_view why) { return DataLoss("cannot read a filter: " + std::string(why)); }

Result<RawHeader> ReadRawHeader(std::string_view bytes) {
  if (bytes.size() < kMagic.size() || bytes.substr(0, kMagic.size()) != kMagic) {
    return Bad("the bytes do not begin as a tamis filter does");
  }
  if (bytes.size() < kFilterHeaderSize) return Bad("the header is cut short");
  Reader reader(bytes.substr(kMagic.size(), kFilterHeaderSize - kMagic.size()));
  RawHeader raw;
  const uint32_t version = reader.Fixed32();
  raw.header.kind = static_cast<FilterKind>(reader.Fixed32());
  raw.header.seed = reader.Fixed64();
  raw.payload_size = reader.Fixed64();
  for (uint64_t& parameter : raw.header.parameters) parameter = reader.Fixed64();
  raw.payload_checksum = reader.Fixed64();
  if (version != kVersion) {
    return Bad("it has format version " + std::to_string(version) + ", this program reads " +
               std::to_string(kVersion));
  }
  if (reader.Fixed64() != Hash(bytes.substr(0, kHeaderChecksumAt), 0)) {
    return Bad("the header's checksum is wrong");
  }
  if (FilterKindName(raw.header.kind).empty()) {
    return Bad("kind " + std::to_string(static_cast<uint32_t>(raw.header.kind)) + " is not known");
  }
  const uint64_t there = bytes.size() - kFilterHeaderSize;
  if (raw.payload_size != there) {
    return Bad("the header promises " + std::to_string(raw.payload_size) +
               " bytes of payload, there are " + std::to_string(there));
  }
  if (there % sizeof(uint64_t) != 0) return Bad("the payload is not a whole number of words");
  return raw;
}

}  // namespace

std::string_view FilterKindName(FilterKind kind) {
  switch (kind) {
    case FilterKind::kBloom:
      return "Bloom filter";
    case FilterKind::kBlockedBloom:
      return "blocked Bloom filter";
    case FilterKind::kCountingBloom:
      return "counting Bloom filter";
    case FilterKind::kSplitCountingBloom:
      return "split counting Bloom filter";
    case FilterKind::kBlockedSplitCountingBloom:
      return "blocked split counting Bloom filter";
    case FilterKind::kScalableSplitCountingBloom:
      return "scalable split counting Bloom filter";
    case FilterKind::kDLeftCountingBloom:
      return "d-left counting Bloom filter";
    case FilterKind::kCuckoo:
      return "cuckoo filter";
    case FilterKind::kQuotient:
      return "quotient filter";
    case FilterKind::kProjectedCountingBloom:
      return "projected counting Bloom filter";
    case FilterKind::kScalableBloom:
      return "scalable Bloom filter";
    case FilterKind::kDynamicCount:
      return "dynamic count filter";
    case FilterKind::kBlockedQuotient:
      return "blocked quotient filter";
    case FilterKind::kBinaryFuse:
      return "binary fuse filter";
  }
  return "";
}

std::string SealFilter(const FilterHeader& header, std::span<const uint64_t> payload) {
  return SealFilter(header, std::span(&payload, 1));
}

std::string SealFilter(const FilterHeader& header,
                       std::span<const std::span<const uint64_t>> payload) {
  size_t payload_size = 0;
  for (const auto part : payload) payload_size += part.size_bytes();
  std::string body;
  body.reserve(kFilterHeaderSize + payload_size);
  body.assign(kFilterHeaderSize, '\0');
  for (const auto part : payload) body += AsBytes(part);

  std::string head(kMagic);
  PutFixed32(&head, kVersion);
  PutFixed32(&head, static_cast<uint32_t>(header.kind));
  PutFixed64(&head, header.seed);
  PutFixed64(&head, payload_size);
  for (const uint64_t parameter : header.parameters) PutFixed64(&head, parameter);
  PutFixed64(&head, Hash(std::string_view(body).substr(kFilterHeaderSize), 0));
  PutFixed64(&head, Hash(head, 0));
  assert(head.size() == kFilterHeaderSize);
  body.replace(0, kFilterHeaderSize, head);
  return body;
}

WordArray OpenedFilter::Take(size_t begin, size_t size) const {
  const auto words = payload.subspan(begin, size);
  return mode == OpenMode::kBorrow ? WordArray::Borrow(words) : WordArray::CopyOf(words);
}

Result<FilterHeader> ReadFilterHeader(std::string_view bytes) {
  TAMIS_ASSIGN_OR_RETURN(RawHeader raw, ReadRawHeader(bytes));
  return raw.header;
}

Status VerifyFilterBytes(std::string_view bytes) {
  TAMIS_ASSIGN_OR_RETURN(RawHeader raw, ReadRawHeader(bytes));
  if (Hash(bytes.substr(kFilterHeaderSize), 0) != raw.payload_checksum) {
    return FilterDataLoss(raw.header.kind, "the payload's checksum is wrong");
  }
  return Status::Ok();
}

Result<OpenedFilter> OpenFilter(std::string_view bytes, FilterKind kind, size_t parameters,
                                OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(RawHeader raw, ReadRawHeader(bytes));
  if (raw.header.kind != kind) {
    return FilterDataLoss(
        kind, "the bytes are those of a " + std::string(FilterKindName(raw.header.kind)));
  }
  for (size_t i = parameters; i < raw.header.parameters.size(); ++i) {
    if (raw.header.parameters[i] != 0) return FilterDataLoss(kind, "unknown parameters are set");
  }
  OpenedFilter opened;
  opened.header = raw.header;
  opened.mode = mode;
  const char* payload = bytes.data() + kFilterHeaderSize;
  const size_t words = raw.payload_size / sizeof(uint64_t);
  const bool aligned = reinterpret_cast<uintptr_t>(payload) % alignof(uint64_t) == 0;
  if (mode == OpenMode::kBorrow && !aligned) {
    return InvalidArgument("cannot map a " + std::string(FilterKindName(kind)) +
                           ": the bytes are not aligned to 8; copy them");
  }
  if (mode == OpenMode::kCopy) TAMIS_RETURN_IF_ERROR(VerifyFilterBytes(bytes));
  if (aligned) {
    opened.payload = {reinterpret_cast<const uint64_t*>(payload), words};
  } else {
    opened.storage = WordArray(words);
    std::memcpy(opened.storage.MutableData(), payload, raw.payload_size);
    opened.payload = opened.storage.words();
  }
  return opened;
}

Status FilterDataLoss(FilterKind kind, std::string_view why) {
  return DataLoss("cannot read a " + std::string(FilterKindName(kind)) + ": " + std::string(why));
}

}  // namespace tamis
