#include "tamis/store/hbase_name.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <string_view>

#include "tamis/base/percent_encoding.h"
#include "tamis/hbase/server_name.h"
#include "tamis/hbase/site_file.h"

namespace tamis {
namespace {

constexpr std::array<std::string_view, 4> kTlsOptions = {"ca", "cert", "key", "verify-host"};
constexpr std::array<std::string_view, 7> kKerberosOptions = {
    "master-principal", "protection", "user", "keytab", "ticket-cache", "token-file", "fallback"};
constexpr std::array<std::string_view, 3> kOtherOptions = {"site", "tls", "server-principal"};
constexpr std::string_view kZooKeeperPort = "2181";

// Returns the text before the first `separator`; `text` keeps the rest.
std::string_view TakeUntil(char separator, std::string_view* text) {
  const size_t at = text->find(separator);
  const std::string_view taken = text->substr(0, at);
  *text = at == std::string_view::npos ? std::string_view() : text->substr(at + 1);
  return taken;
}

template <class Names>
bool IsIn(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// The options after a name: each with its value, and whether it was looked at.
class Options {
 public:
  // Returns why the text cannot be read; empty if it was.
  std::string Read(std::string_view text) {
    while (!text.empty()) {
      const std::string_view option = TakeUntil('&', &text);
      std::string_view rest = option;
      const std::string name(TakeUntil('=', &rest));
      if (!IsIn(kTlsOptions, name) && !IsIn(kKerberosOptions, name) && !IsIn(kOtherOptions, name)) {
        return "there is no option \"" + name +
               "\", only site, tls, ca, cert, key, verify-host, server-principal, "
               "master-principal, protection, user, keytab, ticket-cache, token-file and fallback";
      }
      const auto value = DecodePercents(rest);
      if (!value || value->empty()) {
        return "option \"" + std::string(option) + "\" has no value or an invalid %-escape";
      }
      if (!values_.emplace(name, *value).second) return "option \"" + name + "\" is given twice";
    }
    for (const char* name : {"tls", "verify-host"}) {
      if (Has(name) && values_[name] != "true" && values_[name] != "false") {
        return std::string(name) + " is true or false";
      }
    }
    return "";
  }

  bool Has(const std::string& name) const { return values_.contains(name); }
  std::string Get(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? "" : found->second;
  }
  template <class Names>
  bool HasAny(const Names& names) const {
    return std::ranges::any_of(names, [&](auto name) { return Has(std::string(name)); });
  }

 private:
  std::map<std::string, std::string> values_;
};

hbase::TlsOptions TlsOf(const Options& options) {
  return {.ca_file = options.Get("ca"),
          .certificate_file = options.Get("cert"),
          .key_file = options.Get("key"),
          .verify_host = options.Get("verify-host") != "false"};
}

Result<hbase::KerberosOptions> KerberosOf(const Options& options) {
  hbase::KerberosOptions kerberos{.region_server_principal = options.Get("server-principal"),
                                  .master_principal = options.Get("master-principal"),
                                  .protections = {},
                                  .keytab_file = options.Get("keytab"),
                                  .principal = options.Get("user"),
                                  .ticket_cache = options.Get("ticket-cache"),
                                  .token_file = options.Get("token-file")};
  if (options.Has("protection")) {
    TAMIS_ASSIGN_OR_RETURN(kerberos.protections,
                           hbase::ParseProtections(options.Get("protection")));
  }
  if (options.Has("fallback") && options.Get("fallback") != "simple") {
    return InvalidArgument("fallback must be \"simple\" or be left out");
  }
  kerberos.fallback_to_simple = options.Has("fallback");
  return kerberos;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The hbase-site.xml of a name without hosts; empty: none is named.
std::string SiteOf(const Options& options, bool has_hosts) {
  if (options.Has("site")) return options.Get("site");
  if (has_hosts) return "";
  if (std::string site = Variable("TAMIS_HBASE_SITE"); !site.empty()) return site;
  const std::string directory = Variable("HBASE_CONF_DIR");
  return directory.empty() ? "" : directory + "/hbase-site.xml";
}

// "zk1,zk2:2181" -> "zk1:2181,zk2:2181"
std::string WithPorts(std::string_view hosts) {
  std::string out;
  while (!hosts.empty()) {
    const std::string_view host = TakeUntil(',', &hosts);
    out.append(out.empty() ? "" : ",").append(host);
    if (host.find(':') == std::string_view::npos) out.append(":").append(kZooKeeperPort);
  }
  return out;
}

}  // namespace

Result<HBaseName> ParseHBaseName(const std::string& name) {
  const auto unreadable = [&](const std::string& why) {
    return InvalidArgument("cannot open store \"" + name + "\": " + why +
                           "; write hbase://HOST:PORT,...[/NAMESPACE][?tls=true&ca=FILE] or "
                           "hbase:///[NAMESPACE]?site=FILE");
  };
  std::string_view text = name;
  const std::string kind(TakeUntil(':', &text));
  if (!text.starts_with("//")) return unreadable("\"" + kind + ":\" must be followed by //");
  text.remove_prefix(2);
  std::string_view path = TakeUntil('?', &text);
  Options options;
  if (const std::string why = options.Read(text); !why.empty()) return unreadable(why);

  HBaseName parsed;
  hbase::ClientOptions& client = parsed.client;
  const bool has_path = path.find('/') != std::string_view::npos;
  const std::string hosts(TakeUntil('/', &path));
  std::string name_space(path);
  if (kind == "hbase+zk") {
    client.zookeeper = hbase::ZooKeeperOptions{.quorum = WithPorts(hosts)};
    const size_t slash = path.rfind('/');
    if (slash != std::string_view::npos || has_path) {
      client.zookeeper->parent = "/" + std::string(path.substr(0, slash));
      name_space = slash == std::string_view::npos ? "" : path.substr(slash + 1);
    }
    if (client.zookeeper->parent == "/") return unreadable("no znode is named behind the slash");
    if (!name_space.empty()) parsed.name_space = name_space;
  } else {
    client.addresses = hosts;
    if (has_path &&
        (name_space.find('/') != std::string::npos || (name_space.empty() && !hosts.empty()))) {
      return unreadable("no namespace is named behind the slash");
    }
    if (!name_space.empty()) parsed.name_space = name_space;
  }
  const std::string site = SiteOf(options, !hosts.empty());
  if (hosts.empty() && site.empty()) {
    return unreadable(
        "it names neither hosts nor a site, and neither TAMIS_HBASE_SITE nor HBASE_CONF_DIR is "
        "set");
  }
  if (!hosts.empty() || site.empty()) {
    const auto addresses =
        hbase::ParseAddresses(client.zookeeper ? client.zookeeper->quorum : client.addresses);
    if (!addresses.ok()) return unreadable(addresses.status().message());
  } else if (client.zookeeper) {
    return unreadable("no ZooKeeper is named");
  }

  if (options.Get("tls") == "true" || (!site.empty() && options.HasAny(kTlsOptions))) {
    client.tls = TlsOf(options);
  } else if (options.HasAny(kTlsOptions)) {
    return unreadable("ca, cert, key and verify-host are of no use without tls=true");
  }
  if (options.Has("server-principal") || (!site.empty() && options.HasAny(kKerberosOptions))) {
    auto kerberos = KerberosOf(options);
    if (!kerberos.ok()) return unreadable(kerberos.status().message());
    client.kerberos = *std::move(kerberos);
  } else if (options.HasAny(kKerberosOptions)) {
    return unreadable("the options of Kerberos are of no use without server-principal, or site");
  }
  if (!site.empty()) {
    const auto file = hbase::SiteFile::Read(site);
    if (!file.ok()) return file.status().WithContext("cannot open store \"" + name + "\"");
    auto completed = file->Complete(std::move(client));
    if (!completed.ok()) {
      return completed.status().WithContext("cannot open store \"" + name + "\"");
    }
    client = *std::move(completed);
  }
  if (client.kerberos && client.kerberos->keytab_file.empty() &&
      client.kerberos->token_file.empty()) {
    client.kerberos->token_file = Variable("HADOOP_TOKEN_FILE_LOCATION");
  }
  return parsed;
}

}  // namespace tamis
