#include "tamis/rocks/ownership_proof.h"

namespace tamis {

void OwnershipProof::Heartbeat() {
  // The proof counts from the time of sending: the server may be expelled after the heartbeat was
  // received and before the answer arrives.
  const Time sent = context_->executor->Now();
  context_->heartbeat([weak = weak_from_this(), sent](bool alive) {
    auto self = weak.lock();
    if (!self) return;
    self->context_->executor->Step([self, sent, alive] {
      if (!alive) return self->context_->on_expelled();
      const bool late = self->context_->options.faults.proof_as_of_answer;
      const Time proved = late ? self->context_->executor->Now() : sent;
      if (proved > self->proved_at_.load()) self->proved_at_ = proved;
    });
  });
  context_->executor->PostAfter(context_->options.heartbeat_interval, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->Heartbeat();
  });
}

}  // namespace tamis
