#include "tamis/server/running_statements.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace tamis::server {
namespace {

constexpr std::chrono::seconds kStopTime{2};  // for clients to take the last line of their streams

}  // namespace

Status RunningStatements::Add(RunningStatement* statement) {
  std::lock_guard lock(mutex_);
  if (stopped_) return Unavailable("the server is stopping; ask another one");
  if (statements_.size() >= static_cast<size_t>(most_)) {
    return Busy("the server runs " + std::to_string(most_) +
                " statements already (--statements); try again");
  }
  statements_.insert(statement);
  return Status::Ok();
}

void RunningStatements::Remove(RunningStatement* statement) {
  std::lock_guard lock(mutex_);
  statements_.erase(statement);
  ended_.notify_all();
}

uint64_t RunningStatements::count() const {
  std::lock_guard lock(mutex_);
  return statements_.size();
}

bool RunningStatements::Stop(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  std::vector<std::weak_ptr<RunningStatement>> running;
  for (RunningStatement* statement : statements_) running.push_back(statement->weak_from_this());
  lock.unlock();
  for (const auto& one : running) {
    const auto statement = one.lock();
    if (statement) statement->Cancel(Unavailable("the server is stopping; ask another one"));
  }
  lock.lock();
  const auto all_ended = [this] { return statements_.empty(); };
  if (ended_.wait_for(lock, std::min<std::chrono::milliseconds>(patience, kStopTime), all_ended)) {
    return true;
  }
  lock.unlock();
  for (const auto& one : running) {
    if (const auto statement = one.lock()) statement->Cut();
  }
  lock.lock();
  return ended_.wait_for(lock, patience, all_ended);
}

}  // namespace tamis::server
