// WorkerThreads: threads for work that blocks.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tamis::server {

// Threads: safe.
class WorkerThreads {
 public:
  explicit WorkerThreads(int threads);
  // Runs what was posted, and ends.
  ~WorkerThreads();

  void Post(std::function<void()> work);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> queue_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tamis::server
