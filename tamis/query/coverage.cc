#include "tamis/query/coverage.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace tamis {

void Coverage::Begin(const KeyRanges& keys, OrderedMerge* merge) {
  merge_ = merge;
  sub_ranges_.clear();
  for (const KeyRange& range : keys.ranges()) {
    sub_ranges_.push_back({.range = range});
    NoteMoved(std::prev(sub_ranges_.end()));
  }
}

bool Coverage::IsInSeveral(const std::vector<RegionInfo>& regions) const {
  if (sub_ranges_.size() > 1) return true;
  if (sub_ranges_.empty()) return false;
  const KeyRange& keys = sub_ranges_.front().range;
  const auto next = std::ranges::upper_bound(regions, keys.start, {}, &RegionInfo::start);
  return next != regions.end() && (keys.end.empty() || next->start < keys.end);
}

KeyRanges Coverage::Exclude(const KeyRanges& excluded) {
  KeyRanges never_asked;
  // Sub-ranges that are asked stay where they are: their requests point to them.
  for (auto sub_range = sub_ranges_.begin(); sub_range != sub_ranges_.end();) {
    if (!sub_range->IsIdle()) {
      ++sub_range;
      continue;
    }
    KeyRanges left = KeyRanges::Of(sub_range->range);
    left.Subtract(excluded);
    // A region that has answered counts as asked, also if a part of it is asked again elsewhere.
    if (sub_range->resume.empty()) {
      const KeyRanges taken = excluded.Intersect(sub_range->range);
      for (const KeyRange& range : taken.ranges()) never_asked.Add(range);
    }
    for (const KeyRange& range : left.ranges()) {
      SubRange part = *sub_range;
      part.range = range;
      sub_range->collected.clear();  // rows are collected once
      NoteMoved(sub_ranges_.insert(sub_range, std::move(part)));
    }
    Erase(sub_range++);
  }
  return never_asked;
}

void Coverage::EnqueueAll() {
  due_.Clear();
  waiting_.clear();
  stale_.clear();
  idle_.clear();
  for (auto sub_range = sub_ranges_.begin(); sub_range != sub_ranges_.end(); ++sub_range) {
    sub_range->region = nullptr;
    if (sub_range->IsIdle()) idle_.push_back(sub_range);
  }
}

void Coverage::PlaceIdle(const std::vector<RegionInfo>& regions, Time now) {
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    idle_.push_back(waiting_.extract(waiting_.begin()).mapped());
  }
  for (const SubRangeAt sub_range : std::exchange(idle_, {})) Place(sub_range, regions, now);
}

void Coverage::Place(SubRangeAt sub_range, const std::vector<RegionInfo>& regions, Time now) {
  auto next = std::ranges::upper_bound(regions, sub_range->range.start, {}, &RegionInfo::start);
  for (SubRangeAt tail;; sub_range = tail) {
    // The end of the region that holds its start, or of the gap where none is known.
    const bool known = next != regions.begin() && std::prev(next)->Contains(sub_range->range.start);
    const RegionInfo* region = known ? &*std::prev(next) : nullptr;
    const std::string end = known ? region->end : next == regions.end() ? "" : next->start;
    tail = sub_ranges_.end();
    if (!end.empty() && (sub_range->range.end.empty() || sub_range->range.end > end)) {
      tail = sub_ranges_.insert(std::next(sub_range), *sub_range);
      tail->range.start = end;
      tail->collected.clear();
      sub_range->range.end = end;
      NoteMoved(sub_range);  // its bound is that of fewer keys
      NoteMoved(tail);
    }
    PlaceWithin(sub_range, region, now);
    if (tail == sub_ranges_.end()) return;
    while (next != regions.end() && next->start <= tail->range.start) ++next;
  }
}

void Coverage::PlaceWithin(SubRangeAt sub_range, const RegionInfo* region, Time now) {
  sub_range->region = nullptr;
  if (sub_range->map == SubRange::Map::kStale) {
    stale_.push_back(sub_range);
  } else if (sub_range->map == SubRange::Map::kAsked) {
    return;  // until MapCame
  } else if (sub_range->not_before > now) {
    waiting_.emplace(sub_range->not_before, sub_range);
  } else if (region == nullptr || region->server.empty()) {
    Fail(sub_range, Unavailable("no region server has some of the keys now"));
  } else if (merge_ != nullptr) {
    sub_range->region = region;  // due once its rows are needed
  } else {
    due_.Add(sub_range, *region);
  }
}

bool Coverage::MakeDue(const std::vector<SubRangeAt>& needed) {
  due_.Clear();
  bool any = false;
  for (const SubRangeAt sub_range : needed) {
    if (!sub_range->IsIdle() || sub_range->region == nullptr) continue;
    due_.Add(sub_range, *sub_range->region);
    any = true;
  }
  return any;
}

Time Coverage::NextPauseEnd() const {
  return waiting_.empty() ? Time::max() : waiting_.begin()->first;
}

void Coverage::Return(SubRangeAt sub_range) {
  sub_range->asked = false;
  idle_.push_back(sub_range);
}

void Coverage::Fail(SubRangeAt sub_range, const Status& status) {
  last_failure_ = status;
  if (options_.drop_failed) return Erase(sub_range);
  sub_range->region = nullptr;
  sub_range->asked = false;
  sub_range->map = SubRange::Map::kStale;
  sub_range->not_before = executor_.Now() + sub_range->backoff.Next();
  stale_.push_back(sub_range);
}

void Coverage::CutAt(SubRangeAt sub_range, const std::string& end) {
  SubRange tail{.range = {end, sub_range->range.end},
                .resume = sub_range->resume,
                .map = SubRange::Map::kStale,
                .position = sub_range->position,
                .has_answered = sub_range->has_answered,
                .in_order = sub_range->in_order};
  sub_range->range.end = end;
  idle_.push_back(sub_ranges_.insert(std::next(sub_range), std::move(tail)));
  NoteMoved(idle_.back());
}

void Coverage::Emptied(SubRangeAt sub_range) {
  if (sub_range->done) {
    Erase(sub_range);
  } else {
    idle_.push_back(sub_range);
  }
}

std::vector<KeyRange> Coverage::TakeStale() {
  std::ranges::sort(stale_, {}, [](SubRangeAt at) { return std::string_view(at->range.start); });
  std::vector<KeyRange> stale;
  for (const SubRangeAt sub_range : std::exchange(stale_, {})) {
    sub_range->map = SubRange::Map::kAsked;
    stale.push_back(sub_range->range);
  }
  return stale;
}

void Coverage::MapCame(const Status& status) {
  for (SubRange& sub_range : sub_ranges_) {
    if (sub_range.map != SubRange::Map::kAsked) continue;
    sub_range.map = status.ok() ? SubRange::Map::kGood : SubRange::Map::kStale;
  }
  if (!status.ok()) last_failure_ = status;
}

void Coverage::NoteMoved(SubRangeAt sub_range) {
  if (merge_ != nullptr) merge_->Place(sub_range);
}

void Coverage::Erase(SubRangeAt sub_range) {
  if (merge_ != nullptr) merge_->Remove(sub_range);
  sub_ranges_.erase(sub_range);
}

}  // namespace tamis
