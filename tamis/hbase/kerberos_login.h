// A user's Kerberos login, which all connections of a client share.
//
// Each connection begins with a ticket for its server. The login takes it from the ticket cache, or
// asks the KDC for it, on threads of its own, since these calls block until the KDC answers. With a
// keytab it fetches a new ticket-granting ticket when half of the old one's lifetime is over.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/client_options.h"
#include "tamis/hbase/sasl_login.h"

namespace tamis::hbase {

class KerberosLogin : public SaslLogin {
 public:
  // Asks nothing of the network. kInvalidArgument: an option that cannot be used.
  static Result<std::shared_ptr<KerberosLogin>> Create(KerberosOptions options);
  // Waits for each running Begin.
  ~KerberosLogin() override;

  char method() const override { return '\x51'; }
  std::vector<std::string> NamesOf(const Address& server, std::string_view service) const override;
  bool IsKnown(const Address& server) const override { return accepted_.contains(server); }
  void Accepted(const Address& server, const std::string& name, uint64_t tickets) override;
  // With a keytab. Tickets of a ticket cache are the user's.
  bool Renew(const Address& server, uint64_t tickets) override;
  std::string Missing(const Address& server, const std::string& name) const override;
  void Begin(const Address& server, const std::string& name, std::function<bool()> wanted,
             std::function<void(Result<SaslStart>)> done) override;
  std::string_view reasons_of_refusal() const override {
    return "usually it runs under another principal, or its clock differs";
  }
  bool falls_back() const override { return options_.fallback_to_simple; }

 private:
  struct Work {
    Address server;
    std::string name;
    std::function<bool()> wanted;
    std::function<void(Result<SaslStart>)> done;
  };

  class TicketCache;

  explicit KerberosLogin(KerberosOptions options);

  void Run();
  Result<SaslStart> Start(const Address& server, const std::string& name);

  const KerberosOptions options_;
  std::mutex acquiring_;  // so that only one thread renews the ticket-granting ticket
  std::shared_ptr<const TicketCache> cache_;  // guarded by acquiring_
  std::atomic<uint64_t> wanted_ = 0;  // tickets of a cache with a smaller number are renewed

  // of the client's thread
  struct Acceptance {
    std::string name;
    uint64_t tickets = 0;  // the number of their cache
  };
  std::map<Address, Acceptance> accepted_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  size_t idle_ = 0;                    // threads that wait for work
  std::atomic<bool> stopped_ = false;  // set under the mutex
  std::vector<std::thread> threads_;   // all but the first are started when there is work for them
};

}  // namespace tamis::hbase
