// TrustedFilter: the value of a Redis key of Tamis' own type. It holds a filter, whether the
// filter's "no" may be believed, and the rebuild: a second filter that is being filled to replace
// the first. The commands create only types that accept inserts; a loaded filter may be of a fixed
// type (binary-fuse), which refuses every add.
//
// A filter that guards a database must never say no for a row that exists. So a filter with `guard`
// is believed only after a client has declared that it holds all rows (TAMIS.TRUST), or has
// committed a rebuild. The trust ends when adds may be missing: after the filter was loaded in
// chunks, copied, restored or moved to another name, or after the server's role changed (trust.h
// has the exact rules).
//
// A filter can arrive in chunks. Until the last chunk has arrived it is partial and answers no
// question.
//
// A rebuild receives every add from its start on, as the filter does, and the rows that a program
// reads from the database (AddToRebuild). It receives no erase: the row may not be in it yet, and
// the erase would remove another row with the same fingerprint. A rebuild may replace the filter
// only if no add was lost or refused since its start.
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

  // The options that the filter was created with, and facts about it.
  struct Metadata {
    bool guard = false;
    bool incomplete = false;   // this server refused an add that another server had accepted
    bool was_trusted = false;  // the server that saved the filter trusted it
    bool was_in_log = false;   // that server saved it as a part of its own log (AOF)
    double wanted_rate = 0;
    uint64_t capacity = 0;
    uint64_t bytes = 0;         // of the serialized filter; 0 = there is only a rebuild
    uint64_t rebuilt_time = 0;  // of the last commit, in ms since 1970; 0 = none
    std::string mark;           // a client's position in its feed of changes (TAMIS.MARK)
  };

  struct Rebuild {
    uint64_t id = 0;          // commands that fill, commit or abort the rebuild name it
    bool incomplete = false;  // it refused an add
    bool was_sound = false;   // on the server that saved it, sound_time was the present time
    double wanted_rate = 0;
    uint64_t capacity = 0;
    uint64_t bytes = 0;       // of the serialized filter
    uint64_t sound_time = 0;  // time of trust in which no add since its start is missing; 0 = none
    uint64_t skipped = 0;     // erases of keys that it may contain; it keeps these keys
    // The lease of the program that fills the rebuild. Only the server that granted it knows it:
    // it is neither saved nor replicated. After its end `tamis guard load` may start anew.
    uint64_t lease_ms = 0;
    uint64_t lease_end_ms = 0;        // since 1970
    std::optional<AnyFilter> filter;  // none while chunks are missing
  };

  // Holds the filter, not trusted.
  TrustedFilter(Metadata metadata, AnyFilter filter)
      : metadata_(std::move(metadata)), filter_(std::move(filter)) {}
  // Holds a rebuild and no filter; empty() is true until the rebuild is committed.
  TrustedFilter(Metadata metadata, Rebuild rebuild)
      : metadata_(std::move(metadata)), rebuild_(std::move(rebuild)) {}

  // Creates a partial filter; AppendChunk then adds the bytes, as many as the header says.
  // kDataLoss when the header is damaged or promises more than `greatest_bytes`.
  static Result<TrustedFilter> FromHeader(std::string_view header, uint64_t greatest_bytes);
  struct Saved {
    std::string header;
    std::string bytes;  // of the filter, then of the rebuild; while partial, those received so far
  };
  // The filter is saved as trusted if it is trusted at `time`, and its rebuild as sound if it is
  // sound at `time`; pass the present time of trust, or one in which nothing is trusted. `in_log`
  // becomes Metadata::was_in_log.
  Saved Save(uint64_t time, bool in_log = false) const;
  // The header without trust, sizes and times: equal on all servers with equal contents, whether
  // or not they trust the filter.
  std::string HeaderToCompare() const;

  // Adds the next bytes. kInvalidArgument: the chunk has more bytes than are missing. kDataLoss: it
  // was the last chunk, and all bytes together do not decode. Either error changes nothing.
  Status AppendChunk(std::string_view chunk);

  bool partial() const { return partial_; }            // chunks are missing
  bool empty() const { return !filter_.has_value(); }  // partial, or there is only a rebuild
  AnyFilter& filter() { return *filter_; }             // REQUIRES: !empty()
  const AnyFilter& filter() const { return *filter_; }
  const Metadata& metadata() const { return metadata_; }

  uint64_t received() const { return received_.size(); }  // bytes, while partial
  // Bytes of filter and rebuild together, as the header says.
  uint64_t promised() const { return metadata_.bytes + (rebuild_ ? rebuild_->bytes : 0); }

  size_t SizeBytes() const {
    return SizeBytes([](size_t size) { return size; });
  }
  // The same, where `allocated` gives the memory that an array of `size` bytes occupies.
  size_t SizeBytes(size_t (*allocated)(size_t size)) const;

  // Loads the memory that the next calls with these items read into the CPU's cache.
  // REQUIRES: !partial()
  void Prefetch(std::span<const std::string_view> items) const;

  // kPerhaps: the filter may have contained the item before. kFull: the filter refused it.
  enum class Added { kNew, kPerhaps, kFull };
  // Adds the item to the filter and to the rebuild. Without a filter the result is the rebuild's.
  // REQUIRES: !partial()
  Added Add(std::string_view item);
  // True when the filter contained the item and erased it. The rebuild keeps the item and counts
  // it in Rebuild::skipped. REQUIRES: !partial()
  bool Erase(std::string_view item);

  Rebuild* rebuild() { return rebuild_ ? &*rebuild_ : nullptr; }
  const Rebuild* rebuild() const { return rebuild_ ? &*rebuild_ : nullptr; }
  // Begins a rebuild. REQUIRES: !partial(), and no rebuild is under way.
  void Start(Rebuild rebuild) { rebuild_ = std::move(rebuild); }
  // REQUIRES, for the following four: a rebuild is under way.
  size_t AddToRebuild(std::span<const std::string_view> items);  // how many the rebuild accepted
  bool RebuildMayContain(std::string_view item) const;
  // Makes the rebuild the filter, trusted at `trusted_time`. Returns the old filter, whose memory
  // may take long to free.
  std::optional<AnyFilter> Commit(uint64_t trusted_time, uint64_t now_ms, std::string mark = {});
  // Drops the rebuild. Returns its filter, for the same reason.
  std::optional<AnyFilter> Abort();

  void set_mark(std::string_view mark) { metadata_.mark = mark; }
  void set_incomplete() { metadata_.incomplete = true; }

  // Keeps a copy of the value, which is sent in parts and does not change while the value does.
  const Saved& BeginDump(uint64_t time) { return dump_.emplace(Save(time)); }
  const Saved* dump() const { return dump_ ? &*dump_ : nullptr; }
  void EndDump() { dump_.reset(); }

  // The filter has every add, as of this time of trust; 0 = it is not trusted. The server counts
  // its times of trust: a new one begins whenever adds may be missing (DoubtAll in trust.h).
  void Trust(uint64_t time);
  // Adds may be missing in the filter and in its rebuild.
  void Doubt() {
    Trust(0);
    if (rebuild_) rebuild_->sound_time = 0;
  }
  bool TrustedAt(uint64_t time) const { return trusted_time_ == time; }

  // A random number that identifies this filter. It changes when a rebuild replaces the filter, on
  // Doubt(), and when the filter becomes trusted again. Each server draws its own and never saves
  // it. A client that reads the generation before it deletes a row, and erases with that
  // generation, knows that the filter contains the row. Never 0.
  uint64_t generation() const { return generation_; }

  struct Counters {
    uint64_t hits = 0;
    uint64_t misses = 0;
    uint64_t unknown = 0;
    uint64_t refused = 0;
    uint64_t skipped = 0;  // erases that were not done; the filter may contain their keys
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
  uint64_t trusted_time_ = 0;  // 0 = not trusted
  uint64_t generation_ = NewGeneration();
  Counters counters_;
  std::optional<Saved> dump_;
};

}  // namespace tamis::redis
