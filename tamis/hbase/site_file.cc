#include "tamis/hbase/site_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <pugixml.hpp>
#include <system_error>
#include <utility>
#include <vector>

namespace tamis::hbase {
namespace {

// Hadoop has the same limit: a value that refers to itself is not expanded for ever.
constexpr int kMostExpansions = 20;
constexpr std::string_view kRegistry = "hbase.client.registry.impl";
constexpr std::string_view kQuorum = "hbase.zookeeper.quorum";
constexpr std::string_view kClientQuorum = "hbase.client.zookeeper.quorum";
constexpr std::string_view kServers = "hbase.client.bootstrap.servers";
constexpr std::string_view kMasters = "hbase.masters";

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// The parts between commas, without blanks.
std::vector<std::string> Parts(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view part = Trimmed(list.substr(0, comma));
    if (!part.empty()) parts.emplace_back(part);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return parts;
}

// "host1,host2:7" and a default port -> "host1:port,host2:7".
std::string WithPorts(std::string_view list, const std::string& port) {
  std::string addresses;
  for (const std::string& host : Parts(list)) {
    const bool has_port = host.find(':') != std::string::npos;
    addresses += (addresses.empty() ? "" : ",") + host + (has_port ? "" : ":" + port);
  }
  return addresses;
}

}  // namespace

Result<SiteFile> SiteFile::Read(const std::string& file) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  const std::string xml(std::istreambuf_iterator<char>(in), {});
  if (in.good() || in.eof()) return Parse(xml, file);
  return InvalidArgument("cannot read the settings of HBase in \"" + file +
                         "\": " + std::generic_category().message(errno));
}

Result<SiteFile> SiteFile::Parse(std::string_view xml, std::string file) {
  SiteFile site(std::move(file));
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(xml.data(), xml.size());
  const pugi::xml_node root = document.child("configuration");
  if (!parsed || !root) {
    return InvalidArgument("cannot read the settings of HBase in \"" + site.file_ + "\": " +
                           (parsed ? "it has no <configuration>"
                                   : std::string(parsed.description()) + ", at byte " +
                                         std::to_string(parsed.offset)));
  }
  for (const pugi::xml_node& node : root.children()) {
    const std::string_view name = node.name();
    // The included file's settings would be missing without a word.
    if (name.ends_with("include")) {
      return InvalidArgument("cannot read the settings of HBase in \"" + site.file_ +
                             "\": it includes \"" + node.attribute("href").value() +
                             "\"; write its settings into the file");
    }
    if (name != "property") continue;
    std::string key(Trimmed(node.child("name").text().get()));
    const std::string_view value = Trimmed(node.child("value").text().get());
    if (!key.empty()) site.settings_.insert_or_assign(std::move(key), std::string(value));
  }
  return site;
}

Status SiteFile::Fault(const std::string& name, const std::string& why) const {
  return InvalidArgument("cannot honor " + name + " in \"" + file_ + "\": " + why);
}

Result<std::optional<std::string>> SiteFile::Find(const std::string& name) const {
  const auto found = settings_.find(name);
  if (found == settings_.end() || found->second.empty()) return std::optional<std::string>();
  std::string value = found->second;
  for (int i = 0; i < kMostExpansions; ++i) {
    const size_t begin = value.find("${");
    const size_t end = value.find('}', begin);
    if (begin == std::string::npos || end == std::string::npos) return std::optional(value);
    const std::string variable = value.substr(begin + 2, end - begin - 2);
    const auto other = settings_.find(variable);
    if (other == settings_.end()) {
      return Fault(name, "it refers to ${" + variable + "}, which the file does not set");
    }
    value.replace(begin, end - begin + 1, other->second);
  }
  return Fault(name, "it refers to itself");
}

Result<std::string> SiteFile::Get(const std::string& name, std::string_view fallback) const {
  TAMIS_ASSIGN_OR_RETURN(const auto value, Find(name));
  return value ? *value : std::string(fallback);
}

Result<bool> SiteFile::GetSwitch(const std::string& name, bool fallback) const {
  TAMIS_ASSIGN_OR_RETURN(const std::string value, Get(name, fallback ? "true" : "false"));
  if (value == "true" || value == "false") return value == "true";
  return Fault(name, "\"" + value + "\" is neither true nor false");
}

Status SiteFile::GetTime(const std::string& name, std::chrono::milliseconds* time) const {
  TAMIS_ASSIGN_OR_RETURN(const auto value, Find(name));
  if (!value) return {};
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size() || number < 1) {
    return Fault(name, "\"" + *value + "\" is not a number of milliseconds");
  }
  *time = std::chrono::milliseconds(number);
  return {};
}

Result<std::string> SiteFile::GetPem(const std::string& name) const {
  TAMIS_ASSIGN_OR_RETURN(const std::string location, Get(name + ".location"));
  TAMIS_ASSIGN_OR_RETURN(std::string type, Get(name + ".type"));
  std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool is_pem = type.empty() ? location.ends_with(".pem") : type == "pem";
  if (location.empty() || is_pem) return location;
  return Fault(name + ".location", "\"" + location +
                                       "\" is not a PEM file; convert it (keytool, openssl), and "
                                       "give the result by the option ca, or cert and key");
}

Result<ClientOptions> SiteFile::Complete(ClientOptions options) const {
  TAMIS_RETURN_IF_ERROR(CompletePlace(&options));
  TAMIS_RETURN_IF_ERROR(CompleteTls(&options));
  TAMIS_RETURN_IF_ERROR(CompleteKerberos(&options));
  TAMIS_RETURN_IF_ERROR(GetTime("hbase.client.operation.timeout", &options.operation_timeout));
  TAMIS_RETURN_IF_ERROR(GetTime("hbase.rpc.timeout", &options.call_timeout));
  TAMIS_RETURN_IF_ERROR(
      GetTime("hbase.ipc.client.socket.timeout.connect", &options.connect_timeout));
  return options;
}

Status SiteFile::CompletePlace(ClientOptions* options) const {
  if (!options->addresses.empty() || options->zookeeper) return {};
  TAMIS_ASSIGN_OR_RETURN(const std::string registry, Get(std::string(kRegistry)));
  const std::string kind = registry.substr(registry.find_last_of('.') + 1);
  // Clients may have a ZooKeeper of their own.
  TAMIS_ASSIGN_OR_RETURN(std::string quorum, Get(std::string(kClientQuorum)));
  const bool is_for_clients = !quorum.empty();
  if (!is_for_clients) {
    TAMIS_ASSIGN_OR_RETURN(quorum, Get(std::string(kQuorum)));
  }
  if (kind == "MasterRegistry" || kind == "RpcConnectionRegistry" ||
      (kind.empty() && quorum.empty())) {
    return CompleteRpcRegistry(options);
  }
  if (!kind.empty() && kind != "ZKConnectionRegistry") {
    return Fault(std::string(kRegistry), "there is no registry \"" + registry +
                                             "\", only ZKConnectionRegistry, MasterRegistry and "
                                             "RpcConnectionRegistry");
  }
  if (quorum.empty()) return Fault(std::string(kQuorum), "it is not set");
  for (const char* secure :
       {"hbase.zookeeper.property.client.secure", "hbase.zookeeper.client.secure"}) {
    TAMIS_ASSIGN_OR_RETURN(const bool is_secure, GetSwitch(secure, false));
    if (is_secure) {
      return Fault(secure,
                   "Tamis connects to ZooKeeper without TLS only; name masters and region servers "
                   "instead, as hbase://HOST:PORT,...");
    }
  }
  const std::string port_name = "hbase.zookeeper.property.clientPort";
  TAMIS_ASSIGN_OR_RETURN(std::string port, Get(port_name, "2181"));
  if (is_for_clients) {
    TAMIS_ASSIGN_OR_RETURN(port, Get("hbase.client.zookeeper.property.clientPort", port));
  }
  TAMIS_ASSIGN_OR_RETURN(const std::string parent, Get("zookeeper.znode.parent", "/hbase"));
  if (parent.front() != '/') {
    return Fault("zookeeper.znode.parent", "\"" + parent + "\" does not begin with a slash");
  }
  options->zookeeper = ZooKeeperOptions{.quorum = WithPorts(quorum, port), .parent = parent};
  if (const auto addresses = ParseAddresses(options->zookeeper->quorum); !addresses.ok()) {
    return Fault(std::string(is_for_clients ? kClientQuorum : kQuorum),
                 addresses.status().message());
  }
  return {};
}

Status SiteFile::CompleteRpcRegistry(ClientOptions* options) const {
  std::string source(kServers);
  TAMIS_ASSIGN_OR_RETURN(std::string servers, Get(source));
  TAMIS_ASSIGN_OR_RETURN(const std::string registry, Get(std::string(kRegistry)));
  if (servers.empty() || registry.ends_with("MasterRegistry")) {
    source = kMasters;
    TAMIS_ASSIGN_OR_RETURN(servers, Get(source));
  }
  if (servers.empty()) {
    return InvalidArgument("cannot find HBase by \"" + file_ + "\": it sets neither " +
                           std::string(kQuorum) + " nor " + std::string(kServers) + " nor " +
                           std::string(kMasters));
  }
  TAMIS_ASSIGN_OR_RETURN(const std::string port, Get("hbase.master.port", "16000"));
  options->addresses = WithPorts(servers, port);
  const auto addresses = ParseAddresses(options->addresses);
  return addresses.ok() ? Status() : Fault(source, addresses.status().message());
}

Status SiteFile::CompleteTls(ClientOptions* options) const {
  TAMIS_ASSIGN_OR_RETURN(const bool has_tls, GetSwitch("hbase.client.netty.tls.enabled", false));
  if (!has_tls && !options->tls) return {};
  for (const char* check : {"hbase.rpc.tls.ocsp", "hbase.rpc.tls.clr"}) {
    TAMIS_ASSIGN_OR_RETURN(const bool is_on, GetSwitch(check, false));
    if (is_on) return Fault(check, "revoked certificates are not looked up");
  }
  TlsOptions tls = options->tls.value_or(TlsOptions());
  if (tls.ca_file.empty()) {
    TAMIS_ASSIGN_OR_RETURN(tls.ca_file, GetPem("hbase.rpc.tls.truststore"));
  }
  if (tls.certificate_file.empty()) {
    TAMIS_ASSIGN_OR_RETURN(tls.certificate_file, GetPem("hbase.rpc.tls.keystore"));
  }
  TAMIS_ASSIGN_OR_RETURN(const bool verify,
                         GetSwitch("hbase.client.netty.tls.verify.server.hostname", true));
  tls.verify_host = tls.verify_host && verify;
  options->tls = std::move(tls);
  return {};
}

Status SiteFile::CompleteKerberos(ClientOptions* options) const {
  const std::string authentication = "hbase.security.authentication";
  TAMIS_ASSIGN_OR_RETURN(std::string method, Get(authentication, "simple"));
  std::ranges::transform(method, method.begin(), [](unsigned char c) { return std::tolower(c); });
  if (method != "simple" && method != "kerberos") {
    return Fault(authentication, "there is no \"" + method + "\", only simple and kerberos");
  }
  if (method == "simple" && !options->kerberos) return {};
  TAMIS_ASSIGN_OR_RETURN(const std::string provider, Get("hbase.client.sasl.provider.class"));
  if (!provider.empty()) {
    return Fault("hbase.client.sasl.provider.class", "only Kerberos is there, not " + provider);
  }
  KerberosOptions kerberos = options->kerberos.value_or(KerberosOptions());
  const std::string region_server = "hbase.regionserver.kerberos.principal";
  const std::string master = "hbase.master.kerberos.principal";
  if (kerberos.region_server_principal.empty()) {
    TAMIS_ASSIGN_OR_RETURN(kerberos.region_server_principal, Get(region_server));
  }
  if (kerberos.master_principal.empty()) {
    TAMIS_ASSIGN_OR_RETURN(kerberos.master_principal, Get(master));
  }
  if (kerberos.region_server_principal.empty()) {
    return Fault(region_server, "it is not set, and the cluster has Kerberos");
  }
  if (kerberos.protections.empty()) {
    const std::string protection = "hbase.rpc.protection";
    TAMIS_ASSIGN_OR_RETURN(const std::string list, Get(protection));
    auto protections = ParseProtections(list);
    if (!list.empty() && !protections.ok())
      return Fault(protection, protections.status().message());
    if (protections.ok()) kerberos.protections = *std::move(protections);
  }
  if (kerberos.keytab_file.empty() && kerberos.principal.empty() && kerberos.ticket_cache.empty()) {
    TAMIS_ASSIGN_OR_RETURN(kerberos.keytab_file, Get("hbase.client.keytab.file"));
    TAMIS_ASSIGN_OR_RETURN(kerberos.principal, Get("hbase.client.keytab.principal"));
  }
  TAMIS_ASSIGN_OR_RETURN(
      const bool no_reverse_dns,
      GetSwitch("hbase.unsafe.client.kerberos.hostname.disable.reversedns", false));
  kerberos.reverse_dns = kerberos.reverse_dns && !no_reverse_dns;
  options->kerberos = std::move(kerberos);
  return {};
}

}  // namespace tamis::hbase
