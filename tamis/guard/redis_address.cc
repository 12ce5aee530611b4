#include "tamis/guard/redis_address.h"

#include <charconv>
#include <optional>

#include "tamis/base/percent_encoding.h"

namespace tamis {
namespace {

std::optional<int> ParseNumber(std::string_view text, int greatest) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  if (number < 0 || number > greatest) return {};
  return number;
}

bool Remove(std::string_view prefix, std::string_view* text) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

// "HOST:PORT/DATABASE"
bool ParseNetwork(std::string_view rest, RedisAddress* address) {
  if (const size_t slash = rest.find('/'); slash != rest.npos) {
    if (slash + 1 < rest.size()) {
      const auto database = ParseNumber(rest.substr(slash + 1), 1 << 30);
      if (!database) return false;
      address->database = *database;
    }
    rest = rest.substr(0, slash);
  }
  std::string_view port;
  if (Remove("[", &rest)) {  // an IPv6 address has colons
    const size_t end = rest.find(']');
    if (end == rest.npos) return false;
    port = rest.substr(end + 1);
    rest = rest.substr(0, end);
  } else if (const size_t colon = rest.find(':'); colon != rest.npos) {
    port = rest.substr(colon);
    rest = rest.substr(0, colon);
  }
  address->host = rest;
  if (port.empty()) return !rest.empty();
  const auto number = Remove(":", &port) ? ParseNumber(port, 65535) : std::nullopt;
  if (!number) return false;
  address->port = *number;
  return !rest.empty();
}

// "/PATH?db=DATABASE"
bool ParseSocket(std::string_view rest, RedisAddress* address) {
  if (const size_t question = rest.find('?'); question != rest.npos) {
    std::string_view query = rest.substr(question + 1);
    const auto database = Remove("db=", &query) ? ParseNumber(query, 1 << 30) : std::nullopt;
    if (!database) return false;
    address->database = *database;
    rest = rest.substr(0, question);
  }
  const auto path = DecodePercents(rest);
  if (!path || !path->starts_with('/')) return false;
  address->socket = *path;
  return true;
}

bool ParseLogin(std::string_view login, RedisAddress* address) {
  const size_t colon = login.find(':');
  const auto user = DecodePercents(login.substr(0, colon));
  const auto password =
      DecodePercents(colon == login.npos ? std::string_view() : login.substr(colon + 1));
  if (!user || !password) return false;
  address->user = *user;
  address->password = *password;
  return true;
}

}  // namespace

Result<RedisAddress> RedisAddress::Parse(std::string_view url) {
  // The wrong part may be the password, so it is not shown.
  const Status wrong = InvalidArgument(
      "cannot read the URL of the Redis server: it is "
      "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE] or "
      "unix://[[USER]:PASSWORD@]/PATH[?db=DATABASE]");
  if (url.starts_with("rediss://") || url.starts_with("valkeys://")) {
    return InvalidArgument(
        "cannot connect to Redis by TLS: the client library of Debian 12 does not speak it; use a "
        "tunnel (stunnel) or a socket");
  }
  RedisAddress address;
  std::string_view rest = url;
  const bool unix = Remove("unix://", &rest);
  if (!unix && !Remove("redis://", &rest) && !Remove("valkey://", &rest)) return wrong;
  if (const size_t at = rest.substr(0, rest.find('/')).rfind('@'); at != rest.npos) {
    if (!ParseLogin(rest.substr(0, at), &address)) return wrong;
    rest.remove_prefix(at + 1);
  }
  if (unix ? !ParseSocket(rest, &address) : !ParseNetwork(rest, &address)) return wrong;
  return address;
}

std::string RedisAddress::ToString() const {
  if (host.empty()) return "unix://" + socket;
  const bool colons = host.find(':') != host.npos;
  return "redis://" + (colons ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace tamis
