// Delegation tokens of the HBase of a store: a job with such a token acts for the user that got it,
// without a Kerberos ticket, until the token expires.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tamis/base/status.h"

namespace tamis {

// The content of a token.
struct HBaseToken {
  std::string cluster_id;
  std::string user;
  int64_t issued_ms = 0;  // since 1970
  int64_t expires_ms = 0;
};

// Gets a token with the user's ticket and writes it to a file in Hadoop's format, which
// HADOOP_TOKEN_FILE_LOCATION may name. `store` is a name of hbase_name.h. Blocks.
Result<HBaseToken> GetHBaseToken(const std::string& store, const std::string& file);

// The HBase tokens in a file of Hadoop's tokens.
Result<std::vector<HBaseToken>> ListHBaseTokens(const std::string& file);

}  // namespace tamis
