#include "tamis/hbase/server_name.h"

#include <charconv>

namespace tamis::hbase {

Result<std::vector<Address>> ParseAddresses(std::string_view text) {
  std::vector<Address> addresses;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = rest.find(',');
    std::string_view one = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const size_t colon = one.rfind(':');
    std::string_view host = one.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
      host = host.substr(1, host.size() - 2);  // an IPv6 address
    }
    uint16_t port = 0;
    bool good = colon != std::string_view::npos && !host.empty();
    if (good) {
      const auto [end, error] =
          std::from_chars(one.data() + colon + 1, one.data() + one.size(), port);
      good = error == std::errc() && end == one.data() + one.size() && port != 0;
    }
    if (!good) {
      return InvalidArgument("cannot read \"" + std::string(one) + "\" in the addresses \"" +
                             std::string(text) +
                             "\": write host:port,... of HBase masters or region servers");
    }
    addresses.push_back({std::string(host), port});
  }
  if (addresses.empty()) {
    return InvalidArgument("no address given: name masters or region servers as host:port,...");
  }
  return addresses;
}

}  // namespace tamis::hbase
