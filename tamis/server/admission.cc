#include "tamis/server/admission.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "tamis/server/problem.h"

namespace tamis::server {
namespace {

// "[::1]:80" -> "[::1]", "a:80" -> "a".
std::string_view WithoutPort(std::string_view host) {
  const size_t colon = host.rfind(':');
  if (colon == std::string_view::npos || host.find(']', colon) != std::string_view::npos) {
    return host;
  }
  return host.substr(0, colon);
}

std::array<unsigned char, SHA256_DIGEST_LENGTH> Digest(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

}  // namespace

Admission::Admission(std::vector<std::string> hosts, std::string token)
    : hosts_(std::move(hosts)), token_(std::move(token)) {
  hosts_.insert(hosts_.end(), {"localhost", "127.0.0.1", "[::1]"});
}

bool Admission::IsOurHost(const std::string& host_and_port) const {
  const std::string host(WithoutPort(host_and_port));
  return std::ranges::any_of(
      hosts_, [&](const std::string& ours) { return strcasecmp(ours.c_str(), host.c_str()) == 0; });
}

// Digests of one length, so that the time of the comparison tells nothing.
bool Admission::HasToken(const std::string& authorization) const {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size() ||
      strncasecmp(authorization.c_str(), kScheme.data(), kScheme.size()) != 0) {
    return false;
  }
  const auto given = Digest(std::string_view(authorization).substr(kScheme.size()));
  const auto wanted = Digest(token_);
  return CRYPTO_memcmp(given.data(), wanted.data(), given.size()) == 0;
}

std::optional<Response> Admission::Refuse(const Request& request, bool is_open) const {
  const std::string host = request.Header("host");
  if (!IsOurHost(host)) {
    return Problem(421, InvalidArgument("\"" + host +
                                        "\" is no name of this server; start it with --host-name "
                                        "for each name that clients use"));
  }
  const std::string origin = request.Header("origin");
  if (!origin.empty()) {
    const size_t at = origin.find("://");
    const std::string site = at == std::string::npos ? origin : origin.substr(at + 3);
    if (strcasecmp(site.c_str(), host.c_str()) != 0) {
      return Problem(403,
                     InvalidArgument("requests from pages of \"" + origin +
                                     "\" are refused; only this server's own pages may ask it"));
    }
  }
  const std::string encoding = request.Header("content-encoding");
  if (!encoding.empty() && strcasecmp(encoding.c_str(), "identity") != 0) {
    return Problem(415, InvalidArgument("a body with Content-Encoding: " + encoding +
                                        " is not read; send it as it is"));
  }
  if (is_open || token_.empty() || HasToken(request.Header("authorization"))) return std::nullopt;
  Response refusal = Problem(
      401,
      InvalidArgument("this server needs a token: send \"Authorization: Bearer TOKEN\" with the "
                      "content of its --token-file"));
  refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
  return refusal;
}

}  // namespace tamis::server
