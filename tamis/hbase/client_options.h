// The options of a client: addresses, security, timeouts, limits.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "tamis/hbase/server_name.h"

namespace tamis::hbase {

// TLS as in HBase 2.6 (hbase.server.netty.tls.enabled). Files are PEM and are read once.
struct TlsOptions {
  // Trusted certificates: of CAs or of the servers themselves. Empty: the CAs that this machine
  // trusts.
  std::string ca_file;
  // The client's certificate, followed by the intermediate certificates up to its CA. Servers ask
  // for it unless hbase.server.netty.tls.client.auth.mode says otherwise.
  std::string certificate_file;
  std::string key_file;  // empty: the key is in certificate_file, too
  // Whether a server's certificate must be for the host name that the cluster uses for the server.
  bool verify_host = true;

  bool operator==(const TlsOptions&) const = default;
};

struct ClientOptions {
  // "host:port,..." of some masters and region servers. One that is alive is enough to find the
  // rest.
  std::string addresses;
  // Not set: connections are not encrypted.
  std::optional<TlsOptions> tls;
  // Maps a server's address to the address to connect to, for instance the end of a tunnel. Not
  // set: the server's own address. Called on any of the client's threads. If it throws, the server
  // counts as unreachable.
  std::function<Address(const Address& server)> way = {};
  // The user name sent to servers; empty: HADOOP_USER_NAME, or else the user of the process.
  std::string user;
  // The time limit of a whole operation, including retries and the pauses between them.
  std::chrono::milliseconds operation_timeout{60'000};
  // The time limit of one try.
  std::chrono::milliseconds call_timeout{10'000};
  // The time limits of connecting and of the TLS handshake that follows. A look-up of the cluster
  // (Registry) allows each server two seconds at most, then tries the next one.
  std::chrono::milliseconds connect_timeout{1'000};
  std::chrono::milliseconds handshake_timeout{1'500};
  // The maximum number of calls in flight to one server. HBase's queue holds ten for each handler.
  int window = 64;
  // HBase's defaults.
  size_t max_request_bytes = 256 << 20;
  size_t max_answer_bytes = 256 << 20;
};

}  // namespace tamis::hbase
