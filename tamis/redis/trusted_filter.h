// TrustedFilter: what a key of our own type holds: a filter of any type, and whether its "no" may be
// believed.
//
// A filter that guards a database must never say no for a row that exists. One with `guard` is
// believed when somebody who knows has said that it holds all rows (TAMIS.TRUST), and no longer
// once its last adds may be lost: after it was loaded, copied or restored, or the role changed.
// While chunks are missing there is no filter, and nothing is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/filter/any_filter.h"

namespace tamis::redis {

class TrustedFilter {
 public:
  static constexpr size_t kGreatestChunk = size_t{16} << 20;

  // What was asked for, and what is said of it.
  struct Card {
    bool guard = false;
    bool incomplete = false;  // an add that another server had taken was refused here
    bool was_trusted = false;  // by the server that saved it
    double wanted_rate = 0;
    uint64_t capacity = 0;
    uint64_t bytes = 0;  // of the serialized filter
    std::string mark;
  };

  // Not trusted.
  TrustedFilter(Card card, AnyFilter filter)
      : card_(std::move(card)), filter_(std::move(filter)) {}

  // The bytes are `card.bytes`, and AppendChunk brings them.
  static Result<TrustedFilter> Partial(Card card, uint64_t greatest_bytes);
  static Result<TrustedFilter> FromHeader(std::string_view header, uint64_t greatest_bytes);
  // With `bytes` of the serialized filter, which Serialized() gives.
  std::string Header(uint64_t bytes, bool trusted) const;

  // kInvalidArgument: more than are missing; kDataLoss: that was the last one, and all together are
  // no filter. Both leave it as it was.
  Status AppendChunk(std::string_view chunk);

  bool partial() const { return !filter_.has_value(); }
  AnyFilter& filter() { return *filter_; }  // REQUIRES: !partial()
  const AnyFilter& filter() const { return *filter_; }
  const Card& card() const { return card_; }

  uint64_t received() const { return received_.size(); }  // while partial

  // All bytes, or those that have come.
  std::string Serialized() const;
  size_t SizeBytes() const;

  void set_mark(std::string_view mark) { card_.mark = mark; }
  void set_incomplete() { card_.incomplete = true; }

  // A time of trust: the server counts a new one with each change of role.
  void Trust(uint64_t time) { trusted_time_ = time; }
  bool TrustedAt(uint64_t time) const { return trusted_time_ == time; }

  struct Counters {
    uint64_t hits = 0;
    uint64_t misses = 0;
    uint64_t unknown = 0;
    uint64_t refused = 0;
  };
  Counters& counters() { return counters_; }

 private:
  TrustedFilter() = default;

  Card card_;
  std::optional<AnyFilter> filter_;
  std::string received_;  // while partial
  uint64_t trusted_time_ = 0;  // 0 = not
  Counters counters_;
};

}  // namespace tamis::redis
