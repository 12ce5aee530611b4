// RunningStatements: the statements and engine operations of clients that a server carries out now;
// their number is bounded.
//
// Threads: safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>

#include "tamis/base/status.h"

namespace tamis::server {

class RunningStatement : public std::enable_shared_from_this<RunningStatement> {
 public:
  virtual ~RunningStatement() = default;
  virtual void Cancel(const Status& why) = 0;
  // Closes the connection of a client that takes nothing.
  virtual void Cut() = 0;
};

class RunningStatements {
 public:
  explicit RunningStatements(int most) : most_(most) {}

  // kBusy, with what to do, where there is no room. The statement calls Remove when it is
  // destroyed.
  Status Add(RunningStatement* statement);
  void Remove(RunningStatement* statement);

  uint64_t count() const;
  // Cancels all statements and waits for their ends; new ones are refused. Returns false if some
  // have not ended after `patience`, since a function of SQL does not end. May be called again.
  bool Stop(std::chrono::milliseconds patience);

 private:
  const int most_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  bool stopped_ = false;
  std::set<RunningStatement*> statements_;
};

}  // namespace tamis::server
