#include "tamis/hbase/token_login.h"

#include <openssl/evp.h>

#include <utility>

#include "tamis/base/random.h"
#include "tamis/hbase/digest_mechanism.h"

namespace tamis::hbase {
namespace {

std::string Base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

}  // namespace

TokenLogin::TokenLogin(DelegationToken token, const KerberosOptions& options)
    : token_(std::move(token)),
      protections_(options.protections.empty()
                       ? std::vector{Protection::kPrivacy, Protection::kIntegrity,
                                     Protection::kAuthentication}
                       : options.protections),
      falls_back_(options.fallback_to_simple) {}

std::vector<std::string> TokenLogin::NamesOf(const Address& /*server*/,
                                             std::string_view /*service*/) const {
  return {"HBase with a delegation token"};
}

void TokenLogin::Begin(const Address& /*server*/, const std::string& /*name*/,
                       std::function<bool()> wanted, std::function<void(Result<SaslStart>)> done) {
  if (!wanted()) return;
  // The client sends an empty token first.
  done(SaslStart{
      .mechanism = std::make_unique<DigestMechanism>(DigestMechanism::Options{
          .user = Base64(token_.identifier),
          .password = Base64(token_.password),
          .protections = protections_,
          .client_nonce = std::to_string(SeedFromSystem()) + std::to_string(SeedFromSystem())}),
      .token = {}});
}

}  // namespace tamis::hbase
