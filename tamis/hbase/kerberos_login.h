// A user's Kerberos login, which all connections of a client share.
//
// Each connection begins with a ticket for its server. The login takes it from the ticket cache, or
// asks the KDC for it, on a thread of its own: these calls block until the KDC answers. With a
// keytab it fetches a new ticket-granting ticket when half of the old one's lifetime is over.
#pragma once

#include <condition_variable>
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
  // Waits for a running Begin.
  ~KerberosLogin() override;

  char method() const override { return '\x51'; }
  std::vector<std::string> NamesOf(const Address& server, std::string_view service) const override;
  void Accepted(const Address& server, const std::string& name) override;
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

  explicit KerberosLogin(KerberosOptions options);

  void Run();
  Result<SaslStart> Start(const Address& server, const std::string& name) const;

  const KerberosOptions options_;
  const std::string cache_;  // the name of the ticket cache; empty: the system's default

  // of the client's thread
  std::map<Address, std::string> accepted_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace tamis::hbase
