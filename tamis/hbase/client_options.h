// How a client reaches a cluster.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "tamis/hbase/server_name.h"

namespace tamis::hbase {

// TLS, as HBase 2.6 has it (hbase.server.netty.tls.enabled). Files are PEM, and are read once.
struct TlsOptions {
  // The trusted certificates: of CAs that sign for servers, or of the servers themselves. Empty:
  // the certificates that this machine trusts.
  std::string ca_file;
  // The client's certificate, followed by the ones between it and its CA. Servers require it unless
  // hbase.server.netty.tls.client.auth.mode says otherwise.
  std::string certificate_file;
  std::string key_file;  // empty: it stands in certificate_file, too
  // Whether a server's certificate has to be for the host as which the cluster knows it.
  bool verify_host = true;

  bool operator==(const TlsOptions&) const = default;
};

struct ClientOptions {
  // "host:port,..." of some masters and region servers. Any one that lives is enough to find the
  // others.
  std::string addresses;
  // Nothing: everything travels in the open.
  std::optional<TlsOptions> tls;
  // Where a connection to a server goes: through a tunnel, say. Nothing: to the server's own
  // address. By any thread of the client's. Where it throws, the server cannot be reached.
  std::function<Address(const Address& server)> way = {};
  // The user name that servers see; empty: HADOOP_USER_NAME, or the user that runs the process.
  std::string user;
  // Time of a whole operation, tries and waits between them included.
  std::chrono::milliseconds operation_timeout{60'000};
  // Time of one try.
  std::chrono::milliseconds call_timeout{10'000};
  // Time to connect; with TLS the handshake has its own time after that. Independently of this, a
  // server has two seconds to say where the cluster is: then the next server is asked.
  std::chrono::milliseconds connect_timeout{1'000};
  std::chrono::milliseconds handshake_timeout{1'500};
  // Calls to one server that are in flight at once. HBase's queue holds ten for each handler.
  int window = 64;
  // HBase's own default.
  size_t max_request_bytes = 256 << 20;
  size_t max_answer_bytes = 256 << 20;
};

}  // namespace tamis::hbase
