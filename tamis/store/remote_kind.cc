// A store behind `tamis serve`:
//
//   http://HOST[:PORT][?OPTION=VALUE&...], https://...
//
//   token-file=FILE   the token of the server is the first line of the file; without it, that of
//                     $TAMIS_TOKEN_FILE
//   ca=FILE           PEM: the trusted authorities; without it, those of the machine
//   cert=FILE         PEM: the certificate that the client shows, and its key if there is no
//   key=FILE timeout=SECONDS   for writes and calls that do not say how long they may take; 30
//   without it
//
// In a value %XX is the byte XX.
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <map>

#include "tamis/base/percent_encoding.h"
#include "tamis/remote/remote_coordinator.h"
#include "tamis/store/store_kind.h"

namespace tamis {
namespace {

constexpr std::string_view kForm =
    "http://HOST[:PORT][?token-file=FILE&ca=FILE&cert=FILE&key=FILE&timeout=SECONDS]";

struct RemoteName {
  HttpClient::Options client;
  std::string token_file;
  Duration timeout = std::chrono::seconds(30);
};

Status Wrong(const std::string& name, const std::string& why) {
  return InvalidArgument("cannot open store \"" + name + "\": " + why + "; write " +
                         std::string(kForm));
}

Status SetOption(const std::string& name, const std::string& option, RemoteName* remote) {
  const size_t equals = option.find('=');
  const std::string key = option.substr(0, equals);
  const auto value = equals == std::string::npos
                         ? std::nullopt
                         : DecodePercents(std::string_view(option).substr(equals + 1));
  if (!value || value->empty()) {
    return Wrong(name, "option \"" + option + "\" has no value or an invalid %-escape");
  }
  if (key == "token-file") {
    remote->token_file = *value;
  } else if (key == "ca") {
    remote->client.ca_file = *value;
  } else if (key == "cert") {
    remote->client.cert_file = *value;
  } else if (key == "key") {
    remote->client.key_file = *value;
  } else if (key == "timeout") {
    uint32_t seconds = 0;
    const char* const end = value->data() + value->size();
    const auto [last, error] = std::from_chars(value->data(), end, seconds);
    if (error != std::errc() || last != end || seconds == 0) {
      return Wrong(name, "timeout must be a whole number of seconds above 0");
    }
    remote->timeout = std::chrono::seconds(seconds);
  } else {
    return Wrong(name, "there is no option \"" + key + "\"");
  }
  return Status::Ok();
}

Result<RemoteName> ParseName(const std::string& name) {
  RemoteName remote;
  const size_t mark = name.find('?');
  remote.client.url = name.substr(0, mark);
  while (remote.client.url.ends_with('/')) remote.client.url.pop_back();
  const size_t host = remote.client.url.find("://");
  if (host == std::string::npos || host + 3 >= remote.client.url.size()) {
    return Wrong(name, "it names no server");
  }
  // A password in the name would be visible to every user that sees the command line.
  if (remote.client.url.find_first_of("@#", host) != std::string::npos ||
      remote.client.url.find('/', host + 3) != std::string::npos) {
    return Wrong(name, "it has more than a host and a port");
  }
  std::string rest = mark == std::string::npos ? "" : name.substr(mark + 1);
  while (!rest.empty()) {
    const size_t end = rest.find('&');
    TAMIS_RETURN_IF_ERROR(SetOption(name, rest.substr(0, end), &remote));
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  if (!remote.client.key_file.empty() && remote.client.cert_file.empty()) {
    return Wrong(name, "it has a key and no certificate");
  }
  const char* const token_file = std::getenv("TAMIS_TOKEN_FILE");
  if (remote.token_file.empty() && token_file != nullptr) remote.token_file = token_file;
  return remote;
}

Result<std::string> ReadToken(const std::string& file) {
  std::ifstream in(file);
  std::string token;
  if (!std::getline(in, token)) {
    return InvalidArgument("cannot read the server's token from \"" + file + "\"");
  }
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
  for (const char c : token) {
    if (c <= ' ' || c > '~') {
      return InvalidArgument("the token in \"" + file + "\" has characters that are no token's");
    }
  }
  return token;
}

Status OpenRemote(const std::string& name, const OpenedStore::Options& /*options*/,
                  Executor* executor, OpenedKind* opened) {
  TAMIS_ASSIGN_OR_RETURN(RemoteName remote, ParseName(name));
  if (!remote.token_file.empty()) {
    TAMIS_ASSIGN_OR_RETURN(remote.client.token, ReadToken(remote.token_file));
  }
  TAMIS_ASSIGN_OR_RETURN(const std::shared_ptr<HttpClient> client, HttpClient::Make(remote.client));
  auto cluster = RemoteCluster::Open(client, executor, remote.timeout);
  if (!cluster.ok()) return cluster.status().WithContext("cannot open store \"" + name + "\"");
  opened->name = remote.client.url;
  opened->cluster = *cluster;
  opened->admin = *cluster;
  opened->coordinator =
      std::make_unique<RemoteCoordinator>(client, *cluster, executor, remote.timeout);
  return Status::Ok();
}

Result<std::string> RemoteIdentity(const std::string& name,
                                   const OpenedStore::Options& /*options*/) {
  return name;
}

}  // namespace

constinit const StoreKind kRemoteKind = {
    .prefix = "http", .form = kForm, .open = OpenRemote, .identity = RemoteIdentity};
constinit const StoreKind kSecureRemoteKind = {.prefix = "https",
                                               .form = "the same with https://",
                                               .open = OpenRemote,
                                               .identity = RemoteIdentity};

}  // namespace tamis
