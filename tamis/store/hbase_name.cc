#include "tamis/store/hbase_name.h"

#include <set>
#include <string_view>

#include "tamis/base/percent_encoding.h"
#include "tamis/hbase/server_name.h"

namespace tamis {
namespace {

// Returns the text before the first `separator`; `text` keeps the rest.
std::string_view TakeUntil(char separator, std::string_view* text) {
  const size_t at = text->find(separator);
  const std::string_view taken = text->substr(0, at);
  *text = at == std::string_view::npos ? std::string_view() : text->substr(at + 1);
  return taken;
}

// Why the option cannot be taken; empty when it was. `seen`: the names of those before it.
std::string SetOption(std::string_view option, std::set<std::string>* seen, bool* tls,
                      hbase::TlsOptions* options) {
  std::string_view text = option;
  const std::string name(TakeUntil('=', &text));
  if (!seen->insert(name).second) return "option \"" + name + "\" is there twice";
  const auto value = DecodePercents(text);
  if (!value || value->empty()) return "option \"" + std::string(option) + "\" has no good value";
  const auto set_switch = [&](bool* on) -> std::string {
    if (*value != "true" && *value != "false") return name + " is true or false";
    *on = *value == "true";
    return "";
  };
  if (name == "tls") return set_switch(tls);
  if (name == "verify-host") return set_switch(&options->verify_host);
  std::string* file = nullptr;
  if (name == "ca") file = &options->ca_file;
  if (name == "cert") file = &options->certificate_file;
  if (name == "key") file = &options->key_file;
  if (file == nullptr) {
    return "there is no option \"" + name + "\", only tls, ca, cert, key and verify-host";
  }
  *file = *value;
  return "";
}

}  // namespace

Result<HBaseName> ParseHBaseName(const std::string& name) {
  constexpr std::string_view kPrefix = "hbase://";
  const auto unreadable = [&](const std::string& why) {
    return InvalidArgument("cannot open store \"" + name + "\": " + why +
                           "; write hbase://HOST:PORT,...[/NAMESPACE][?tls=true&ca=FILE]");
  };
  if (!name.starts_with(kPrefix)) return unreadable("two slashes follow on \"hbase:\"");
  std::string_view text = std::string_view(name).substr(kPrefix.size());
  std::string_view place = TakeUntil('?', &text);
  std::string_view options = text;

  HBaseName parsed;
  const bool has_namespace = place.find('/') != std::string_view::npos;
  parsed.addresses = TakeUntil('/', &place);
  if (has_namespace) {
    parsed.name_space = place;
    if (parsed.name_space.empty() || parsed.name_space.find('/') != std::string::npos) {
      return unreadable("no namespace is named behind the slash");
    }
  }
  const auto addresses = hbase::ParseAddresses(parsed.addresses);
  if (!addresses.ok()) return unreadable(addresses.status().message());

  std::set<std::string> seen;
  bool has_tls = false;
  hbase::TlsOptions tls;
  while (!options.empty()) {
    const std::string why = SetOption(TakeUntil('&', &options), &seen, &has_tls, &tls);
    if (!why.empty()) return unreadable(why);
  }
  seen.erase("tls");
  if (has_tls) {
    parsed.tls = tls;
  } else if (!seen.empty()) {
    return unreadable("the other options are of no use without tls=true");
  }
  return parsed;
}

}  // namespace tamis
