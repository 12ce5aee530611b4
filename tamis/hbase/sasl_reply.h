// A reply of a server in the SASL exchange that begins a connection:
//
//   challenge  = int32 0 | int32 size | token
//   refusal    = int32 status | int32 size | Java class | int32 size | message
//   no security = int32 0 | int32 -88
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "tamis/base/status.h"

namespace tamis::hbase {

struct SaslReply {
  enum class Kind { kChallenge, kRefusal, kNoSecurity };
  Kind kind = Kind::kChallenge;
  std::string_view token;       // the token of a challenge
  std::string_view class_name;  // the exception's class, in a refusal
  std::string_view message;     // the reason of a refusal
  size_t size = 0;              // the bytes of the reply
};

// HBase's own limit of a challenge.
inline constexpr size_t kMaxSaslTokenBytes = 1 << 20;

// Parses the reply that `bytes` begin with, as views of them; nothing if it is incomplete.
// kDataLoss: they are no reply.
Result<std::optional<SaslReply>> ParseSaslReply(std::string_view bytes);

}  // namespace tamis::hbase
