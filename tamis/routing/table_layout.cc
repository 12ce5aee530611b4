#include "tamis/routing/table_layout.h"

#include <algorithm>

namespace tamis {
namespace {

constexpr size_t kOverdueAtOnce = 16;

bool Overlap(const KeyRange& a, const KeyRange& b) {
  return (a.end.empty() || b.start < a.end) && (b.end.empty() || a.start < b.end);
}

bool EndsLater(const KeyRange& a, const KeyRange& b) {
  return !b.end.empty() && (a.end.empty() || a.end > b.end);
}

}  // namespace

// ---- Finding

size_t TableLayout::LowerBound(std::string_view start) const {
  const auto found =
      std::ranges::lower_bound(order_, start, std::less<std::string_view>(),
                               [this](Slot slot) { return std::string_view(StartOf(slot)); });
  return static_cast<size_t>(found - order_.begin());
}

std::pair<size_t, size_t> TableLayout::Positions(const KeyRange& range) const {
  size_t begin = range.start.empty() ? 0 : LowerBound(range.start);
  if (begin > 0 && Overlap(regions_[order_[begin - 1]].range, range)) --begin;
  const size_t end = range.end.empty() ? order_.size() : LowerBound(range.end);
  return {begin, std::max(begin, end)};
}

template <class Fn>
void TableLayout::ForEachPlacedIn(const KeyRange& range, Fn&& fn) const {
  const auto [begin, end] = Positions(range);
  for (size_t i = begin; i < end; ++i) {
    if (!regions_[order_[i]].removed) fn(order_[i]);
  }
}

size_t TableLayout::FirstUnplaced(std::string_view start) const {
  const auto found = std::ranges::lower_bound(
      unplaced_, start, std::less<std::string_view>(),
      [this](const Unplaced& unplaced) { return std::string_view(StartOf(unplaced.slot)); });
  return static_cast<size_t>(found - unplaced_.begin());
}

template <class Fn>
void TableLayout::ForEachUnplacedIn(const KeyRange& range, Fn&& fn) const {
  size_t i = range.end.empty() ? unplaced_.size() : FirstUnplaced(range.end);
  while (i-- > 0) {
    const std::string& furthest = regions_[unplaced_[i].furthest].range.end;
    if (!furthest.empty() && furthest <= range.start) break;
    if (Overlap(regions_[unplaced_[i].slot].range, range)) fn(unplaced_[i].slot);
  }
}

template <class Fn>
void TableLayout::ForEachOverlapped(Slot slot, Fn&& fn) const {
  const auto other = [&](Slot found) {
    if (found != slot) fn(found);
  };
  ForEachPlacedIn(regions_[slot].range, other);
  ForEachUnplacedIn(regions_[slot].range, other);
}

bool TableLayout::CoversEverything() const {
  return !order_.empty() && StartOf(order_.front()).empty() &&
         regions_[order_.back()].range.end.empty() && breaks_.Find(0, true) >= order_.size();
}

uint64_t TableLayout::Undecided(const KeyRanges& keys) const {
  uint64_t count = 0;
  std::string_view counted_to;  // the regions that begin before it
  for (const KeyRange& range : keys.ranges()) {
    ForEachUnplacedIn(range, [&](Slot slot) {
      if (StartOf(slot) < counted_to) return;
      const auto [begin, end] = Positions(regions_[slot].range);
      if (begin == end) ++count;
    });
    counted_to = range.end;
  }
  return count;
}

// ---- Changing

TableLayout::Slot TableLayout::Add(KeyRange range, uint32_t server) {
  Slot slot;
  if (free_.empty()) {
    slot = static_cast<Slot>(regions_.size());
    regions_.emplace_back();
    position_.push_back(kNotPlaced);
    touches_.push_back(0);
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  regions_[slot] = {.range = std::move(range), .server = server};
  AddUnplaced(slot);
  to_recheck_.push_back(slot);
  ForEachOverlapped(slot, [this](Slot other) { to_recheck_.push_back(other); });
  return slot;
}

void TableLayout::Remove(Slot slot) {
  const bool placed = position_[slot] != kNotPlaced;
  if (!placed) RemoveUnplaced(slot);
  regions_[slot].removed = true;
  removed_.push_back(slot);
  if (placed && unplaced_.empty()) return;  // placed regions do not overlap
  ForEachOverlapped(slot, [this](Slot other) { to_recheck_.push_back(other); });
}

void TableLayout::Recheck(Slot slot) {
  if (unplaced_.empty()) return;
  to_recheck_.push_back(slot);
  ForEachOverlapped(slot, [this](Slot other) { to_recheck_.push_back(other); });
}

void TableLayout::AddUnplaced(Slot slot) {
  const size_t i = FirstUnplaced(StartOf(slot));
  unplaced_.insert(unplaced_.begin() + static_cast<ptrdiff_t>(i), {slot, slot});
  RepairFurthest(i);
}

void TableLayout::RemoveUnplaced(Slot slot) {
  size_t i = FirstUnplaced(StartOf(slot));
  while (unplaced_[i].slot != slot) ++i;
  unplaced_.erase(unplaced_.begin() + static_cast<ptrdiff_t>(i));
  RepairFurthest(i);
}

// After a change at `from`: onwards until nothing changes any more.
void TableLayout::RepairFurthest(size_t from) {
  for (size_t i = from; i < unplaced_.size(); ++i) {
    Slot furthest = unplaced_[i].slot;
    if (i > 0 && !EndsLater(regions_[furthest].range, regions_[unplaced_[i - 1].furthest].range)) {
      furthest = unplaced_[i - 1].furthest;
    }
    if (i > from && furthest == unplaced_[i].furthest) break;
    unplaced_[i].furthest = furthest;
  }
}

bool TableLayout::BelongsHere(Slot slot, const Leases& leases) {
  bool alone = true, rival = false;
  const auto look = [&](Slot region) {
    const Time until = leases.until[regions_[region].server];
    if (until > leases.now) look_again_ = std::min(look_again_, until);
    return until > leases.now;
  };
  ForEachOverlapped(slot, [&](Slot other) {
    alone = false;
    rival |= look(other);
  });
  return alone || (look(slot) && !rival);
}

void TableLayout::Reconcile(const Leases& leases) {
  if (overdue_.empty() && leases.now >= look_again_) {
    look_again_ = Time::max();
    for (const Unplaced& unplaced : unplaced_) overdue_.push_back(unplaced.slot);
  }
  for (size_t i = 0; i < kOverdueAtOnce && !overdue_.empty(); ++i) {
    const Slot slot = overdue_.back();
    overdue_.pop_back();
    if (!regions_[slot].removed) Recheck(slot);
  }
  std::ranges::sort(to_recheck_);
  to_recheck_.erase(std::unique(to_recheck_.begin(), to_recheck_.end()), to_recheck_.end());
  std::vector<Slot> coming, leaving;
  for (const Slot slot : to_recheck_) {
    if (regions_[slot].removed) continue;
    const bool placed = position_[slot] != kNotPlaced;
    if (BelongsHere(slot, leases) == placed) continue;
    (placed ? leaving : coming).push_back(slot);
  }
  to_recheck_.clear();
  for (const Slot slot : coming) RemoveUnplaced(slot);
  for (const Slot slot : leaving) AddUnplaced(slot);
  for (const Slot slot : removed_) {
    if (position_[slot] != kNotPlaced) leaving.push_back(slot);
  }
  Rearrange(std::move(coming), std::move(leaving));
  if (!removed_.empty()) {
    std::erase_if(overdue_, [this](Slot slot) { return regions_[slot].removed; });
  }
  for (const Slot slot : removed_) {
    regions_[slot] = {};
    free_.push_back(slot);
  }
  removed_.clear();
}

void TableLayout::Rearrange(std::vector<Slot> coming, std::vector<Slot> leaving) {
  if (coming.empty() && leaving.empty()) return;
  std::ranges::sort(coming, {}, [this](Slot slot) { return std::string_view(StartOf(slot)); });
  std::ranges::sort(leaving, {}, [this](Slot slot) { return position_[slot]; });
  // The new slots, by their position among the present ones.
  std::vector<size_t> places;
  for (const Slot slot : coming) places.push_back(LowerBound(StartOf(slot)));
  const size_t first = std::min(places.empty() ? order_.size() : places.front(),
                                leaving.empty() ? order_.size() : position_[leaving.front()]);
  std::vector<Slot> tail;
  tail.reserve(order_.size() - first + coming.size());
  std::vector<size_t> seams;  // positions whose next neighbour is another one now
  size_t copied = first;
  auto left = leaving.begin();
  const auto copy_to = [&](size_t end) {
    tail.insert(tail.end(), order_.begin() + static_cast<ptrdiff_t>(copied),
                order_.begin() + static_cast<ptrdiff_t>(end));
    copied = end;
    seams.push_back(first + tail.size());
  };
  const auto copy_those_that_stay_to = [&](size_t end) {
    for (; left != leaving.end() && position_[*left] < end; ++left) {
      copy_to(position_[*left]);
      ++copied;
    }
    copy_to(end);
  };
  for (size_t i = 0; i < coming.size(); ++i) {
    copy_those_that_stay_to(places[i]);
    tail.push_back(coming[i]);
    seams.push_back(first + tail.size());
  }
  copy_those_that_stay_to(order_.size());
  for (const Slot slot : leaving) position_[slot] = kNotPlaced;
  order_.resize(first);
  order_.insert(order_.end(), tail.begin(), tail.end());
  for (const size_t seam : seams) {  // between seam - 1 and seam
    if (seam == 0 || seam > order_.size()) continue;
    const std::string& end = regions_[order_[seam - 1]].range.end;
    touches_[order_[seam - 1]] =
        seam < order_.size() && !end.empty() && end == StartOf(order_[seam]) ? 1 : 0;
  }
  breaks_.Resize(order_.size());
  for (size_t i = first; i < order_.size(); ++i) position_[order_[i]] = static_cast<uint32_t>(i);
  for (size_t i = first - (first > 0 ? 1 : 0); i < order_.size(); ++i) {
    if (i + 1 < order_.size() && touches_[order_[i]] == 0) {
      breaks_.Set(i);
    } else {
      breaks_.Unset(i);
    }
  }
}

}  // namespace tamis
