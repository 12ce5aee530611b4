// A request to a region server may never be answered: a server that is killed drops its tasks
// together with their callbacks.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "tamis/cluster/cluster.h"
#include "tamis/rocks/rocks_region_server.h"

namespace tamis {

// Calls done once: with the operation's status, or with kDeadlineExceeded after `timeout`.
inline DoneCallback OnceWithin(Executor* executor, Duration timeout, const std::string& doing,
                               DoneCallback done) {
  auto called = std::make_shared<std::atomic<bool>>(false);
  auto once = [called, done = std::move(done)](Status status) {
    if (!called->exchange(true)) done(std::move(status));
  };
  executor->PostAfter(timeout, [once, doing] {
    once(DeadlineExceeded("cannot " + doing +
                          ": a region server did not answer in time; it may still happen"));
  });
  return once;
}

// Calls done once: with the server's answer, or with an error if the server is killed before it
// answers. Checks every `look_interval` whether it was killed.
template <class Answer>
std::function<void(Answer)> UnlessKilled(Executor* executor, Duration look_interval,
                                         std::shared_ptr<RocksRegionServer> server,
                                         std::function<void(Answer)> done) {
  struct Watch : std::enable_shared_from_this<Watch> {
    Executor* executor = nullptr;
    Duration interval{};
    std::shared_ptr<RocksRegionServer> server;
    std::function<void(Answer)> done;
    std::atomic<bool> answered = false;

    void Answered(Answer answer) {
      if (!answered.exchange(true)) done(std::move(answer));
    }
    void Look() {
      if (answered) return;
      if (server->killed()) {
        return Answered(Unavailable("region server " + server->name() + " died"));
      }
      executor->PostAfter(interval, [self = this->shared_from_this()] { self->Look(); });
    }
  };
  auto watch = std::make_shared<Watch>();
  watch->executor = executor;
  watch->interval = look_interval;
  watch->server = std::move(server);
  watch->done = std::move(done);
  watch->Look();
  return [watch](Answer answer) { watch->Answered(std::move(answer)); };
}

}  // namespace tamis
