#include "tamis/store/hbase_token.h"

#include <utility>

#include "tamis/hbase/client.h"
#include "tamis/store/hbase_name.h"

namespace tamis {
namespace {

// A person waits for it.
constexpr std::chrono::seconds kTokenPatience(20);

Result<HBaseToken> Describe(const hbase::DelegationToken& token) {
  TAMIS_ASSIGN_OR_RETURN(hbase::TokenFacts facts, hbase::FactsOf(token));
  return HBaseToken{.cluster_id = token.service,
                    .user = std::move(facts.user),
                    .issued_ms = facts.issued_ms,
                    .expires_ms = facts.expires_ms};
}

}  // namespace

Result<HBaseToken> GetHBaseToken(const std::string& store, const std::string& file) {
  if (!store.starts_with("hbase")) {
    return InvalidArgument("store \"" + store + "\" is no HBase: only an HBase has tokens");
  }
  TAMIS_ASSIGN_OR_RETURN(HBaseName name, ParseHBaseName(store));
  if (!name.client.kerberos) {
    return FailedPrecondition("store \"" + store +
                              "\" is named without Kerberos: tokens are for secured clusters "
                              "(option site, or server-principal)");
  }
  // HBase issues tokens to users with a ticket only.
  name.client.kerberos->token_file.clear();
  name.client.operation_timeout =
      std::min<std::chrono::milliseconds>(name.client.operation_timeout, kTokenPatience);
  TAMIS_ASSIGN_OR_RETURN(const auto client, hbase::Client::Open(std::move(name.client)));
  TAMIS_ASSIGN_OR_RETURN(const hbase::DelegationToken token, client->IssueToken());
  TAMIS_ASSIGN_OR_RETURN(HBaseToken described, Describe(token));
  TAMIS_RETURN_IF_ERROR(hbase::WriteTokens({token}, file));
  return described;
}

Result<std::vector<HBaseToken>> ListHBaseTokens(const std::string& file) {
  TAMIS_ASSIGN_OR_RETURN(const auto tokens, hbase::ReadTokens(file));
  std::vector<HBaseToken> found;
  for (const hbase::DelegationToken& token : tokens) {
    if (token.kind != hbase::kHBaseTokenKind) continue;
    TAMIS_ASSIGN_OR_RETURN(HBaseToken described, Describe(token));
    found.push_back(std::move(described));
  }
  return found;
}

}  // namespace tamis
