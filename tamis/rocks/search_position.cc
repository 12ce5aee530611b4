#include "tamis/rocks/search_position.h"

#include "tamis/base/coding.h"

namespace tamis {

std::string SearchPosition::Serialize() const {
  std::string bytes(1, static_cast<char>(kVersion));
  PutVarint(&bytes, branch);
  bytes.push_back(static_cast<char>(order));
  PutVarint(&bytes, index_id);
  bytes += last;
  return bytes;
}

std::optional<SearchPosition> SearchPosition::Parse(std::string_view bytes) {
  Reader reader(bytes);
  SearchPosition position;
  if (reader.Byte() != kVersion) return std::nullopt;
  position.branch = reader.Varint();
  const uint8_t order = reader.Byte();
  const uint64_t index_id = reader.Varint();
  if (!reader.ok() || order > static_cast<uint8_t>(Order::kRowKeyDescending) ||
      index_id > UINT32_MAX) {
    return std::nullopt;
  }
  position.index_id = static_cast<uint32_t>(index_id);
  position.order = static_cast<Order>(order);
  position.last = reader.rest();
  return position;
}

}  // namespace tamis
