#include "tamis/redis/trusted_filter.h"

#include <bit>
#include <utility>

#include "tamis/base/coding.h"

namespace tamis::redis {
namespace {

constexpr uint32_t kMagic = 0x46534d54;  // "TMSF"
constexpr uint64_t kGuard = 1;
constexpr uint64_t kIncomplete = 2;
constexpr uint64_t kTrusted = 4;
constexpr size_t kGreatestMark = 1024;

Status BadBytes(std::string why) { return {StatusCode::kDataLoss, "filter: " + why}; }

}  // namespace

Result<TrustedFilter> TrustedFilter::Partial(Card card, uint64_t greatest_bytes) {
  if (card.bytes == 0 || card.bytes >= uint64_t{1} << 62) return BadBytes("no size that can be");
  if (card.bytes > greatest_bytes) {
    return BadBytes("greater than a key may be; see tamis-max-bytes");
  }
  if (!(card.wanted_rate > 0 && card.wanted_rate < 1)) return BadBytes("rate not in (0, 1)");
  if (card.mark.size() > kGreatestMark) return BadBytes("the mark is too long");
  TrustedFilter filter;
  filter.card_ = std::move(card);
  return filter;
}

std::string TrustedFilter::Header(uint64_t bytes, bool trusted) const {
  std::string header;
  PutFixed32(&header, kMagic);
  PutFixed64(&header, (card_.guard ? kGuard : 0) | (card_.incomplete ? kIncomplete : 0) |
                          (trusted ? kTrusted : 0));
  PutFixed64(&header, std::bit_cast<uint64_t>(card_.wanted_rate));
  PutFixed64(&header, card_.capacity);
  PutFixed64(&header, bytes);
  PutLengthPrefixed(&header, card_.mark);
  return header;
}

Result<TrustedFilter> TrustedFilter::FromHeader(std::string_view header, uint64_t greatest_bytes) {
  Reader reader(header);
  if (reader.Fixed32() != kMagic) return BadBytes("these are not its bytes");
  const uint64_t flags = reader.Fixed64();
  Card card;
  card.guard = (flags & kGuard) != 0;
  card.incomplete = (flags & kIncomplete) != 0;
  card.was_trusted = (flags & kTrusted) != 0;
  card.wanted_rate = std::bit_cast<double>(reader.Fixed64());
  card.capacity = reader.Fixed64();
  card.bytes = reader.Fixed64();
  card.mark = reader.LengthPrefixed();
  if (!reader.AtEnd() || (flags & ~(kGuard | kIncomplete | kTrusted)) != 0) return BadBytes("bad header");
  return Partial(std::move(card), greatest_bytes);
}

Status TrustedFilter::AppendChunk(std::string_view chunk) {
  if (!partial() || chunk.size() > card_.bytes - received_.size()) {
    return InvalidArgument("more bytes than are missing");
  }
  if (received_.size() + chunk.size() < card_.bytes) {
    received_ += chunk;
    return Status::Ok();
  }
  std::string all = received_;
  all += chunk;
  auto filter = AnyFilter::Deserialize(all);
  if (!filter.ok()) return filter.status();
  filter_ = std::move(*filter);
  received_ = std::string();
  return Status::Ok();
}

std::string TrustedFilter::Serialized() const {
  return partial() ? received_ : filter_->Serialize();
}

size_t TrustedFilter::SizeBytes() const {
  return sizeof(*this) + card_.mark.size() +
         (partial() ? received_.capacity() : filter_->SizeBytes());
}

}  // namespace tamis::redis
