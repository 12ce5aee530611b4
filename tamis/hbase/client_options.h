// The options of a client: addresses, security, timeouts, limits.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
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

// How a connection is protected after the Kerberos handshake (hbase.rpc.protection).
enum class Protection {
  kAuthentication,  // not at all
  kIntegrity,       // against changes
  kPrivacy,         // against changes and readers
};

// Reads "privacy,authentication". kInvalidArgument names the word that is no protection.
Result<std::vector<Protection>> ParseProtections(std::string_view list);

// Kerberos as in HBase (hbase.security.authentication=kerberos). The realm and its KDCs are those
// of krb5.conf.
struct KerberosOptions {
  // The servers' principals, "service/host@REALM". The host _HOST stands for the server's own.
  std::string region_server_principal;
  std::string master_principal;  // empty: the region servers'
  // The acceptable protections, preferred first. Empty: any, the strongest first.
  std::vector<Protection> protections;
  // The user logs in with this keytab, again before each ticket expires. Empty: with the tickets
  // of the ticket cache (kinit).
  std::string keytab_file;
  std::string principal;     // the user's; empty: the first one of the keytab, or the cache's
  std::string ticket_cache;  // "FILE:/tmp/krb5cc_0"; empty: KRB5CCNAME or the system's default
  // A file of Hadoop's delegation tokens. If it has one of HBase, that is used instead of tickets.
  std::string token_file = {};
  // Whether _HOST is the name that DNS has for the server's IP address. Otherwise it is the name by
  // which the cluster knows the server.
  bool reverse_dns = true;
  // Whether a server without security may be used, too. It sees what the client sends, and anyone
  // can pretend to be it.
  bool fallback_to_simple = false;

  bool operator==(const KerberosOptions&) const = default;
};

// The servers of a ZooKeeper that knows where HBase is.
struct ZooKeeperOptions {
  std::string quorum;             // "host:port,..."
  std::string parent = "/hbase";  // zookeeper.znode.parent

  bool operator==(const ZooKeeperOptions&) const = default;
};

struct ClientOptions {
  // "host:port,..." of some masters and region servers. One that is alive is enough to find the
  // rest.
  std::string addresses;
  // Set: `addresses` is not used; ZooKeeper knows the servers.
  std::optional<ZooKeeperOptions> zookeeper = {};
  // Not set: connections are not encrypted, unless `kerberos` says so.
  std::optional<TlsOptions> tls;
  // Not set: the client names its user, without proof (hbase.security.authentication=simple).
  std::optional<KerberosOptions> kerberos = {};
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
