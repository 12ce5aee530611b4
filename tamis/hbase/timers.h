// Many deadlines on one system timer.
//
// Threads: use it only on its io_context, which runs on one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace tamis::hbase {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

class Timers {
 public:
  using Entry = std::multimap<Deadline, std::function<void()>>::iterator;

  explicit Timers(boost::asio::io_context& io) : timer_(io) {}

  // Calls `run` once, at or after `when`, unless the entry is taken back.
  Entry Add(Deadline when, std::function<void()> run) {
    const Entry entry = entries_.emplace(closed_ ? Deadline::min() : when, std::move(run));
    if (entry == entries_.begin()) Arm();
    return entry;
  }
  // REQUIRES: the entry has not run.
  void TakeBack(Entry entry) { entries_.erase(entry); }

  // Expires all entries, and every entry added later.
  void Close() {
    closed_ = true;
    std::multimap<Deadline, std::function<void()>> over;
    while (!entries_.empty()) {
      auto node = entries_.extract(entries_.begin());
      node.key() = Deadline::min();
      over.insert(std::move(node));
    }
    entries_.merge(over);  // the nodes stay the same, so callers may still take entries back
    timer_.cancel();       // it may be armed for an entry that has been taken back
    if (!entries_.empty()) Arm();
  }

 private:
  void Arm() {
    // Setting a new expiry cancels the previous wait. If the timer fires early, Arm() runs again.
    timer_.expires_at(entries_.begin()->first);
    timer_.async_wait(
        [this, alive = std::weak_ptr<int>(alive_)](const boost::system::error_code& error) {
          if (!error && alive.lock()) RunDue();
        });
  }

  void RunDue() {
    while (!entries_.empty() && entries_.begin()->first <= Clock::now()) {
      auto node = entries_.extract(entries_.begin());
      node.mapped()();
    }
    if (!entries_.empty()) Arm();
  }

  boost::asio::steady_timer timer_;
  bool closed_ = false;
  std::multimap<Deadline, std::function<void()>> entries_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace tamis::hbase
