// HeldRemovals: the removals that a generation of an index filter defers while the entries of a
// snapshot are counted into it.
//
// The scan may reach an entry after the entry was removed, and counters must not be lowered for
// what they do not hold yet. So a removal is held until the scan is over, with two exceptions that
// leave the sum as it is:
//
//   * An entry with the same values was added since the generation was begun. The counters hold
//     that one, so it is removed at once.
//   * An entry with the same values is added after the removal. The two cancel: neither is counted.
//
// Without them a value that comes and goes would fill its counters, which stick once they are full,
// and would take the room of other removals.
//
// Memory is bounded: kMost distinct values in each of two maps. A removal beyond that is forgotten:
// its bits stay until the filter is counted again.
//
// Threads: exclusive access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace tamis {

class HeldRemovals {
 public:
  // Distinct values whose removals are held, and as many that were added and not removed. The jar
  // has the same bound.
  static constexpr size_t kMost = size_t{1} << 16;

  using Hashes = std::vector<uint64_t>;  // the hashes of one entry

  // An entry is about to be added. True: a removal with the same values was held and is dropped;
  // the caller must not count the entry.
  bool Cancel(const Hashes& entry) { return Take(&held_, entry); }
  // The counters hold an entry that was not cancelled. Called after they do.
  void Added(const Hashes& entry) { Put(&added_, entry); }

  // kNow: the caller removes the entry from the counters.
  enum class Removal { kNow, kHeld, kForgotten };
  Removal Remove(const Hashes& entry) {
    if (Take(&added_, entry)) return Removal::kNow;
    return Put(&held_, entry) ? Removal::kHeld : Removal::kForgotten;
  }

  // Calls `remove` for each held removal and drops it.
  template <class RemoveEntry>
  void Drain(RemoveEntry&& remove) {
    for (const auto& [entry, times] : held_) {
      for (uint64_t i = 0; i < times; ++i) remove(entry);
    }
    Clear();
  }
  void Clear() {
    added_.clear();
    held_.clear();
  }

 private:
  using Counts = std::map<Hashes, uint64_t>;

  static bool Put(Counts* counts, const Hashes& entry) {
    if (counts->size() < kMost) {
      ++(*counts)[entry];
      return true;
    }
    const auto found = counts->find(entry);
    if (found != counts->end()) ++found->second;
    return found != counts->end();
  }
  static bool Take(Counts* counts, const Hashes& entry) {
    const auto found = counts->find(entry);
    if (found == counts->end()) return false;
    if (--found->second == 0) counts->erase(found);
    return true;
  }

  Counts added_;  // and not removed again
  Counts held_;
};

}  // namespace tamis
