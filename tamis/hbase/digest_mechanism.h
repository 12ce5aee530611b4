// The SASL mechanism DIGEST-MD5 (RFC 2831), by which HBase takes delegation tokens: a name and a
// password prove who the client is, and the server proves that it knows the password, too.
//
// HBase's realm and server name are "default", and its protocol is the text "null".
#pragma once

#include <openssl/evp.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/client_options.h"
#include "tamis/hbase/sasl_mechanism.h"

namespace tamis::hbase {

class DigestMechanism : public SaslMechanism {
 public:
  struct Options {
    std::string user;
    std::string password;
    std::vector<Protection> protections;  // acceptable, preferred first
    std::string client_nonce;             // random, without quotation marks
  };
  explicit DigestMechanism(Options options) : options_(std::move(options)) {}

  Result<Answer> Next(std::string_view challenge) override;
  bool wraps() const override { return layer_ != Protection::kAuthentication; }
  size_t max_piece_bytes() const override;
  Result<std::string> Wrap(std::string_view bytes) override;
  Result<std::string> Unwrap(std::string_view piece) override;

 private:
  // The state of one direction of the protected stream.
  struct Direction {
    std::string signing_key;
    std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> cipher{nullptr,
                                                                           EVP_CIPHER_CTX_free};
    uint32_t sequence = 0;
  };

  Result<std::string> Respond(std::string_view challenge);
  Status Prepare(Direction* direction, std::string_view from, std::string_view to, bool encrypts);

  const Options options_;
  std::string session_key_;   // H(A1) of the RFC
  std::string server_proof_;  // that the server has to send; empty until the client responded
  Protection layer_ = Protection::kAuthentication;
  Direction out_;
  Direction in_;
};

}  // namespace tamis::hbase
