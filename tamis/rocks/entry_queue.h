// EntryQueue: index entries, or row keys of entries, that were read ahead and not used yet, with
// their size in bytes.
//
// Threads: exclusive access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace tamis {

class EntryQueue {
 public:
  // A search keeps no more than this of one stream, nor of one set of row keys, nor of the entries
  // that it sorts: a long entry may be as large as a page. The jar has the same bound.
  static constexpr size_t kMaxBytes = size_t{4} << 20;

  void Push(std::string_view entry) {
    entries_.emplace_back(entry);
    bytes_ += entry.size();
  }

  // REQUIRES: not empty.
  const std::string& front() const { return entries_.front(); }
  // Takes the first one away. REQUIRES: not empty.
  std::string Pop() {
    std::string entry = std::move(entries_.front());
    entries_.pop_front();
    bytes_ -= entry.size();
    return entry;
  }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  size_t bytes() const { return bytes_; }

 private:
  std::deque<std::string> entries_;
  size_t bytes_ = 0;
};

}  // namespace tamis
