// WritesUnderWay: the first values of the entries that writes have counted in a filter and may not
// have committed yet. A search of the index need not find them, so nothing may be concluded from
// what it does not find there.
//
// A write whose outcome is unknown stays, until the entries are counted anew.
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tamis {

class WritesUnderWay {
 public:
  using Ticket = uint64_t;  // 0 is none

  Ticket Enter(std::vector<std::string> firsts) {
    writes_.emplace(++last_, std::move(firsts));
    return last_;
  }
  void Leave(Ticket ticket) { writes_.erase(ticket); }

  // Drops the writes with tickets up to this one.
  void ForgetUpTo(Ticket ticket) { writes_.erase(writes_.begin(), writes_.upper_bound(ticket)); }
  Ticket last() const { return last_; }
  size_t size() const { return writes_.size(); }

  // Calls fn(first) for the first value of each entry.
  template <class Fn>
  void ForEach(Fn&& fn) const {
    for (const auto& [ticket, firsts] : writes_) {
      for (const std::string& first : firsts) fn(first);
    }
  }

 private:
  Ticket last_ = 0;
  std::map<Ticket, std::vector<std::string>> writes_;
};

}  // namespace tamis
