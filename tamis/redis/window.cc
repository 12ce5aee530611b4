#include "tamis/redis/window.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "tamis/redis/faults.h"

namespace tamis::redis {
namespace {

// No window has lasted so long.
constexpr uint64_t kGreatestNumber = uint64_t{1} << 62;
constexpr int64_t kGreatestMs = int64_t{1} << 52;

}  // namespace

FilterOptions Window::SliceOptions(FilterOptions options, uint64_t slices) {
  const auto filters = static_cast<double>(slices + 1);
  options.fpr = -std::expm1(std::log1p(-options.fpr) / filters);
  options.capacity = (options.capacity + slices - 1) / slices;
  return options;
}

double Window::BytesOfFilter(const FilterType& type, const FilterOptions& one) {
  return AnyFilter::BitsPerKey(type, one.fpr) / 8 * static_cast<double>(one.capacity);
}

double Window::BytesOfSlices(const FilterType& type, const FilterOptions& options,
                             uint64_t slices) {
  return BytesOfFilter(type, SliceOptions(options, slices)) * static_cast<double>(slices + 1);
}

double Window::RateOver(std::span<const double> rates) {
  double denied = 1;
  for (const double rate : rates) denied *= 1 - rate;
  return 1 - denied;
}

uint64_t Window::ElapsedMs(Moment now) const {
  if (!runs_) return saved_elapsed_ms_;
  return now.running_ms <= began_ms_ ? 0 : static_cast<uint64_t>(now.running_ms - began_ms_);
}

uint64_t Window::NumberAt(Moment now) const {
  return runs_ ? newest_ + ElapsedMs(now) / SliceMs() : newest_;
}

bool Window::Lives(uint64_t number, Moment now) const {
  const uint64_t kept = faults.slices_end_early ? slices_ - 1 : slices_;
  return number + kept >= NumberAt(now);
}

std::vector<Window::Slice> Window::Begin(uint64_t number, uint64_t elapsed_ms, Moment now,
                                         uint64_t generation, AnyFilter* newest, AnyFilter fresh) {
  older_.reserve(older_.size() + 1);
  std::vector<Slice> over;
  over.reserve(older_.size() + 1);
  Slice& before = older_.emplace_back();
  before.number = newest_;
  before.generation = generation;
  before.filter = std::exchange(*newest, std::move(fresh));
  newest_ = number;
  SetElapsed(elapsed_ms, now);
  const auto kept = std::ranges::find_if(
      older_, [this](const Slice& slice) { return slice.number + slices_ >= newest_; });
  over.assign(std::make_move_iterator(older_.begin()), std::make_move_iterator(kept));
  older_.erase(older_.begin(), kept);
  return over;
}

void Window::SetElapsed(uint64_t elapsed_ms, Moment now) {
  began_ms_ = now.running_ms - static_cast<int64_t>(std::min<uint64_t>(elapsed_ms, kGreatestMs));
  runs_ = true;
}

bool Window::WallClockWasSet(Moment now) const {
  constexpr int64_t kDrift = 1000;  // clocks that are not set differ by less for hours
  return !logged_offset_ms_ || std::abs(now.wall_ms - now.running_ms - *logged_offset_ms_) > kDrift;
}

void Window::ForgetGenerations() {
  for (Slice& slice : older_) slice.generation = 0;
}

bool Window::OlderMayContain(uint64_t hash, Moment now) const {
  return std::ranges::any_of(older_, [&](const Slice& slice) {
    return Lives(slice.number, now) && slice.filter->MayContain(hash);
  });
}

bool Window::OlderMayContain(uint64_t hash) const {
  return std::ranges::any_of(older_,
                             [&](const Slice& slice) { return slice.filter->MayContain(hash); });
}

size_t Window::SizeBytes(size_t (*allocated)(size_t size)) const {
  size_t bytes = older_.capacity() * sizeof(Slice);
  for (const Slice& slice : older_) {
    if (slice.filter) bytes += allocated(slice.filter->SizeBytes());
  }
  return bytes;
}

void Window::EncodeTo(std::string* header, Moment now, std::span<const uint64_t> sizes) const {
  PutFixed64(header, seconds_);
  PutFixed64(header, slices_);
  PutFixed64(header, newest_);
  PutFixed64(header, std::min<uint64_t>(ElapsedMs(now), kGreatestMs));
  // A clock may say anything; what was saved must load.
  const int64_t wall_ms = std::clamp(runs_ ? now.wall_ms : saved_wall_ms_, int64_t{0}, kGreatestMs);
  PutFixed64(header, static_cast<uint64_t>(wall_ms));
  PutFixed64(header, older_.size());
  for (size_t i = 0; i < older_.size(); ++i) {
    PutFixed64(header, older_[i].number);
    PutFixed64(header, sizes[i]);
  }
}

void Window::EncodeToCompare(std::string* header) const {
  PutFixed64(header, seconds_);
  PutFixed64(header, slices_);
  PutFixed64(header, newest_);
  for (const Slice& slice : older_) PutFixed64(header, slice.number);
}

std::vector<uint64_t> Window::LoadedSizes() const {
  std::vector<uint64_t> sizes;
  for (const Slice& slice : older_) sizes.push_back(slice.bytes);
  return sizes;
}

std::optional<Window> Window::Decode(Reader* reader) {
  Window window;
  window.seconds_ = reader->Fixed64();
  window.slices_ = reader->Fixed64();
  window.newest_ = reader->Fixed64();
  window.saved_elapsed_ms_ = reader->Fixed64();
  const uint64_t wall_ms = reader->Fixed64();
  const uint64_t older = reader->Fixed64();
  if (window.seconds_ < 1 || window.seconds_ > kGreatestSeconds || window.slices_ < 1 ||
      window.slices_ > kGreatestSlices || window.newest_ > kGreatestNumber ||
      window.saved_elapsed_ms_ > kGreatestMs || wall_ms > kGreatestMs || older > window.slices_) {
    return std::nullopt;
  }
  window.saved_wall_ms_ = static_cast<int64_t>(wall_ms);
  constexpr uint64_t kGreatestBytes = uint64_t{1} << 55;  // 64 of them are counted in 61 bits
  for (uint64_t i = 0; i < older; ++i) {
    Slice slice;
    slice.number = reader->Fixed64();
    slice.bytes = reader->Fixed64();
    const bool in_order = window.older_.empty() || slice.number > window.older_.back().number;
    if (!in_order || slice.number >= window.newest_ ||
        slice.number + window.slices_ < window.newest_ || slice.bytes == 0 ||
        slice.bytes >= kGreatestBytes) {
      return std::nullopt;
    }
    window.older_.push_back(std::move(slice));
  }
  return window;
}

uint64_t Window::OlderBytes() const {
  uint64_t bytes = 0;
  for (const Slice& slice : older_) bytes += slice.bytes;
  return bytes;
}

void Window::Resume(Moment now, bool counts_pause) {
  if (runs_) return;
  const int64_t pause_ms = counts_pause || faults.time_under_way_counts
                               ? std::max<int64_t>(0, now.wall_ms - saved_wall_ms_)
                               : 0;
  SetElapsed(saved_elapsed_ms_ + static_cast<uint64_t>(pause_ms), now);
}

}  // namespace tamis::redis
