// SearchingThread: how long searches wait for a coordinator while another thread keeps it busy.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

namespace tamis {

// Nanoseconds that a thread ran, and that it wanted a processor and had none.
class ThreadTimes {
 public:
  explicit ThreadTimes(const std::string& thread = "thread-self")
      : file_("/proc/" + thread + "/schedstat") {
    if (file_) return;
    std::fputs("the system does not say how long threads wait for a processor\n", stderr);
    std::exit(1);
  }
  void Read() {
    file_.clear();
    file_.seekg(0);
    file_.sync();
    file_ >> ran >> waited;
  }
  uint64_t ran = 0, waited = 0;

 private:
  std::ifstream file_;
};

// Measures how long searches wait for the coordinator's lock while another thread (the one that
// made this object) applies replies to it. A thread of its own searches in a loop. A search counts
// with the time in which its thread neither ran nor waited for a processor, less the time that the
// other thread waited for one. One search is done before the constructor returns.
class SearchingThread {
 public:
  explicit SearchingThread(std::function<void()> search)
      : search_(std::move(search)),
        other_("self/task/" + std::to_string(gettid())),
        thread_([this] { Run(); }) {
    count_.wait(0);
  }
  ~SearchingThread() { End(); }

  void End() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // The longest wait in microseconds. REQUIRES: End was called.
  double longest_us() const { return longest_us_; }

 private:
  void Run() {
    ThreadTimes own;
    const auto accounted_us = [&] {
      own.Read();
      other_.Read();
      return static_cast<double>(own.ran + own.waited + other_.waited) * 1e-3;
    };
    const auto clock_us = [] {
      const auto now = std::chrono::steady_clock::now().time_since_epoch();
      return std::chrono::duration<double, std::micro>(now).count();
    };
    while (!stop_) {
      const double accounted = accounted_us(), begin = clock_us();
      search_();
      const double passed = clock_us() - begin;
      longest_us_ = std::max(longest_us_, passed - (accounted_us() - accounted));
      if (++count_ == 1) count_.notify_one();
    }
  }

  const std::function<void()> search_;
  ThreadTimes other_;
  std::atomic<bool> stop_ = false;
  double longest_us_ = 0;
  std::atomic<uint64_t> count_ = 0;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace tamis
