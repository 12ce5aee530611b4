// The SASL mechanism GSSAPI (RFC 4752): a Kerberos ticket proves who the client is, and the server
// proves itself, too. After that both agree on a layer of protection for the bytes that follow.
#pragma once

#include <gssapi/gssapi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/client_options.h"
#include "tamis/hbase/kerberos_failure.h"
#include "tamis/hbase/sasl_login.h"
#include "tamis/hbase/sasl_mechanism.h"

namespace tamis::hbase {

class GssapiMechanism : public SaslMechanism {
 public:
  // Makes the first token, with the ticket of `parties.server`. Waits for the KDC if the credential
  // does not hold that ticket yet. `protections`: the acceptable ones, preferred first.
  static Result<SaslStart> Begin(gss_cred_id_t credential, KerberosParties parties,
                                 std::vector<Protection> protections);
  ~GssapiMechanism() override;

  Result<Answer> Next(std::string_view challenge) override;
  bool wraps() const override { return layer_ != Protection::kAuthentication; }
  size_t max_piece_bytes() const override { return max_piece_bytes_; }
  Result<std::string> Wrap(std::string_view bytes) override;
  Result<std::string> Unwrap(std::string_view piece) override;

 private:
  GssapiMechanism(KerberosParties parties, std::vector<Protection> protections)
      : parties_(std::move(parties)), protections_(std::move(protections)) {}

  Result<std::string> Step(gss_cred_id_t credential, std::string_view challenge);
  Result<std::string> ChooseLayer(std::string_view offer);

  const KerberosParties parties_;
  const std::vector<Protection> protections_;
  gss_ctx_id_t context_ = GSS_C_NO_CONTEXT;
  bool is_established_ = false;
  Protection layer_ = Protection::kAuthentication;
  uint32_t max_piece_bytes_ = 0;
};

}  // namespace tamis::hbase
