// OwnershipProof: the proof of a region server that it owns its regions: heartbeats, each answered
// with whether the server has not been expelled. A proof is good for
// RegionServerOptions::proof_term from the moment when its heartbeat was sent.
//
// Threads: safe.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "tamis/rocks/server_context.h"

namespace tamis {

class OwnershipProof : public std::enable_shared_from_this<OwnershipProof> {
 public:
  explicit OwnershipProof(std::shared_ptr<const ServerContext> context)
      : context_(std::move(context)) {}

  // Sends a heartbeat now and then, for as long as this object lives.
  void Start() { Heartbeat(); }
  // When the last proof ends.
  Time VerifiedUntil() const { return proved_at_.load() + context_->options.proof_term; }

 private:
  void Heartbeat();

  const std::shared_ptr<const ServerContext> context_;
  std::atomic<Time> proved_at_ = Time::min() / 2;  // when the last proof was begun
};

}  // namespace tamis
