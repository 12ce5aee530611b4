// The client's identity, with which it opens authenticated connections.
//
// Threads: Begin may be called on any thread; the others on the client's thread only.
#pragma once

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
  // Records that a server accepted a connection under this name.
  virtual void Accepted(const Address& server, const std::string& name) = 0;
  // A server refused the login. Returns true if that may be due to a ticket of former times, and
  // the next Begin does without it; false until a server of this host has accepted a login again.
  virtual bool Renew(const Address& server) = 0;
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
