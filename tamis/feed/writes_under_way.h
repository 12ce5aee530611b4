// WritesUnderWay: the first values of the entries that writes have counted in a filter and may not
// have committed yet. A search of the index need not find them, so nothing may be concluded from
// what it does not find there.
//
// A write whose outcome is unknown stays, until the entries are counted again. Memory is bounded: a
// write for whose values there is no room is only counted, and as long as it has not left it may
// add entries with any values.
//
// Threads: exclusive access.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tamis {

class WritesUnderWay {
 public:
  using Ticket = uint64_t;  // 0 is none

  static constexpr size_t kMaxBytes = 1 << 20;
  // The memory of a write, and that of an entry beside its value, about.
  static constexpr size_t kWriteBytes = 96;
  static constexpr size_t kEntryBytes = 32;

  Ticket Enter(std::vector<std::string> firsts) {
    const size_t bytes = BytesOf(firsts);
    if (bytes > kMaxBytes - bytes_) return EnterUnlisted();
    writes_.emplace(last_ + 1, std::move(firsts));
    bytes_ += bytes;
    return ++last_;
  }
  void Leave(Ticket ticket) {
    if ((ticket & kUnlisted) != 0) return LeaveUnlisted(ticket & ~kUnlisted);
    if (auto write = writes_.find(ticket); write != writes_.end()) Erase(write);
  }

  // The entries are to be counted again from a snapshot that shows the writes so far.
  void Mark() {
    marked_ = last_;
    unlisted_marked_ = unlisted_;
  }
  // They are: drops the writes up to the mark.
  void ForgetMarked() {
    while (!writes_.empty() && writes_.begin()->first <= marked_) Erase(writes_.begin());
    unlisted_ -= unlisted_marked_;
    unlisted_marked_ = 0;
    forgotten_ = marked_;
    if (unlisted_ > 0) unlisted_since_ = std::max(unlisted_since_, forgotten_ + 1);
  }

  // Writes whose values are not known have not left.
  bool has_unlisted() const { return unlisted_ > 0; }
  // There is little room, and many writes have registered since those that take it. So these will
  // not leave: their outcome is unknown.
  bool is_stuck() const {
    if (unlisted_ > 0 && last_ - unlisted_since_ >= kMany) return true;
    return bytes_ > kMaxBytes / 2 && last_ - writes_.begin()->first >= kMany;
  }
  size_t size_bytes() const { return bytes_; }

  // Calls fn(first) for the first value of each entry of the writes that are listed.
  template <class Fn>
  void ForEach(Fn&& fn) const {
    for (const auto& [ticket, firsts] : writes_) {
      for (const std::string& first : firsts) fn(first);
    }
  }

 private:
  using Writes = std::map<Ticket, std::vector<std::string>>;

  static constexpr Ticket kUnlisted = Ticket{1} << 63;
  static constexpr Ticket kMany = 4096;  // more than there ever are under way at a time

  static size_t BytesOf(const std::vector<std::string>& firsts) {
    size_t bytes = kWriteBytes;
    for (const std::string& first : firsts) bytes += first.size() + kEntryBytes;
    return bytes;
  }
  void Erase(Writes::iterator write) {
    bytes_ -= BytesOf(write->second);
    writes_.erase(write);
  }
  Ticket EnterUnlisted() {
    ++last_;
    if (unlisted_++ == 0) unlisted_since_ = last_;
    return last_ | kUnlisted;
  }
  void LeaveUnlisted(Ticket ticket) {
    if (ticket <= forgotten_) return;
    --unlisted_;
    if (ticket <= marked_) --unlisted_marked_;
  }

  Ticket last_ = 0;
  Writes writes_;
  size_t bytes_ = 0;  // bytes of writes_
  uint64_t unlisted_ = 0;
  Ticket unlisted_since_ = 0;     // when there were none before
  Ticket marked_ = 0;             // the last one when Mark was called
  uint64_t unlisted_marked_ = 0;  // the number of unlisted ones up to it
  Ticket forgotten_ = 0;
};

}  // namespace tamis
