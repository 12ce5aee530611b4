// A file of Hadoop's delegation tokens ($HADOOP_TOKEN_FILE_LOCATION), by which a job acts for the
// user that started it:
//
//   "HDTS" | byte 0 | vint count | (text alias | token)... | secrets
//   token = vint size | identifier | vint size | password | text kind | text service
//
// vint is Hadoop's variable-length integer, text is vint size | bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"

namespace tamis::hbase {

struct DelegationToken {
  std::string identifier;
  std::string password;
  std::string kind;     // "HBASE_AUTH_TOKEN"
  std::string service;  // of HBase: the cluster's id
};

inline constexpr std::string_view kHBaseTokenKind = "HBASE_AUTH_TOKEN";

// kDataLoss: the bytes are no such file.
Result<std::vector<DelegationToken>> ParseTokens(std::string_view bytes);
// The tokens of a file. The error names it.
Result<std::vector<DelegationToken>> ReadTokens(const std::string& file);

}  // namespace tamis::hbase
