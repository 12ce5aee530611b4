// StoreCalls: requests that wait for the store and are no statements: rows, tables, servers,
// regions, and calls of the cluster.
//
// Each counts as a running statement, so their number is bounded. It is cancelled when the client
// disconnects, when its time is over, and by RunningStatements::Stop. A change that is cut off by
// one of these is answered with 504, since it may have been made.
//
// Threads: safe.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tamis/base/executor.h"
#include "tamis/server/deadlines.h"
#include "tamis/server/routes.h"
#include "tamis/server/running_statements.h"

namespace tamis::server {

class Metrics;
class WorkerThreads;

// One call. It runs on a worker, and is answered there, or by the callback that it waits for.
class StoreCall final : public RunningStatement {
 public:
  StoreCall(RunningStatements* statements, Call call)
      : statements_(statements), call_(std::move(call)) {}
  ~StoreCall() override;

  // The request, until the call is answered.
  const Request& request() const { return call_.request(); }
  const std::map<std::string, std::string>& parameters() const { return call_.parameters; }
  const std::atomic<bool>& cancelled() const { return cancelled_; }

  // From now on a failure without an outcome says that a change may have been made.
  void MayChange() { may_change_ = true; }
  // The worker's work has been done; a callback answers. From now on the call ends at once when it
  // is cancelled.
  void AwaitCallback();
  // Ends the call. The first answer counts.
  void Answer(Result<Response> answer);
  // Calls `look` unless the call has ended, which waits for its return.
  void WhileOpen(const std::function<void()>& look);

  void Cancel(const Status& why) override;
  void Cut() override;

  // Calls `interrupt` when the call is cancelled while this object lives.
  class Interrupt {
   public:
    Interrupt(StoreCall* call, std::function<void()> interrupt);
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

   private:
    StoreCall* const call_;
  };

 private:
  friend class StoreCalls;
  void Start();
  void EndAfter(std::chrono::milliseconds time, Deadlines* deadlines);
  void Run(const std::function<void(const std::shared_ptr<StoreCall>&)>& work);
  void Send(const ExchangePtr& exchange, const Result<Response>& answer, const Status& why) const;

  RunningStatements* const statements_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> may_change_ = false;
  Deadlines* deadlines_ = nullptr;
  Deadlines::Id deadline_;

  std::mutex mutex_;
  Call call_;  // without an exchange once answered
  bool awaits_callback_ = false;
  Status why_;  // it is cancelled
  std::function<void()> interrupt_;
};

using StoreCallPtr = std::shared_ptr<StoreCall>;

class StoreCalls {
 public:
  using Work = std::function<void(const StoreCallPtr&)>;

  // All must outlive this object.
  StoreCalls(Executor* executor, WorkerThreads* workers, RunningStatements* statements,
             Metrics* metrics, std::chrono::milliseconds max_time);

  // Runs `work` on a worker.
  void Start(const Call& call, Work work);

 private:
  WorkerThreads* const workers_;
  RunningStatements* const statements_;
  Metrics* const metrics_;
  const std::chrono::milliseconds max_time_;
  Deadlines deadlines_;
};

}  // namespace tamis::server
