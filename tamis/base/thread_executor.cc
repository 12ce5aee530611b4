#include "tamis/base/thread_executor.h"

#include <time.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <new>
#include <thread>
#include <vector>

namespace tamis {

namespace asio = boost::asio;

struct ThreadExecutor::Pool {
  asio::io_context context;
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::vector<std::thread> threads;

  ~Pool() {
    context.stop();
    for (auto& thread : threads) {
      if (thread.joinable()) thread.join();
    }
  }
  void Run() {
    while (true) {
      try {
        context.run();
        return;
      } catch (const std::bad_alloc&) {  // a task found no memory; the others run on
      }
    }
  }
};

ThreadExecutor::ThreadExecutor(int threads) : pool_(std::make_unique<Pool>()) {
  pool_->threads.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    pool_->threads.emplace_back([pool = pool_.get()] { pool->Run(); });
  }
}

ThreadExecutor::~ThreadExecutor() { Stop(); }

void ThreadExecutor::Stop() {
  if (!pool_) return;
  pool_->context.stop();
  for (auto& thread : pool_->threads) thread.join();
  // The tasks that are left are destroyed here, while what they hold still exists.
  std::unique_ptr<Pool> ended;
  std::lock_guard lock(mutex_);
  ended.swap(pool_);
}

Time ThreadExecutor::Now() const {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

void ThreadExecutor::Post(Task task) {
  std::lock_guard lock(mutex_);
  if (pool_) asio::post(pool_->context, std::move(task));
}

void ThreadExecutor::PostAfter(Duration delay, Task task) {
  std::lock_guard lock(mutex_);
  if (!pool_) return;
  auto timer = std::make_shared<asio::steady_timer>(pool_->context, delay);
  timer->async_wait([timer, task = std::move(task)](const boost::system::error_code& error) {
    if (!error) task();
  });
}

}  // namespace tamis
