// The client's identity, with which it opens authenticated connections.
//
// Threads: Begin may be called on any thread; the others on the client's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/sasl_mechanism.h"
#include "tamis/hbase/server_name.h"

namespace tamis::hbase {

struct SaslStart {
  std::unique_ptr<SaslMechanism> mechanism;
  std::string token;        // the first one, for the server
  std::string server = {};  // the principal that the server must be; empty: the name of NamesOf
  uint64_t tickets =
      0;  // the number of the login's tickets that it is from; later ones are greater
};

class SaslLogin {
 public:
  SaslLogin() = default;
  virtual ~SaslLogin() = default;
  SaslLogin(const SaslLogin&) = delete;
  SaslLogin& operator=(const SaslLogin&) = delete;

  // The last byte of the preamble that announces the mechanism.
  virtual char method() const = 0;
  // The names that the server of this service may have, likeliest first; at least one.
  virtual std::vector<std::string> NamesOf(const Address& server,
                                           std::string_view service) const = 0;
  // Whether a server accepted a connection under the first of these names.
  virtual bool IsKnown(const Address& server) const = 0;
  // Records that a server accepted a connection under this name, with these tickets.
  virtual void Accepted(const Address& server, const std::string& name, uint64_t tickets) = 0;
  // A server refused a login with these tickets. Returns true if that may be since they are of
  // former times: the server accepted them before, or there are newer ones. The next Begin fetches
  // newer ones then, if it can.
  virtual bool Renew(const Address& server, uint64_t tickets) = 0;
  // Says for which thing a Begin that does not end still waits, and what may be done about it.
  virtual std::string Missing(const Address& server, const std::string& name) const = 0;
  // Begins an exchange with a server, which may take long. `wanted` is asked before that; if it
  // returns false, `done` is not called. Both are called on a thread of the login.
  virtual void Begin(const Address& server, const std::string& name, std::function<bool()> wanted,
                     std::function<void(Result<SaslStart>)> done) = 0;
  // The usual reasons of a server that refuses the login, for its message.
  virtual std::string_view reasons_of_refusal() const = 0;
  // Whether a server without security may be used, too.
  virtual bool falls_back() const = 0;
};

// Whether a name of NamesOf, "service/host@REALM" where the host may be _HOST, can stand for the
// principal.
bool NamesPrincipal(std::string_view name, std::string_view principal);

}  // namespace tamis::hbase
