// Explains why a call of GSSAPI failed: one sentence that says which of the usual faults it is, and
// what to do.
#pragma once

#include <cstdint>
#include <string>

#include "tamis/base/status.h"

namespace tamis::hbase {

// The parties of a failed call, for the message.
struct KerberosParties {
  std::string keytab_file;  // empty: the user's tickets come from a ticket cache
  std::string user;         // empty: not known
  std::string server;       // the principal of the server; empty: the call was not about one
};

// kUnavailable if no KDC answers, else kFailedPrecondition. `major` and `minor` are the codes of
// the failed call, which was the last call of GSSAPI on this thread.
Status KerberosFailure(const KerberosParties& parties, uint32_t major, uint32_t minor);

// The text that Kerberos has for the codes, where the parties are not to blame.
std::string KerberosText(uint32_t major, uint32_t minor);

}  // namespace tamis::hbase
