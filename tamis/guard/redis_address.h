// RedisAddress: where a Redis or Valkey server is, as its URL says:
//
//   redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]
//   unix://[[USER]:PASSWORD@]/PATH[?db=DATABASE]
//
// valkey:// is the same as redis://. USER, PASSWORD and PATH may hold %XX.
#pragma once

#include <string>
#include <string_view>

#include "tamis/base/status.h"

namespace tamis {

struct RedisAddress {
  std::string host;  // empty: the socket
  int port = 6379;
  std::string socket;
  std::string user;
  std::string password;
  int database = 0;

  static Result<RedisAddress> Parse(std::string_view url);

  // For messages: without the password.
  std::string ToString() const;
};

}  // namespace tamis
