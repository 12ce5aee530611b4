// Admission: which requests are answered at all.
//
// With a token, a request needs "Authorization: Bearer TOKEN". A request whose Host header is no
// name of this server is refused, so that a page of another site, whose name was made to lead here
// (DNS rebinding), can ask nothing; so is a request whose Origin is another site.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tamis/server/exchange.h"

namespace tamis::server {

class Admission {
 public:
  // `hosts`: names and addresses, besides those of the loopback, that clients may call this server
  // by. `token` may be empty: none is needed.
  Admission(std::vector<std::string> hosts, std::string token);

  // The refusal; nullopt: the request is admitted. `is_open`: no token is needed.
  std::optional<Response> Refuse(const Request& request, bool is_open) const;

 private:
  bool IsOurHost(const std::string& host_and_port) const;
  bool HasToken(const std::string& authorization) const;

  std::vector<std::string> hosts_;
  std::string token_;
};

}  // namespace tamis::server
