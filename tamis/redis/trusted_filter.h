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
//
// A filter with a window (window.h) forgets items after a time. It has no rebuild.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/filter/any_filter.h"
#include "tamis/redis/window.h"

namespace tamis::redis {

class TrustedFilter {
 public:
  static constexpr size_t kGreatestChunk = size_t{16} << 20;
  static constexpr uint64_t kNoGreatestBytes = ~uint64_t{0};

  // The options that the filter was created with, and facts about it.
  struct Metadata {
    bool guard = false;
    bool incomplete = false;   // this server refused an add that another server had accepted
    bool was_trusted = false;  // the server that saved the filter trusted it
    bool was_in_log = false;   // that server saved it as a part of its own log (AOF)
    double wanted_rate = 0;
    uint64_t capacity = 0;
    uint64_t bytes = 0;         // bytes of the serialized filter; 0 = there is only a rebuild
    uint64_t rebuilt_time = 0;  // the time of the last commit, in ms since 1970; 0 = none
    // The same by the running clock; 0 = the commit was not by this process.
    int64_t rebuilt_running_ms = 0;
    std::string mark;  // a client's position in its feed of changes (TAMIS.MARK)
  };

  struct Rebuild {
    uint64_t id = 0;          // commands that fill, commit or abort the rebuild name it
    bool incomplete = false;  // it refused an add
    bool was_sound = false;   // on the server that saved it, sound_epoch was the present epoch
    double wanted_rate = 0;
    uint64_t capacity = 0;
    uint64_t bytes = 0;  // bytes of the serialized filter
    uint64_t sound_epoch =
        0;                 // the trust epoch in which no add since its start is missing; 0 = none
    uint64_t skipped = 0;  // erases of keys that it may contain; it keeps these keys
    // The lease of the program that fills the rebuild. Only the server that granted it knows it:
    // it is neither saved nor replicated. After its end `tamis guard load` may start again.
    int64_t lease_ms = 0;
    int64_t lease_end_ms = 0;         // by the running clock
    std::optional<AnyFilter> filter;  // none while chunks are missing
  };

  // Holds the filter, not trusted.
  TrustedFilter(Metadata metadata, AnyFilter filter)
      : metadata_(std::move(metadata)), filter_(std::move(filter)) {}
  // Holds the filter of the first slice of a window, not trusted.
  TrustedFilter(Metadata metadata, AnyFilter filter, Window window)
      : metadata_(std::move(metadata)), filter_(std::move(filter)), window_(std::move(window)) {}
  // Holds a rebuild and no filter; empty() is true until the rebuild is committed.
  TrustedFilter(Metadata metadata, Rebuild rebuild)
      : metadata_(std::move(metadata)), rebuild_(std::move(rebuild)) {}

  // Creates a partial filter; AppendChunk then adds the bytes, as many as the header says.
  // kDataLoss when the header is damaged or promises more than `greatest_bytes`.
  static Result<TrustedFilter> FromHeader(std::string_view header, uint64_t greatest_bytes);
  // The header without the record of the server that saved it: not trusted, not sound, and no part
  // of a log.
  static std::string WithoutRecord(std::string_view header);
  struct Saved {
    std::string header;
    // The filter, then the older slices of a window or the rebuild; while partial, what was
    // received so far.
    std::string bytes;
  };
  // The filter is saved as trusted if it is trusted in `trust_epoch`, and its rebuild as sound if
  // it is sound in it; pass the present trust epoch, or kNoTrustEpoch. `in_log` becomes
  // Metadata::was_in_log. A window is saved with its time at `now`.
  Saved Save(uint64_t trust_epoch, bool in_log = false, Moment now = {}) const;
  // The header without trust, sizes and times: equal on all servers with equal contents, whether
  // or not they trust the filter.
  std::string HeaderToCompare() const;

  // Adds the next bytes. kInvalidArgument: the chunk has more bytes than are missing. kDataLoss: it
  // was the last chunk, and all bytes together do not decode. Either error changes nothing.
  // The slices that begin later may become greater than those in the bytes: kDataLoss, too, when
  // all slices together could take more than `greatest_bytes`.
  Status AppendChunk(std::string_view chunk, uint64_t greatest_bytes = kNoGreatestBytes);

  bool partial() const { return partial_; }            // chunks are missing
  bool empty() const { return !filter_.has_value(); }  // partial, or there is only a rebuild
  // The filter that takes the adds: of a window that of the newest slice. REQUIRES: !empty()
  AnyFilter& filter() { return *filter_; }
  const AnyFilter& filter() const { return *filter_; }
  const Metadata& metadata() const { return metadata_; }

  uint64_t received() const { return received_.size(); }  // bytes, while partial
  // Bytes of filter and rebuild together, as the header says.
  uint64_t promised() const {
    return metadata_.bytes + (window_ ? window_->OlderBytes() : 0) +
           (rebuild_ ? rebuild_->bytes : 0);
  }

  size_t SizeBytes() const {
    return SizeBytes([](size_t size) { return size; });
  }
  // The same, where `allocated` gives the memory that an array of `size` bytes occupies.
  size_t SizeBytes(size_t (*allocated)(size_t size)) const;

  // Loads the memory that the next calls with these items read into the CPU's cache.
  // REQUIRES: !partial()
  void Prefetch(std::span<const std::string_view> items) const;

  // The answers of the filter and, if it has a window, of the older slices that live at `now`.
  // REQUIRES: !empty()
  bool MayContain(uint64_t hash, Moment now) const;
  Bitmap MayContain(std::span<const uint64_t> hashes, Moment now) const;
  uint64_t Count(Moment now) const;

  // kPerhaps: the filter may have contained the item before. kFull: the filter refused it.
  enum class Added { kNew, kPerhaps, kFull };
  // Adds the item to the filter and to the rebuild. Without a filter the result is the rebuild's.
  // REQUIRES: !partial()
  Added Add(std::string_view item);
  // kAbsent: the filter does not contain the item. kKept: it may contain it, and nothing was
  // erased, since it is not known where the item is and an erase elsewhere would remove another
  // one.
  enum class Erased { kErased, kAbsent, kKept };
  // Erases one copy of the item. The rebuild keeps the item and counts it in Rebuild::skipped.
  // REQUIRES: !partial()
  //
  // With a window: erases from the slices from number `since` on. If the type keeps a fingerprint
  // of an item, the oldest copy goes. The copies that remain are found longer than the one that
  // went, so every other item with this fingerprint is found for its time. A type with counters may
  // match in a slice that other items have filled: there an erase would remove bits of several of
  // them. It erases only if one slice alone matches, which then has the item; else the result is
  // kKept. REQUIRES: the item was added in one of these slices, and that of `since` is still there.
  Erased Erase(std::string_view item, uint64_t since = 0);

  Window* window() { return window_ ? &*window_ : nullptr; }  // nullptr: items stay
  const Window* window() const { return window_ ? &*window_ : nullptr; }
  // The options that the filter was created with, from which each slice follows.
  FilterOptions OptionsOfWindow() const;
  // `filter`, empty and made with the same options and seed, takes the adds from now on, as slice
  // `number`, which began `elapsed_ms` ago. Returns the slices that are over, whose memory may take
  // long to free. REQUIRES: a window, and number > window()->newest().
  std::vector<Window::Slice> BeginSlice(uint64_t number, uint64_t elapsed_ms, Moment now,
                                        AnyFilter filter);
  // The slice that took adds when generation() was this number; nullopt when there is none, or it
  // is over. REQUIRES: a window.
  std::optional<uint64_t> SliceOf(uint64_t generation, Moment now) const;

  Rebuild* rebuild() { return rebuild_ ? &*rebuild_ : nullptr; }
  const Rebuild* rebuild() const { return rebuild_ ? &*rebuild_ : nullptr; }
  // Begins a rebuild. REQUIRES: !partial(), and no rebuild is under way.
  void Start(Rebuild rebuild) { rebuild_ = std::move(rebuild); }
  // REQUIRES, for the following four: a rebuild is under way.
  size_t AddToRebuild(std::span<const std::string_view> items);  // how many the rebuild accepted
  bool RebuildMayContain(std::string_view item) const;
  // Makes the rebuild the filter, trusted in `trust_epoch`. Returns the old filter, whose memory
  // may take long to free.
  std::optional<AnyFilter> Commit(uint64_t trust_epoch, Moment now, std::string mark = {});
  // Drops the rebuild. Returns its filter, for the same reason.
  std::optional<AnyFilter> Abort();

  void set_mark(std::string_view mark) { metadata_.mark = mark; }
  void set_incomplete() { metadata_.incomplete = true; }

  // Keeps a copy of the value, which is sent in parts and does not change while the value does.
  const Saved& BeginDump(uint64_t trust_epoch, Moment now) {
    return dump_.emplace(Save(trust_epoch, false, now));
  }
  const Saved* dump() const { return dump_ ? &*dump_ : nullptr; }
  void EndDump() { dump_.reset(); }

  // The filter has every add, as of this trust epoch; 0 = it is not trusted. The server counts
  // its trust epochs: a new one begins whenever adds may be missing (DoubtAll in trust.h).
  void Trust(uint64_t trust_epoch);
  // Adds may be missing in the filter and in its rebuild.
  void Doubt() {
    Trust(0);
    if (rebuild_) rebuild_->sound_epoch = 0;
  }
  bool IsTrustedIn(uint64_t trust_epoch) const { return trust_epoch_ == trust_epoch; }

  // A random number that identifies this filter. It changes when a rebuild replaces the filter, on
  // Doubt(), and when the filter becomes trusted again. Each server draws its own and never saves
  // it. A client that reads the generation before it deletes a row, and erases with that
  // generation, knows that the filter contains the row. Never 0.
  //
  // With a window it identifies the newest slice, and changes with it. A client that reads it
  // before it adds, and keeps it with the row, can erase the row as long as that slice is there.
  uint64_t generation() const { return generation_; }
  // Whether this filter, or a slice of it that is there, has or had that generation.
  bool HasGeneration(uint64_t generation) const;

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
  AnyFilter* SliceToEraseFrom(uint64_t hash, uint64_t since);
  Status DecodeAll(std::string_view bytes, uint64_t greatest_bytes);

  Metadata metadata_;
  std::optional<AnyFilter> filter_;
  std::optional<Window> window_;
  std::optional<Rebuild> rebuild_;
  bool partial_ = false;
  std::string received_;      // while partial
  uint64_t trust_epoch_ = 0;  // 0 = not trusted
  uint64_t generation_ = NewGeneration();
  Counters counters_;
  std::optional<Saved> dump_;
};

}  // namespace tamis::redis
