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
  explicit WorkerThreads(int threads);  // throws std::system_error when no thread can be started
  ~WorkerThreads() { Join(); }

  // An exception of the work is dropped.
  void Post(std::function<void()> work);
  // Runs what was posted, and ends the threads. Work that is posted later is not run.
  void Join();

 private:
  void Run();
  // Null: the thread is to end.
  std::function<void()> Next();

  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> queue_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tamis::server
