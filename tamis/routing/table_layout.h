// TableLayout: the regions of one table that a coordinator knows, in key order, changed in place.
//
// A coordinator hears of servers one after the other, so it may know two regions that overlap: then
// one of them, or both, do not exist any more. A region is *placed* when no other overlaps it, or
// when its server has a live lease and no server of a region that overlaps it has one. The other
// regions are *unplaced*: kept, since leases change, but no search excludes them. The younger of
// two regions cannot be told: no number of one server compares with one of another server.
//
// A region has a slot, a small number that stays the same while the region is known, and while it
// is placed a position, its number in key order. Bits about regions are kept by slot, so that they
// stay where they are when regions come and go; answers are given by position.
//
//   Reconcile  O(changes x log n) comparisons of keys, and 4 bytes moved for each region behind
//              the first change
//   Threads    const members may run concurrently; others need exclusive access
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/routing/key_ranges.h"
#include "tamis/routing/region_bits.h"

namespace tamis {

class TableLayout {
 public:
  using Slot = uint32_t;
  static constexpr uint32_t kNotPlaced = ~uint32_t{0};

  // The end of each server's lease, by number, and what time it is.
  struct Leases {
    std::span<const Time> until;
    Time now;

    bool Lives(uint32_t server) const { return until[server] > now; }
  };

  // Adds or removes a region; the next Reconcile places it. REQUIRES: !range.empty().
  Slot Add(KeyRange range, uint32_t server);
  void Remove(Slot slot);
  // To be called when the lease of the region's server lives again: the next Reconcile decides
  // again about the region and those that overlap it.
  void Recheck(Slot slot);
  // False when Reconcile would change nothing.
  bool NeedsReconciling(Time now) const {
    return !to_recheck_.empty() || !removed_.empty() || !overdue_.empty() || now >= look_again_;
  }
  // Places slots that were added, removed or given to Recheck at once. Unplaced slots near which a
  // lease has ended are examined a few at a time; until then nothing is concluded from them.
  void Reconcile(const Leases& leases);

  // How many slots there are, used or not: every slot is below.
  size_t slots() const { return regions_.size(); }
  bool empty() const { return order_.empty() && unplaced_.empty(); }
  const KeyRange& range(Slot slot) const { return regions_[slot].range; }
  // kNotPlaced: not placed.
  uint32_t position(Slot slot) const { return position_[slot]; }

  // Placed regions, in key order.
  size_t size() const { return order_.size(); }
  Slot at(size_t position) const { return order_[position]; }
  // Bit i: the region at position i does not end where the next one starts.
  const RegionBits& breaks() const { return breaks_; }
  // The positions [first, second) of regions that have keys in common with the range.
  std::pair<size_t, size_t> Positions(const KeyRange& range) const;
  // Every key lies in a placed region.
  bool CoversEverything() const;
  // The number of unplaced regions that have some of the keys and overlap no placed region.
  uint64_t Undecided(const KeyRanges& keys) const;
  size_t unplaced() const { return unplaced_.size(); }

 private:
  struct Region {
    KeyRange range;
    uint32_t server = 0;
    bool removed = false;
  };
  struct Unplaced {
    Slot slot;
    Slot furthest;  // the slot up to here that ends last
  };

  const std::string& StartOf(Slot slot) const { return regions_[slot].range.start; }
  size_t LowerBound(std::string_view start) const;  // the first position that starts there or later
  template <class Fn>
  void ForEachPlacedIn(const KeyRange& range, Fn&& fn) const;
  template <class Fn>
  void ForEachUnplacedIn(const KeyRange& range, Fn&& fn) const;
  template <class Fn>
  void ForEachOverlapped(Slot slot, Fn&& fn) const;
  bool BelongsHere(Slot slot, const Leases& leases);
  void AddUnplaced(Slot slot);
  void RemoveUnplaced(Slot slot);
  size_t FirstUnplaced(std::string_view start) const;
  void RepairFurthest(size_t from);
  void Rearrange(std::vector<Slot> coming, std::vector<Slot> leaving);

  std::vector<Region> regions_;     // by slot
  std::vector<uint32_t> position_;  // by slot
  std::vector<uint8_t> touches_;    // by slot: ends where the next placed one starts
  std::vector<Slot> free_;
  std::vector<Slot> order_;  // placed, by start
  RegionBits breaks_;
  std::vector<Unplaced> unplaced_;  // by start
  std::vector<Slot> to_recheck_;    // to be looked at by Reconcile; some more than once
  std::vector<Slot> overdue_;       // unplaced, to be looked at since a lease is over
  std::vector<Slot> removed_;       // free after Reconcile
  Time look_again_ = Time::max();   // when a lease ends that something was decided by
};

}  // namespace tamis
