#include "tamis/server/streamed_call.h"

namespace tamis::server {

void StreamedCall::Start() {
  exchange_->OnDisconnect([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Cancel(Cancelled("the client has disconnected"));
  });
  Continue([this] { Run(); });
}

void StreamedCall::Cancel(const Status& why) {
  std::lock_guard lock(mutex_);
  if (why_cancelled_.ok()) why_cancelled_ = why;
  Interrupt();
}

const char* StreamedCall::OutcomeOf(const Status& status) {
  if (status.code() == StatusCode::kDeadlineExceeded) return "timed out";
  return status.code() == StatusCode::kCancelled ? "cancelled" : "failed";
}

}  // namespace tamis::server
