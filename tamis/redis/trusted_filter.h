// TrustedFilter: what a key of our own type holds: a filter of any type, whether its "no" may be
// believed, and the one that is being filled to take its place.
//
// A filter that guards a database must never say no for a row that exists. One with `guard` is
// believed when somebody who knows has said that it holds all rows (TAMIS.TRUST), and no longer
// once adds may be missing: after it was loaded, copied, restored or moved away from its name, or
// after the role changed.
// While chunks are missing there is no filter, and nothing is known.
//
// A rebuild takes every add from its start on, as the filter does, and the rows that somebody reads
// from the database. It takes no erase: the row may not be in it, and the erase would take away
// another one. It may take the filter's place only if no add was lost or refused since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/filter/any_filter.h"

namespace tamis::redis {

class TrustedFilter {
 public:
  static constexpr size_t kGreatestChunk = size_t{16} << 20;

  // The options of the reservation, and facts about the filter.
  struct Metadata {
    bool guard = false;
    bool incomplete = false;   // an add that another server had taken was refused here
    bool was_trusted = false;  // by the server that saved it
    bool was_in_log = false;   // saved as a part of that server's own log (AOF)
    double wanted_rate = 0;
    uint64_t capacity = 0;
    uint64_t bytes = 0;         // of the serialized filter; 0 = there is only a rebuild
    uint64_t rebuilt_time = 0;  // of the last commit, in ms since 1970; 0 = none
    std::string mark;
  };

  struct Rebuild {
    uint64_t id = 0;          // who commits says which one
    bool incomplete = false;  // it refused an add
    bool was_sound = false;   // on the server that saved it
    double wanted_rate = 0;
    uint64_t capacity = 0;
    uint64_t bytes = 0;       // of the serialized filter
    uint64_t sound_time = 0;  // the time of trust in which it has every add since its start
    uint64_t skipped = 0;     // erases
    // The lease of the program that fills it, known to the server that granted it alone. Once it
    // is over, `tamis guard load` may take over.
    uint64_t lease_ms = 0;
    uint64_t lease_end_ms = 0;        // since 1970
    std::optional<AnyFilter> filter;  // none while chunks are missing
  };

  // Not trusted.
  TrustedFilter(Metadata metadata, AnyFilter filter)
      : metadata_(std::move(metadata)), filter_(std::move(filter)) {}
  // There is only the rebuild.
  TrustedFilter(Metadata metadata, Rebuild rebuild)
      : metadata_(std::move(metadata)), rebuild_(std::move(rebuild)) {}

  // AppendChunk brings the bytes, as many as the header says.
  static Result<TrustedFilter> FromHeader(std::string_view header, uint64_t greatest_bytes);
  struct Saved {
    std::string header;
    std::string bytes;  // the rebuild's behind the filter's, or those that have come
  };
  // `time` is the present time of trust.
  // Trusted if it is so at this time. `in_log`: see Metadata::was_in_log.
  Saved Save(uint64_t time, bool in_log = false) const;
  // The header, but the same on all servers that hold the same, whatever they believe.
  std::string HeaderToCompare() const;

  // kInvalidArgument: more than are missing; kDataLoss: that was the last one, and all together are
  // no filter. Both leave it as it was.
  Status AppendChunk(std::string_view chunk);

  bool partial() const { return partial_; }            // chunks are missing
  bool empty() const { return !filter_.has_value(); }  // so, or there is only a rebuild
  AnyFilter& filter() { return *filter_; }             // REQUIRES: !empty()
  const AnyFilter& filter() const { return *filter_; }
  const Metadata& metadata() const { return metadata_; }

  uint64_t received() const { return received_.size(); }  // while partial
  uint64_t promised() const { return metadata_.bytes + (rebuild_ ? rebuild_->bytes : 0); }

  size_t SizeBytes() const {
    return SizeBytes([](size_t size) { return size; });
  }
  // With what is taken for an array of so many bytes.
  size_t SizeBytes(size_t (*allocated)(size_t size)) const;

  // Brings what the next calls with these items touch into the cache. REQUIRES: !partial()
  void Prefetch(std::span<const std::string_view> items) const;

  // REQUIRES (both): !partial(). The filter, and the rebuild with it.
  enum class Added { kNew, kPerhaps, kFull };
  Added Add(std::string_view item);
  // True when it was there and was erased; the rebuild keeps what it has, which is counted.
  bool Erase(std::string_view item);

  Rebuild* rebuild() { return rebuild_ ? &*rebuild_ : nullptr; }
  const Rebuild* rebuild() const { return rebuild_ ? &*rebuild_ : nullptr; }
  // REQUIRES: !partial(), and none is under way.
  void Start(Rebuild rebuild) { rebuild_ = std::move(rebuild); }
  // REQUIRES: one is under way.
  size_t AddToRebuild(std::span<const std::string_view> items);  // how many it had places for
  bool RebuildMayContain(std::string_view item) const;
  // Answers the filter before it, which may take long to free.
  std::optional<AnyFilter> Commit(uint64_t trusted_time, uint64_t now_ms, std::string mark = {});
  // Answers its filter.
  std::optional<AnyFilter> Abort();

  void set_mark(std::string_view mark) { metadata_.mark = mark; }
  void set_incomplete() { metadata_.incomplete = true; }

  // A dump does not change between its parts, whatever is changed meanwhile.
  const Saved& BeginDump(uint64_t time) { return dump_.emplace(Save(time)); }
  const Saved* dump() const { return dump_ ? &*dump_ : nullptr; }
  void EndDump() { dump_.reset(); }

  // A time of trust: the server counts a new one with each change of role.
  void Trust(uint64_t time);
  // Neither it nor its rebuild has every add.
  void Doubt() {
    Trust(0);
    if (rebuild_) rebuild_->sound_time = 0;
  }
  bool TrustedAt(uint64_t time) const { return trusted_time_ == time; }

  // Stands for this filter as long as none takes its place and nobody has to say that it is to be
  // believed again. Drawn at random by each server for itself, never saved: who erases by a
  // generation that was read before the row went knows that the filter holds it. Never 0.
  uint64_t generation() const { return generation_; }

  struct Counters {
    uint64_t hits = 0;
    uint64_t misses = 0;
    uint64_t unknown = 0;
    uint64_t refused = 0;
    uint64_t skipped = 0;  // erases of what the filter may hold
  };
  Counters& counters() { return counters_; }

 private:
  TrustedFilter() = default;
  static uint64_t NewGeneration();
  bool InsertIntoRebuild(uint64_t hash);

  Metadata metadata_;
  std::optional<AnyFilter> filter_;
  std::optional<Rebuild> rebuild_;
  bool partial_ = false;
  std::string received_;       // while partial
  uint64_t trusted_time_ = 0;  // 0 = not
  uint64_t generation_ = NewGeneration();
  Counters counters_;
  std::optional<Saved> dump_;
};

}  // namespace tamis::redis
