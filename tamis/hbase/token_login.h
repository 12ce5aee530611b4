// A login by a delegation token: no KDC is asked, and the token is valid for all servers of the
// cluster that issued it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/client_options.h"
#include "tamis/hbase/sasl_login.h"
#include "tamis/hbase/token_file.h"

namespace tamis::hbase {

class TokenLogin : public SaslLogin {
 public:
  // REQUIRES: there is a token, and `options.token_file` has them.
  TokenLogin(std::vector<DelegationToken> tokens, const KerberosOptions& options);

  // Finds the id of the client's cluster; needs no login. Required before the first Begin if there
  // are several tokens.
  using AskClusterId = std::function<void(std::function<void(Result<std::string>)> done)>;
  void FindClusterBy(AskClusterId ask) { ask_ = std::move(ask); }

  char method() const override { return '\x52'; }
  std::vector<std::string> NamesOf(const Address& server, std::string_view service) const override;
  bool IsKnown(const Address&) const override { return true; }
  void Accepted(const Address&, const std::string&, uint64_t) override {}
  bool Renew(const Address&, uint64_t) override { return false; }
  std::string Missing(const Address&, const std::string&) const override {
    return "no id of the cluster, by which a delegation token is chosen,";
  }
  // REQUIRES: the client's thread.
  void Begin(const Address& server, const std::string& name, std::function<bool()> wanted,
             std::function<void(Result<SaslStart>)> done) override;
  std::string_view reasons_of_refusal() const override {
    return "usually the token has expired, or is another cluster's";
  }
  bool falls_back() const override { return falls_back_; }

 private:
  Result<SaslStart> Start(const Result<std::string>& cluster_id) const;

  const std::vector<DelegationToken> tokens_;
  const std::string file_;
  const std::vector<Protection> protections_;
  const bool falls_back_;
  AskClusterId ask_;
};

}  // namespace tamis::hbase
