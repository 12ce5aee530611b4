// The client's coroutine type, and a place where coroutines wait for an event.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "tamis/hbase/timers.h"

namespace tamis::hbase {

template <class T>
using Task = boost::asio::awaitable<T>;

// The completion handler of co_spawn for coroutines without a caller: an exception ends the
// process.
inline void EndIfItThrew(const std::exception_ptr& error) {
  if (error) std::rethrow_exception(error);
}

// Returns the status from the coroutine if it is not ok.
#define TAMIS_CO_RETURN_IF_ERROR(expr)                                                     \
  do {                                                                                     \
    if (::tamis::Status tamis_status = (expr); !tamis_status.ok()) co_return tamis_status; \
  } while (false)

// Suspends the coroutine and calls start(resume); `start` must arrange that resume is called once,
// later, with the value. If `start` captures more than pointers and numbers, call this outside of
// the co_await expression: g++ 12 destroys a closure twice if it is created inside one.
template <class T, class Start>
Task<T> Suspended(Start start) {
  return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(T)>(
      [start = std::move(start)](auto handler) mutable {
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        start([shared](T value) { (*shared)(std::move(value)); });
      },
      boost::asio::use_awaitable);
}

// Suspends coroutines until another coroutine wakes them or the deadline passes.
class Waiters {
 public:
  Waiters(boost::asio::io_context& io, Timers& timers) : io_(io), timers_(timers) {}

  Task<bool> Wait(Deadline deadline) {  // false: the deadline passed
    return Suspended<bool>([this, deadline](std::function<void(bool)> resume) {
      const uint64_t id = ++last_id_;
      const auto timer = timers_.Add(deadline, [this, id] { Resume(id, false); });
      waiting_.emplace(id, One{std::move(resume), timer});
    });
  }

  void WakeAll() {
    while (!waiting_.empty()) {
      auto node = waiting_.extract(waiting_.begin());
      timers_.TakeBack(node.mapped().timer);
      boost::asio::post(io_, [resume = std::move(node.mapped().resume)] { resume(true); });
    }
  }

 private:
  struct One {
    std::function<void(bool)> resume;
    Timers::Entry timer;
  };

  void Resume(uint64_t id, bool called) {
    auto node = waiting_.extract(id);
    node.mapped().resume(called);
  }

  boost::asio::io_context& io_;
  Timers& timers_;
  std::map<uint64_t, One> waiting_;
  uint64_t last_id_ = 0;
};

}  // namespace tamis::hbase
