// Any input decodes to a reply of the SASL exchange, to the plain bytes of a wrapped stream, to the
// tokens of a file, or to an error, using bounded memory. No input passes for a server that knows
// the password of DIGEST-MD5.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tamis/hbase/digest_mechanism.h"
#include "tamis/hbase/sasl_reply.h"
#include "tamis/hbase/testing/masking_mechanism.h"
#include "tamis/hbase/token_file.h"
#include "tamis/hbase/wrapped_reader.h"

namespace {

using namespace tamis::hbase;  // NOLINT(google-build-using-namespace)

constexpr size_t kMaxPiece = 1 << 16;

void ReadReplies(std::string_view bytes) {
  // Every prefix is incomplete, or decodes to the same reply.
  const auto whole = ParseSaslReply(bytes);
  for (size_t size = 0; size < std::min<size_t>(bytes.size(), 64); ++size) {
    const auto part = ParseSaslReply(bytes.substr(0, size));
    if (!part.ok() && whole.ok()) std::abort();
    if (part.ok() && *part && (!whole.ok() || !*whole || (*whole)->size != (*part)->size)) {
      std::abort();
    }
  }
  if (!whole.ok() || !*whole) return;
  const SaslReply& reply = **whole;
  if (reply.size > bytes.size()) std::abort();
  if (reply.token.size() + reply.class_name.size() + reply.message.size() > reply.size) {
    std::abort();
  }
}

void ReadPieces(std::string_view bytes) {
  WrappedReader reader(kMaxPiece);
  MaskingMechanism mechanism(0, true);
  size_t plain_bytes = 0;
  for (std::string_view rest = bytes; !rest.empty();) {
    const auto space = reader.Space();
    const size_t step = std::min({rest.size(), space.size(), size_t{1000}});
    std::memcpy(space.data(), rest.data(), step);
    reader.Commit(step);
    rest.remove_prefix(step);
    while (true) {
      const auto plain = reader.Next(&mechanism);
      if (!plain.ok()) return;
      if (!*plain) break;
      plain_bytes += (*plain)->size();
    }
    if (reader.capacity() > 4 * kMaxPiece) std::abort();
  }
  if (plain_bytes > bytes.size()) std::abort();
}

void ReadDigest(std::string_view bytes) {
  // The first line is the challenge, the rest is the server's proof and then a piece.
  const size_t end = bytes.find('\n');
  DigestMechanism mechanism(
      {.user = "user",
       .password = "password",
       .protections = {Protection::kPrivacy, Protection::kIntegrity, Protection::kAuthentication},
       .client_nonce = "nonce"});
  if (!mechanism.Next(bytes.substr(0, end)).ok() || end == std::string_view::npos) return;
  const std::string_view rest = bytes.substr(end + 1);
  // No input has the server's proof, or a piece with its key.
  if (mechanism.Next(rest).ok()) std::abort();
  if (mechanism.wraps() && mechanism.Unwrap(rest).ok()) std::abort();
}

void ReadTokenFile(std::string_view bytes) {
  const auto tokens = ParseTokens(bytes);
  if (!tokens.ok()) return;
  size_t sum = 0;
  for (const DelegationToken& token : *tokens) {
    sum += token.identifier.size() + token.password.size() + token.kind.size();
    const auto facts = FactsOf(token);
    if (facts.ok() && facts->user.size() > token.identifier.size()) std::abort();
  }
  if (sum > bytes.size()) std::abort();
  const auto again = ParseTokens(FormatTokens(*tokens));
  if (!again.ok() || *again != *tokens) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ReadReplies(bytes);
  ReadPieces(bytes);
  ReadDigest(bytes);
  ReadTokenFile(bytes);
  return 0;
}
