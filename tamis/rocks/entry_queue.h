// EntryQueue: index entries, or row keys of entries, that were read ahead and not used yet, with
// the entries' values and their size in bytes.
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

  struct Item {
    std::string entry;
    std::string value;  // the included columns
  };

  void Push(std::string_view entry, std::string_view value) {
    entries_.push_back({std::string(entry), std::string(value)});
    bytes_ += entry.size() + value.size();
  }

  // REQUIRES: not empty.
  const Item& front() const { return entries_.front(); }
  // Takes the first one away. REQUIRES: not empty.
  Item Pop() {
    Item item = std::move(entries_.front());
    entries_.pop_front();
    bytes_ -= item.entry.size() + item.value.size();
    return item;
  }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  size_t bytes() const { return bytes_; }

 private:
  std::deque<Item> entries_;
  size_t bytes_ = 0;
};

}  // namespace tamis
