// One side of a SASL exchange: it answers a server's challenges, then protects the bytes that
// follow.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "tamis/base/status.h"

namespace tamis::hbase {

class SaslMechanism {
 public:
  SaslMechanism() = default;
  virtual ~SaslMechanism() = default;
  SaslMechanism(const SaslMechanism&) = delete;
  SaslMechanism& operator=(const SaslMechanism&) = delete;

  struct Answer {
    std::optional<std::string> token;  // not set: nothing to send
    bool is_last = false;              // the exchange is over when the token is sent
  };
  // Does not wait for other machines.
  virtual Result<Answer> Next(std::string_view challenge) = 0;

  // The rest is for after the last answer.
  // Whether the bytes that follow travel in wrapped pieces.
  virtual bool wraps() const = 0;
  // The maximum number of bytes to wrap in one piece.
  virtual size_t max_piece_bytes() const = 0;
  virtual Result<std::string> Wrap(std::string_view bytes) = 0;
  // kDataLoss: the piece is not the server's next one.
  virtual Result<std::string> Unwrap(std::string_view piece) = 0;
};

}  // namespace tamis::hbase
