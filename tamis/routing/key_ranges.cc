#include "tamis/routing/key_ranges.h"

#include <algorithm>

namespace tamis {
namespace {

// Compares range ends, where the empty string is the greatest.
bool EndLess(std::string_view a, std::string_view b) {
  if (a.empty()) return false;
  return b.empty() || a < b;
}

std::string_view MinEnd(std::string_view a, std::string_view b) { return EndLess(a, b) ? a : b; }

// True when a range with this end lies wholly before `start`, not even touching it.
bool EndsBefore(std::string_view end, std::string_view start) {
  return !end.empty() && end < start;
}

// The number of ranges that end before `start` or touch it there.
size_t EndedBy(const std::vector<KeyRange>& ranges, std::string_view start) {
  const auto first = std::ranges::partition_point(
      ranges, [&](const KeyRange& range) { return !range.end.empty() && range.end <= start; });
  return static_cast<size_t>(first - ranges.begin());
}

}  // namespace

KeyRanges KeyRanges::Of(KeyRange range) {
  KeyRanges ranges;
  if (!range.empty()) ranges.ranges_.push_back(std::move(range));
  return ranges;
}

void KeyRanges::Add(KeyRange range) {
  if (range.empty()) return;
  if (ranges_.empty() ||
      EndsBefore(ranges_.back().end, range.start)) {  // mostly they come in order
    ranges_.push_back(std::move(range));
    return;
  }
  // [first, last): the ranges that overlap or touch the new one.
  auto first = std::ranges::lower_bound(
      ranges_, range.start,
      [](const std::string& end, const std::string& start) { return EndsBefore(end, start); },
      &KeyRange::end);
  auto last = first;
  KeyRange merged = std::move(range);
  while (last != ranges_.end() && (merged.end.empty() || last->start <= merged.end)) {
    merged.start = std::min(merged.start, last->start);
    if (EndLess(merged.end, last->end)) merged.end = last->end;
    ++last;
  }
  if (first == last) {
    ranges_.insert(first, std::move(merged));
  } else {
    *first = std::move(merged);
    ranges_.erase(first + 1, last);
  }
}

void KeyRanges::Add(const KeyRanges& other) {
  std::vector<KeyRange> all;
  all.reserve(ranges_.size() + other.ranges_.size());
  std::ranges::merge(ranges_, other.ranges_, std::back_inserter(all), {}, &KeyRange::start,
                     &KeyRange::start);
  ranges_.clear();
  for (KeyRange& range : all) Add(std::move(range));
}

void KeyRanges::Subtract(const KeyRange& range) { Subtract(Of(range)); }

void KeyRanges::Subtract(const KeyRanges& other) {
  if (ranges_.empty()) return;
  std::vector<KeyRange> rest;
  // First range of `other` that may reach into what is left.
  size_t next = EndedBy(other.ranges_, ranges_[0].start);
  for (KeyRange& mine : ranges_) {
    while (next < other.ranges_.size() && !other.ranges_[next].end.empty() &&
           other.ranges_[next].end <= mine.start) {
      ++next;
    }
    bool done = false;
    for (size_t i = next; i < other.ranges_.size() && !done; ++i) {
      const KeyRange& cut = other.ranges_[i];
      if (!mine.end.empty() && cut.start >= mine.end) break;
      if (cut.start > mine.start) rest.push_back({mine.start, cut.start});
      if (cut.end.empty() || (!mine.end.empty() && cut.end >= mine.end)) {
        done = true;
      } else {
        mine.start = std::max(mine.start, cut.end);
      }
    }
    if (!done) rest.push_back(std::move(mine));
  }
  ranges_ = std::move(rest);
}

KeyRanges KeyRanges::Intersect(const KeyRange& range) const { return Intersect(Of(range)); }

KeyRanges KeyRanges::Intersect(const KeyRanges& other) const {
  KeyRanges result;
  if (ranges_.empty() || other.ranges_.empty()) return result;
  size_t i = EndedBy(ranges_, other.ranges_[0].start);
  size_t j = EndedBy(other.ranges_, ranges_[0].start);
  while (i < ranges_.size() && j < other.ranges_.size()) {
    const KeyRange& a = ranges_[i];
    const KeyRange& b = other.ranges_[j];
    KeyRange both{std::max(a.start, b.start), std::string(MinEnd(a.end, b.end))};
    if (!both.empty()) result.ranges_.push_back(std::move(both));
    if (EndLess(a.end, b.end)) {
      ++i;
    } else {
      ++j;
    }
  }
  return result;
}

bool KeyRanges::Contains(std::string_view key) const {
  auto it = std::ranges::upper_bound(ranges_, key, std::less<std::string_view>(), &KeyRange::start);
  return it != ranges_.begin() && std::prev(it)->Contains(key);
}

bool KeyRanges::Overlaps(const KeyRange& range) const {
  const size_t first = EndedBy(ranges_, range.start);
  return first < ranges_.size() && !range.empty() && ranges_[first].Overlaps(range);
}

}  // namespace tamis
