// Window: the time for which a filter remembers an item, and the filters of its older slices.
//
// The window is divided into `slices` slices of equal length. Each slice of time has a filter of
// its own, for its share of the capacity: an item is added to that of the present slice, and a
// lookup asks the filters of the last `slices` + 1 slices, older ones are dropped. So an item is
// found for at least the window, and for at most window * (1 + 1 / slices) (both rounded up to
// `slices` + 1 milliseconds).
//
//   Memory      slices + 1 filters, each for capacity / slices items
//   FP rate     at most the rate asked for, over all slices: one of them has rate / (slices + 1).
//               That costs log2(slices + 1) bits an item, which any filter must spend that knows
//               the slice of each item (Naor and Yogev, "Tight Bounds for Sliding Bloom Filters",
//               2015).
//
// The newest filter is not kept here: it belongs to TrustedFilter, as that of a filter without a
// window does.
//
// Time is counted by one process, by a clock that cannot be set. The server that accepts adds
// begins the slices and tells the other servers their numbers. Each server counts the time of a
// slice from the moment at which it heard of it, which is never too early. So clocks that differ,
// lag and a promotion make items live longer, never shorter. Only the time for which a process did
// not run, between the writing and the reading of its own files, is measured by the wall clock.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tamis/base/coding.h"
#include "tamis/filter/any_filter.h"

namespace tamis::redis {

struct Moment {
  int64_t running_ms = 0;  // by a clock of this process that is never set
  int64_t wall_ms = 0;     // since 1970
};

class Window {
 public:
  static constexpr uint64_t kGreatestSeconds = 1'000'000'000;
  static constexpr uint64_t kGreatestSlices = 64;
  static constexpr uint64_t kDefaultSlices = 4;

  struct Slice {
    uint64_t number = 0;
    uint64_t generation = 0;  // TrustedFilter::generation() while it was the newest; 0 = none
    uint64_t bytes = 0;       // bytes of the serialized filter, by its header
    std::optional<AnyFilter> filter;  // none while chunks are missing
  };

  // The first slice, number 0, begins now. REQUIRES: 1 <= seconds, slices <= the greatest.
  Window(uint64_t seconds, uint64_t slices, Moment now)
      : seconds_(seconds), slices_(slices), began_ms_(now.running_ms), runs_(true) {}

  // The options of the filter of one slice, from those that were asked for.
  static FilterOptions SliceOptions(FilterOptions options, uint64_t slices);
  // Bytes of a filter that is made with these options.
  static double BytesOfFilter(const FilterType& type, const FilterOptions& one);
  // Bytes of the filters of all slices together, from the options that were asked for.
  static double BytesOfSlices(const FilterType& type, const FilterOptions& options,
                              uint64_t slices);
  // The false-positive rate of filters with these rates together.
  static double RateOver(std::span<const double> rates);

  uint64_t seconds() const { return seconds_; }
  uint64_t slices() const { return slices_; }
  uint64_t newest() const { return newest_; }              // number of the slice that takes adds
  std::span<const Slice> older() const { return older_; }  // oldest first
  std::span<Slice> older() { return older_; }

  // The number of the slice that `now` lies in; newest() until the time of that slice is over.
  uint64_t NumberAt(Moment now) const;
  // Since the beginning of the newest slice, 0 or more.
  uint64_t ElapsedMs(Moment now) const;
  // Since the beginning of the slice that `now` lies in.
  uint64_t ElapsedInSliceMs(Moment now) const { return ElapsedMs(now) % SliceMs(); }
  // Whether a lookup asks the filter of that slice.
  bool Lives(uint64_t number, Moment now) const;

  // Makes `number` the newest slice, which began `elapsed_ms` ago. `newest`, whose generation is
  // given, is kept as an older one, and becomes `fresh`. Returns the slices that are over. Changes
  // nothing if it throws std::bad_alloc. REQUIRES: number > newest().
  std::vector<Slice> Begin(uint64_t number, uint64_t elapsed_ms, Moment now, uint64_t generation,
                           AnyFilter* newest, AnyFilter fresh);
  // The newest slice began `elapsed_ms` ago.
  void SetElapsed(uint64_t elapsed_ms, Moment now);
  // The log says when the slice began, by the wall clock, and the time since then counts when the
  // log is read. So it has to say that again when the wall clock was set.
  bool WallClockWasSet(Moment now) const;
  void WallClockIsLogged(Moment now) { logged_offset_ms_ = now.wall_ms - now.running_ms; }
  // The older slices lose their generations: what was added to them may be missing.
  void ForgetGenerations();

  // Whether an older slice may contain it, and lives at `now`.
  bool OlderMayContain(uint64_t hash, Moment now) const;
  bool OlderMayContain(uint64_t hash) const;  // or does not live
  size_t SizeBytes(size_t (*allocated)(size_t size)) const;

  // Appends what a header says of the window; `sizes` are those of the older slices' bytes.
  void EncodeTo(std::string* header, Moment now, std::span<const uint64_t> sizes) const;
  // The same without times and sizes: equal on all servers with equal contents.
  void EncodeToCompare(std::string* header) const;
  std::vector<uint64_t> LoadedSizes() const;  // the sizes in the header
  // nullopt when the bytes are damaged. Time stands still until Resume().
  static std::optional<Window> Decode(Reader* reader);
  // Bytes of the older slices together, as the header said.
  uint64_t OlderBytes() const;
  // A window that was loaded goes on. If `counts_pause`, the time since it was saved counts, by the
  // wall clock.
  void Resume(Moment now, bool counts_pause);

 private:
  Window() = default;

  uint64_t SliceMs() const { return (seconds_ * 1000 + slices_ - 1) / slices_; }

  uint64_t seconds_ = 0;
  uint64_t slices_ = 0;
  uint64_t newest_ = 0;
  int64_t began_ms_ = 0;  // begin of the newest slice, by Moment::running_ms
  bool runs_ = false;
  uint64_t saved_elapsed_ms_ = 0;  // while it does not run
  int64_t saved_wall_ms_ = 0;
  std::optional<int64_t> logged_offset_ms_;  // offset of the wall clock from the running one
  std::vector<Slice> older_;
};

}  // namespace tamis::redis
