// RunProgress: how far a randomized run of many threads has come: its operations, which pace the
// events, its orders to the cluster, what was counted, and the first failure.
//
// Threads: safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "tamis/base/executor.h"
#include "tamis/cluster/region_server.h"
#include "tests/cluster/random_cluster.h"

namespace tamis {

class RunProgress {
 public:
  static constexpr uint64_t kEventEvery = 12;  // operations

  RunProgress(uint64_t seed, uint64_t operations) : seed_(seed), most_operations_(operations) {}

  // The first failure is kept, and ends the run.
  void Fail(const std::string& what);
  bool failed() const { return failed_; }
  void Count(const std::string& what);

  // False when enough operations have begun, or the run has failed.
  bool BeginOperation();
  void EndOperations();
  // Waits until so many operations have begun since *seen. False at the end of the run.
  bool AwaitOperations(uint64_t* seen, uint64_t more);
  // Waits so long, but not beyond the end of the run.
  void Pause(Duration time);

  // The callback of an order to the cluster. The run waits for orders only at its end.
  DoneCallback Order(const char* what);
  // In an outage each may take minutes.
  bool HasManyOrders();
  void AwaitOrders();

  RandomClusterResult Result();

 private:
  const uint64_t seed_;
  const uint64_t most_operations_;
  std::atomic<uint64_t> operations_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::condition_variable progress_;
  bool over_ = false;
  int orders_ = 0;  // not answered yet
  std::map<std::string, uint64_t> counts_;
  std::optional<std::string> failure_;
};

}  // namespace tamis
