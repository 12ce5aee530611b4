// A file of Hadoop's delegation tokens ($HADOOP_TOKEN_FILE_LOCATION), by which a job acts for the
// user that started it:
//
//   "HDTS" | byte 0 | vint count | (text alias | token)... | secrets
//   token = vint size | identifier | vint size | password | text kind | text service
//
// vint is Hadoop's variable-length integer, text is vint size | bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"

namespace tamis::hbase {

// The holder of a token can act for its user until it expires. HBase neither renews nor cancels it.
struct DelegationToken {
  std::string identifier;
  std::string password;
  std::string kind;     // "HBASE_AUTH_TOKEN"
  std::string service;  // HBase's service: the cluster's id

  bool operator==(const DelegationToken&) const = default;
};

// The content of an HBase token's identifier.
struct TokenFacts {
  std::string user;
  int64_t issued_ms = 0;  // since 1970
  int64_t expires_ms = 0;
};

inline constexpr std::string_view kHBaseTokenKind = "HBASE_AUTH_TOKEN";

// kDataLoss: the bytes are no such file.
Result<std::vector<DelegationToken>> ParseTokens(std::string_view bytes);
// The tokens of a file. The error names it.
Result<std::vector<DelegationToken>> ReadTokens(const std::string& file);

// The bytes of such a file.
std::string FormatTokens(const std::vector<DelegationToken>& tokens);
// Writes or replaces the file, which only its owner may read. The error names it.
Status WriteTokens(const std::vector<DelegationToken>& tokens, const std::string& file);

// kDataLoss: it is no identifier of HBase.
Result<TokenFacts> FactsOf(const DelegationToken& token);

}  // namespace tamis::hbase
