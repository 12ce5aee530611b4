// Join: calls back once, when all parts of something have ended, with what they brought together.
//
//   auto join = std::make_shared<Join<Report>>(Report(), done);
//   for (auto& server : servers) {
//     join->Begin();
//     server->Check([join](Report part) { join->End([&](Report* all) { all->Add(part); }); });
//   }
//   join->End();  // its own part: no more begin
//
// Threads: safe. The callback runs on the thread of the last End(), under no lock.
#pragma once

#include <cassert>
#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>

#include "tamis/base/status.h"

namespace tamis {

template <class T>
class Join {
 public:
  // Counts one part at the start, the creator's.
  Join(T result, std::function<void(T)> done)
      : result_(std::move(result)), done_(std::move(done)) {}

  void Begin() {
    std::lock_guard lock(mutex_);
    assert(missing_ > 0);
    ++missing_;
  }

  // `take` puts what the part brought into the result. One at a time.
  template <class Take>
  void End(const Take& take) {
    {
      std::lock_guard lock(mutex_);
      assert(missing_ > 0);
      take(&result_);
      if (--missing_ > 0) return;
    }
    done_(std::move(result_));
  }
  void End() {
    End([](T*) {});
  }

 private:
  std::mutex mutex_;
  size_t missing_ = 1;
  T result_;
  const std::function<void(T)> done_;
};

// Ends a part of which only its status counts: the first error is that of all.
inline void EndWith(Join<Status>* join, const Status& status) {
  join->End([&](Status* first) {
    if (first->ok()) *first = status;
  });
}

}  // namespace tamis
