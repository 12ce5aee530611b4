// SearchPosition: how far a search has come in a region; the continuation of a reply is its bytes
// (docs/FORMATS.md#continuations).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tamis {

struct SearchPosition {
  static constexpr uint8_t kVersion = 2;
  enum class Order : uint8_t {
    kRowKey = 0,
    kEntry = 1,
    kEntryDescending = 2,
    kRowKeyDescending = 3,  // rows are scanned from the last to the first
  };

  uint64_t branch = 0;  // earlier branches are done
  Order order = Order::kRowKey;
  // The driving index; 0 = none, rows are scanned. Entries are in its order. Row keys have the same
  // order whichever index drives, so that another one may take over.
  uint32_t index_id = 0;
  // The last row key, or the last entry (encoded values, row key), of the branch that is done.
  // Empty: nothing is.
  std::string last;

  bool IsByEntry() const { return order == Order::kEntry || order == Order::kEntryDescending; }
  bool IsDescending() const {
    return order == Order::kEntryDescending || order == Order::kRowKeyDescending;
  }
  // Whether the entry comes after `last`. REQUIRES: IsByEntry().
  bool IsToCome(std::string_view entry) const {
    return last.empty() || (IsDescending() ? entry < last : entry > last);
  }
  // Whether something of the branch is done.
  bool HasBegun() const { return IsByEntry() || !last.empty(); }

  std::string Serialize() const;
  // nullopt when the bytes are damaged, or of another version.
  static std::optional<SearchPosition> Parse(std::string_view bytes);

  friend bool operator==(const SearchPosition&, const SearchPosition&) = default;
};

}  // namespace tamis
