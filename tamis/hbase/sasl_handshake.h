// The SASL exchange that begins an authenticated connection: the preamble, the client's tokens and
// the server's replies, until both sides trust each other.
//
// Threads: use it only on the transport's io_context, which runs on one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tamis/base/status.h"
#include "tamis/hbase/sasl_login.h"
#include "tamis/hbase/sasl_reply.h"

namespace tamis::hbase {

class Transport;

class SaslHandshake : public std::enable_shared_from_this<SaslHandshake> {
 public:
  struct Outcome {
    // Ok: the connection header may follow.
    Status status;
    // The server rejected the client's token; it may run under another name.
    bool refused = false;
    // Not set: the server has no security.
    std::unique_ptr<SaslMechanism> mechanism;
  };
  using Done = std::function<void(Outcome)>;

  // `owner` keeps the transport alive while an operation is pending.
  SaslHandshake(Transport& transport, std::shared_ptr<void> owner, SaslStart start)
      : transport_(transport), owner_(std::move(owner)), start_(std::move(start)) {}

  // Calls `done` once, later.
  void Run(char method, Done done);

 private:
  void Write(bool is_last);
  void Read();
  void Take(const SaslReply& reply);
  void End(Status status, bool refused = false);

  Transport& transport_;
  std::shared_ptr<void> owner_;
  SaslStart start_;
  Done done_;
  std::string out_;
  std::string in_;
  bool no_security_ = false;
};

}  // namespace tamis::hbase
