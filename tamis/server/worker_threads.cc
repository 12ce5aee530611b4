#include "tamis/server/worker_threads.h"

#include "tamis/base/exception_status.h"

namespace tamis::server {

WorkerThreads::WorkerThreads(int threads) {
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
  } catch (...) {  // a thread that runs has to end before the vector does
    Join();
    throw;
  }
}

void WorkerThreads::Join() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  posted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void WorkerThreads::Post(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  posted_.notify_one();
}

void WorkerThreads::Run() {
  while (const auto work = Next()) {
    // Without memory even an error cannot be answered; the exchange that the work drops then closes
    // its connection.
    (void)WithoutExceptions([&]() -> Status {
      work();
      return Status::Ok();
    });
  }
}

std::function<void()> WorkerThreads::Next() {
  std::unique_lock lock(mutex_);
  posted_.wait(lock, [this] { return ending_ || !queue_.empty(); });
  if (queue_.empty()) return nullptr;
  std::function<void()> work = std::move(queue_.front());
  queue_.pop_front();
  return work;
}

}  // namespace tamis::server
