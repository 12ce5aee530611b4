#include "tamis/hbase/token_login.h"

#include <openssl/evp.h>

#include <algorithm>
#include <chrono>
#include <ctime>
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

// "2026-08-01 12:00 UTC"
std::string TimeOf(int64_t ms) {
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &parts)};
}

// HBase refuses an expired token without the reason.
Status CheckTime(const DelegationToken& token, const std::string& file) {
  const auto facts = FactsOf(token);
  if (!facts.ok() || facts->expires_ms == 0) return {};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  if (std::chrono::duration_cast<std::chrono::milliseconds>(now).count() < facts->expires_ms) {
    return {};
  }
  return FailedPrecondition("the delegation token of " + facts->user + " in \"" + file +
                            "\" expired at " + TimeOf(facts->expires_ms) +
                            ": get a new one (tamis token get)");
}

}  // namespace

TokenLogin::TokenLogin(std::vector<DelegationToken> tokens, const KerberosOptions& options)
    : tokens_(std::move(tokens)),
      file_(options.token_file),
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
  if (tokens_.size() == 1) return done(Start(tokens_.front().service));
  ask_([this, done = std::move(done)](const Result<std::string>& id) { done(Start(id)); });
}

Result<SaslStart> TokenLogin::Start(const Result<std::string>& cluster_id) const {
  if (!cluster_id.ok()) {
    return cluster_id.status().WithContext("cannot choose a token of \"" + file_ + "\"");
  }
  const auto token = std::ranges::find(tokens_, *cluster_id, &DelegationToken::service);
  if (token == tokens_.end()) {
    return FailedPrecondition("\"" + file_ +
                              "\" has no delegation token of the HBase with the id " + *cluster_id +
                              ": get one (tamis token get)");
  }
  TAMIS_RETURN_IF_ERROR(CheckTime(*token, file_));
  // The client sends an empty token first.
  return SaslStart{
      .mechanism = std::make_unique<DigestMechanism>(DigestMechanism::Options{
          .user = Base64(token->identifier),
          .password = Base64(token->password),
          .protections = protections_,
          .client_nonce = std::to_string(SeedFromSystem()) + std::to_string(SeedFromSystem())}),
      .token = {}};
}

}  // namespace tamis::hbase
