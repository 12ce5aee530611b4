// The address of a server, and the start code of its process.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"

namespace tamis::hbase {

struct Address {
  std::string host;
  uint16_t port = 0;

  std::string ToString() const { return host + ":" + std::to_string(port); }
  auto operator<=>(const Address&) const = default;
};

// "host:port,host:port,..."
Result<std::vector<Address>> ParseAddresses(std::string_view text);

// HBase's unique name of a server process: a restarted server has a new start code.
struct ServerName {
  Address address;
  uint64_t start_code = 0;  // 0: not known

  // "host,port,start code", as in HBase's logs.
  std::string ToString() const {
    return address.host + "," + std::to_string(address.port) + "," + std::to_string(start_code);
  }
  auto operator<=>(const ServerName&) const = default;
};

}  // namespace tamis::hbase
