#include "tamis/server/store_calls.h"

#include <utility>

#include "tamis/base/exception_status.h"
#include "tamis/server/metrics.h"
#include "tamis/server/problem.h"
#include "tamis/server/worker_threads.h"

namespace tamis::server {

// A call that is not answered has lost its callback.
StoreCall::~StoreCall() { Answer(Unavailable("the store ended before it answered; try again")); }

void StoreCall::Start() {
  call_.exchange->OnDisconnect([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Cancel(Cancelled("the client has disconnected"));
  });
}

void StoreCall::EndAfter(std::chrono::milliseconds time, Deadlines* deadlines) {
  deadlines_ = deadlines;
  deadline_ = deadlines->Add(time, [weak = weak_from_this(), time] {
    if (const auto self = weak.lock()) {
      self->Cancel(DeadlineExceeded("the request was ended after " + std::to_string(time.count()) +
                                    " ms; the server permits more with --statement-time"));
    }
  });
}

void StoreCall::Run(const StoreCalls::Work& work) {
  Status why;
  {
    std::lock_guard lock(mutex_);
    why = why_;
  }
  if (!why.ok()) return Answer(why);  // nothing was begun
  const auto self = std::static_pointer_cast<StoreCall>(shared_from_this());
  const Status status = WithoutExceptions([&]() -> Status {
    work(self);
    return Status::Ok();
  });
  if (!status.ok()) Answer(status);
}

void StoreCall::AwaitCallback() {
  Status why;
  {
    std::lock_guard lock(mutex_);
    awaits_callback_ = true;
    why = why_;
  }
  if (!why.ok()) Answer(why);
}

void StoreCall::Answer(Result<Response> answer) {
  ExchangePtr exchange;
  Status why;
  {
    std::lock_guard lock(mutex_);
    if (call_.exchange == nullptr) return;
    exchange = std::move(call_.exchange);
    why = why_;
  }
  // Without memory the connection is closed as its exchange is released.
  (void)WithoutExceptions([&]() -> Status {
    Send(exchange, answer, why);
    return Status::Ok();
  });
  // The connection is released before the call counts no more. Neither is there after that: the
  // callback of a call that was cancelled may come when the server has ended.
  exchange = nullptr;
  if (deadlines_ != nullptr) deadlines_->Cancel(deadline_);
  statements_->Remove(this);
}

void StoreCall::Send(const ExchangePtr& exchange, const Result<Response>& answer,
                     const Status& why) const {
  if (answer.ok()) return exchange->Send(*answer);
  Status status = answer.status();
  if (status.code() == StatusCode::kCancelled && !why.ok()) status = why;
  const bool is_unknown = status.code() == StatusCode::kUnavailable ||
                          status.code() == StatusCode::kCancelled ||
                          status.code() == StatusCode::kDeadlineExceeded;
  if (may_change_ && is_unknown) {
    status = DeadlineExceeded(status.message() +
                              "; a change may have been made: read before you repeat it");
  }
  exchange->Send(Problem(status));
}

void StoreCall::WhileOpen(const std::function<void()>& look) {
  std::lock_guard lock(mutex_);
  if (call_.exchange != nullptr) look();
}

void StoreCall::Cancel(const Status& why) {
  {
    std::lock_guard lock(mutex_);
    if (why_.ok()) why_ = why;
    cancelled_ = true;
    if (interrupt_) interrupt_();
    if (!awaits_callback_) return;
  }
  Answer(Cancelled("cancelled"));
}

void StoreCall::Cut() {
  ExchangePtr exchange;
  {
    std::lock_guard lock(mutex_);
    exchange = call_.exchange;
  }
  if (exchange != nullptr) exchange->Abort();
}

StoreCall::Interrupt::Interrupt(StoreCall* call, std::function<void()> interrupt) : call_(call) {
  std::lock_guard lock(call->mutex_);
  call->interrupt_ = std::move(interrupt);
  if (!call->why_.ok()) call->interrupt_();
}

StoreCall::Interrupt::~Interrupt() {
  std::lock_guard lock(call_->mutex_);
  call_->interrupt_ = nullptr;
}

StoreCalls::StoreCalls(Executor* executor, WorkerThreads* workers, RunningStatements* statements,
                       Metrics* metrics, std::chrono::milliseconds max_time)
    : workers_(workers),
      statements_(statements),
      metrics_(metrics),
      max_time_(max_time),
      deadlines_(executor) {}

void StoreCalls::Start(const Call& call, Work work) {
  const auto running = std::make_shared<StoreCall>(statements_, call);
  const Status added = statements_->Add(running.get());
  if (!added.ok()) {
    metrics_->CountStatement("refused", 0);
    return running->Answer(added);
  }
  running->Start();
  running->EndAfter(max_time_, &deadlines_);
  workers_->Post([running, work = std::move(work), trace = call.exchange->request().Trace()] {
    const TraceScope scope(trace);
    running->Run(work);
  });
}

}  // namespace tamis::server
