// StreamedCall: a statement or an operation of a client, from its request to the end of its answer,
// which is sent whole or as a stream of parts.
//
// Its steps run on the workers, one at a time; it keeps itself alive through what it waits for. It
// is cancelled when the client disconnects, and by RunningStatements::Stop. An exception of a step
// ends it with an error.
//
// Threads: Cancel and Cut may be called from any thread; the rest is for its steps.
#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "tamis/base/exception_status.h"
#include "tamis/server/exchange.h"
#include "tamis/server/running_statements.h"
#include "tamis/server/worker_threads.h"

namespace tamis::server {

class StreamedCall : public RunningStatement {
 public:
  ~StreamedCall() override { statements_->Remove(this); }

  void Start();
  void Cancel(const Status& why) final;
  void Cut() final { exchange_->Abort(); }

 protected:
  // All but the exchange must outlive this object. `content_type` is that of a stream.
  StreamedCall(ExchangePtr exchange, std::string content_type, WorkerThreads* workers,
               RunningStatements* statements)
      : exchange_(std::move(exchange)),
        content_type_(std::move(content_type)),
        workers_(workers),
        statements_(statements) {}

  virtual void Run() = 0;  // the first step
  virtual void Fail(Status status) = 0;
  // Called when it is cancelled, with mutex_.
  virtual void Interrupt() = 0;

  // Runs the step on a worker.
  template <class Step>
  void Continue(Step step) {
    workers_->Post([self = shared_from_this(), this, step] {
      const TraceScope trace(exchange_->request().Trace());
      const Status status = WithoutExceptions([&]() -> Status {
        step();
        return Status::Ok();
      });
      if (!status.ok()) Fail(status);
    });
  }
  // Sends a part of the stream, and runs then(sent) as a step.
  template <class Then>
  void SendPart(std::string part, Then then) {
    if (!std::exchange(has_begun_, true)) exchange_->Begin({.content_type = content_type_});
    exchange_->Write(std::move(part), [self = shared_from_this(), this, then](bool sent) {
      Continue([then, sent] { then(sent); });
    });
  }
  void SendLast(std::string part) {
    SendPart(std::move(part), [this](bool sent) { sent ? exchange_->End() : exchange_->Abort(); });
  }
  // The client sees that the answer is cut.
  void SendErrorPart(std::string part) {
    SendPart(std::move(part), [this](bool) { exchange_->Abort(); });
  }
  bool has_begun() const { return has_begun_; }  // a part was sent

  // "timed out", "cancelled" or "failed", for the metrics.
  static const char* OutcomeOf(const Status& status);

  const ExchangePtr exchange_;
  std::mutex mutex_;
  Status why_cancelled_;  // with mutex_; Ok: it is not

 private:
  const std::string content_type_;
  WorkerThreads* const workers_;
  RunningStatements* const statements_;
  bool has_begun_ = false;
};

}  // namespace tamis::server
