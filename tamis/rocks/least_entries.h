// LeastEntries: the first of the index entries that were added, in their order or in the reverse
// order, as many as may be held; and their row keys.
//
// Threads: exclusive access.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <string>

#include "tamis/rocks/entry_queue.h"

namespace tamis {

class LeastEntries {
 public:
  struct Before {
    bool descending = false;
    bool operator()(const std::string& a, const std::string& b) const {
      return descending ? b < a : a < b;
    }
  };
  using Keys = std::map<std::string, std::string, Before>;  // row keys by entry

  // Holds at most `most` entries, and at most EntryQueue::kMaxBytes of them.
  LeastEntries(bool descending, size_t most) : keys_(Before{descending}), most_(most) {}

  void Add(std::string entry, std::string key) {
    const size_t bytes = entry.size();
    if (!keys_.emplace(std::move(entry), std::move(key)).second) return;
    bytes_ += bytes;
    while (keys_.size() > most_ || (bytes_ > EntryQueue::kMaxBytes && keys_.size() > 1)) {
      const auto last = std::prev(keys_.end());
      bytes_ -= last->first.size();
      keys_.erase(last);
      dropped_ = true;
    }
  }

  const Keys& in_order() const { return keys_; }
  bool dropped() const { return dropped_; }  // there were more

 private:
  Keys keys_;
  const size_t most_;
  size_t bytes_ = 0;  // bytes of entries, which end with their row keys
  bool dropped_ = false;
};

}  // namespace tamis
