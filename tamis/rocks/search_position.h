// SearchPosition: how far a search has come in a region; the continuation of a reply is its bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tamis {

struct SearchPosition {
  enum class Order : uint8_t { kRowKey = 0, kEntry = 1 };

  uint64_t branch = 0;  // earlier branches are done
  Order order = Order::kRowKey;
  // The last row key, or the last entry (encoded values, row key), of the branch that is done.
  // Empty: nothing is.
  std::string last;

  std::string Serialize() const;
  static std::optional<SearchPosition> Parse(std::string_view bytes);
};

}  // namespace tamis
