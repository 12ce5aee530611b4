#include "tests/cluster/run_progress.h"

namespace tamis {
namespace {

constexpr int kMostOrders = 8;  // to the cluster, not answered yet

}  // namespace

void RunProgress::Fail(const std::string& what) {
  std::lock_guard lock(mutex_);
  if (!failure_.has_value()) failure_ = what + " (seed " + std::to_string(seed_) + ")";
  failed_ = true;
  progress_.notify_all();
}

void RunProgress::Count(const std::string& what) {
  std::lock_guard lock(mutex_);
  ++counts_[what];
}

bool RunProgress::BeginOperation() {
  if (failed_) return false;
  const bool more = operations_.fetch_add(1) < most_operations_;
  if (!more) operations_.fetch_sub(1);
  if (operations_ % kEventEvery == 0 || !more) {
    std::lock_guard lock(mutex_);
    progress_.notify_all();
  }
  return more;
}

void RunProgress::EndOperations() {
  std::lock_guard lock(mutex_);
  over_ = true;
  progress_.notify_all();
}

bool RunProgress::AwaitOperations(uint64_t* seen, uint64_t more) {
  std::unique_lock lock(mutex_);
  progress_.wait(lock, [&] { return over_ || failed_ || operations_ >= *seen + more; });
  *seen = operations_;
  return !over_ && !failed_;
}

void RunProgress::Pause(Duration time) {
  std::unique_lock lock(mutex_);
  progress_.wait_for(lock, time, [this] { return over_ || failed_; });
}

DoneCallback RunProgress::Order(const char* what) {
  std::lock_guard lock(mutex_);
  ++orders_;
  return [this, what](Status status) {
    std::lock_guard done_lock(mutex_);
    --orders_;
    ++counts_[status.ok() ? what : std::string(what) + " not done"];
    progress_.notify_all();
  };
}

bool RunProgress::HasManyOrders() {
  std::lock_guard lock(mutex_);
  return orders_ >= kMostOrders;
}

void RunProgress::AwaitOrders() {
  std::unique_lock lock(mutex_);
  progress_.wait(lock, [this] { return orders_ == 0; });
}

RandomClusterResult RunProgress::Result() {
  RandomClusterResult result;
  result.operations = operations_;
  std::lock_guard lock(mutex_);
  result.failure = failure_;
  result.counts = counts_;
  return result;
}

}  // namespace tamis
