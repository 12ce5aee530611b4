// The name of a store on HBase, in its parts:
//
//   hbase://HOST:PORT,...[/NAMESPACE][?OPTION=VALUE[&OPTION=VALUE...]]
//
//   tls=true           everything travels inside of TLS; without it no other option may be there
//   ca=FILE            PEM: whom to trust; without it, whom the machine trusts
//   cert=FILE          PEM: who we are, for servers that ask
//   key=FILE           PEM: its key; without it, it stands in the file of the certificate
//   verify-host=false  a certificate that is trusted is good for any host
//
// In a FILE %XX is the byte XX: %26 is "&", %25 is "%".
#pragma once

#include <optional>
#include <string>

#include "tamis/base/status.h"
#include "tamis/hbase/client_options.h"

namespace tamis {

struct HBaseName {
  std::string addresses;
  std::string name_space = "default";
  std::optional<hbase::TlsOptions> tls;
};

// kInvalidArgument says what cannot be read, and how such a name is written.
Result<HBaseName> ParseHBaseName(const std::string& name);

}  // namespace tamis
