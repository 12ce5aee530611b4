#include "tamis/hbase/digest_mechanism.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "tamis/base/coding.h"

namespace tamis::hbase {
namespace {

constexpr std::string_view kUri = "null/default";
constexpr std::string_view kNoBody = ":00000000000000000000000000000000";
constexpr std::string_view kCipher = "3des";
constexpr size_t kMacBytes = 10;
constexpr size_t kTailBytes = 6;  // int16 1 | int32 sequence
constexpr size_t kBlockBytes = 8;
constexpr size_t kDesKeyBytes = 7;
// The largest piece that both sides accept unless one of them says otherwise, less what is added.
constexpr size_t kMaxPieceBytes = 65536 - kMacBytes - kTailBytes - kBlockBytes;

std::string Md5(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_md5(), nullptr);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

std::string Hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const unsigned char c : bytes) {
    hex += kDigits[c >> 4];
    hex += kDigits[c & 15];
  }
  return hex;
}

std::string Mac(const std::string& key, uint32_t sequence, std::string_view bytes) {
  std::string input;
  PutBig32(&input, sequence);
  input += bytes;
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac;
  unsigned size = 0;
  HMAC(EVP_md5(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(input.data()), input.size(), mac.data(), &size);
  return {reinterpret_cast<const char*>(mac.data()), kMacBytes};
}

std::string Tail(uint32_t sequence) {
  std::string tail("\0\1", 2);
  PutBig32(&tail, sequence);
  return tail;
}

bool AreEqual(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

// Parses `name=value,name="value"`; nothing if it is something else.
std::optional<std::map<std::string, std::string>> ParseDirectives(std::string_view text) {
  std::map<std::string, std::string> directives;
  while (!text.empty()) {
    if (text.front() == ',' || text.front() == ' ') {
      text.remove_prefix(1);
      continue;
    }
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) return {};
    const std::string name(text.substr(0, equals));
    text.remove_prefix(equals + 1);
    std::string value;
    if (text.starts_with('"')) {
      size_t at = 1;
      for (; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\' && ++at == text.size()) return {};
        value += text[at];
      }
      if (at == text.size()) return {};
      text.remove_prefix(at + 1);
    } else {
      value = text.substr(0, text.find(','));
      text.remove_prefix(value.size());
    }
    directives.insert_or_assign(name, std::move(value));
  }
  return directives;
}

bool HasWord(std::string_view list, std::string_view word) {
  for (std::string_view rest = list; !rest.empty();) {
    const size_t comma = rest.find(',');
    std::string one(rest.substr(0, comma));
    std::erase(one, ' ');
    if (one == word) return true;
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return false;
}

std::string_view QopOf(Protection protection) {
  switch (protection) {
    case Protection::kAuthentication:
      return "auth";
    case Protection::kIntegrity:
      return "auth-int";
    case Protection::kPrivacy:
      return "auth-conf";
  }
  return "";
}

// 56 bits of key, seven in each byte; DES ignores the eighth.
std::string DesKey(std::string_view bytes) {
  uint64_t bits = 0;
  for (const unsigned char c : bytes.substr(0, kDesKeyBytes)) bits = bits << 8 | c;
  std::string key;
  for (int shift = 49; shift >= 0; shift -= 7) {
    key += static_cast<char>((bits >> shift & 0x7f) << 1);
  }
  return key;
}

// Runs the cipher over whole blocks; the next call goes on from there.
bool Cipher(EVP_CIPHER_CTX* cipher, std::string* bytes) {
  int size = 0;
  auto* data = reinterpret_cast<unsigned char*>(bytes->data());
  return EVP_CipherUpdate(cipher, data, &size, data, static_cast<int>(bytes->size())) == 1 &&
         static_cast<size_t>(size) == bytes->size();
}

}  // namespace

Result<SaslMechanism::Answer> DigestMechanism::Next(std::string_view challenge) {
  if (server_proof_.empty()) {
    TAMIS_ASSIGN_OR_RETURN(std::string response, Respond(challenge));
    return Answer{.token = std::move(response)};
  }
  const auto directives = ParseDirectives(challenge);
  const auto proof = directives ? directives->find("rspauth") : decltype(directives->find(""))();
  if (!directives || proof == directives->end() || !AreEqual(proof->second, server_proof_)) {
    return FailedPrecondition("the server does not prove that it knows the token");
  }
  return Answer{.token = {}, .is_last = true};
}

Result<std::string> DigestMechanism::Respond(std::string_view challenge) {
  const auto directives = ParseDirectives(challenge);
  if (!directives || !directives->contains("nonce")) {
    return DataLoss("the server's challenge is not one of DIGEST-MD5");
  }
  const auto get = [&](const std::string& name, const std::string& fallback) {
    const auto found = directives->find(name);
    return found == directives->end() ? fallback : found->second;
  };
  const std::string offer = get("qop", "auth");
  const auto chosen = std::ranges::find_if(options_.protections, [&](Protection one) {
    return HasWord(offer, QopOf(one)) &&
           (one != Protection::kPrivacy || HasWord(get("cipher", ""), kCipher));
  });
  if (chosen == options_.protections.end()) {
    return FailedPrecondition(
        "the server offers the protection " + offer +
        ", which this client does not accept: hbase.rpc.protection must agree");
  }
  layer_ = *chosen;
  const std::string realm = get("realm", "default");
  const std::string nonce = get("nonce", "");
  const std::string qop(QopOf(layer_));
  session_key_ = Md5(Md5(options_.user + ":" + realm + ":" + options_.password) + ":" + nonce +
                     ":" + options_.client_nonce);
  const auto response = [&](std::string_view verb) {
    const std::string body =
        std::string(verb) + ":" + std::string(kUri) + std::string(wraps() ? kNoBody : "");
    return Hex(Md5(Hex(session_key_) + ":" + nonce + ":00000001:" + options_.client_nonce + ":" +
                   qop + ":" + Hex(Md5(body))));
  };
  server_proof_ = response("");
  TAMIS_RETURN_IF_ERROR(Prepare(&out_, "client", "server", true));
  TAMIS_RETURN_IF_ERROR(Prepare(&in_, "server", "client", false));
  return "charset=utf-8,username=\"" + options_.user + "\",realm=\"" + realm + "\",nonce=\"" +
         nonce + "\",nc=00000001,cnonce=\"" + options_.client_nonce + "\",digest-uri=\"" +
         std::string(kUri) + "\",maxbuf=65536,response=" + response("AUTHENTICATE") +
         ",qop=" + qop +
         (layer_ == Protection::kPrivacy ? ",cipher=\"" + std::string(kCipher) + "\"" : "");
}

Status DigestMechanism::Prepare(Direction* direction, std::string_view from, std::string_view to,
                                bool encrypts) {
  const std::string way = std::string(from) + "-to-" + std::string(to);
  direction->signing_key =
      Md5(session_key_ + "Digest session key to " + way + " signing key magic constant");
  if (layer_ != Protection::kPrivacy) return {};
  const std::string key =
      Md5(session_key_ + "Digest H(A1) to " + way + " sealing key magic constant");
  const std::string des = DesKey(key) + DesKey(key.substr(kDesKeyBytes));
  direction->cipher.reset(EVP_CIPHER_CTX_new());
  const bool is_ready =
      direction->cipher &&
      EVP_CipherInit_ex(direction->cipher.get(), EVP_des_ede_cbc(), nullptr,
                        reinterpret_cast<const unsigned char*>(des.data()),
                        reinterpret_cast<const unsigned char*>(key.data()) + kBlockBytes,
                        encrypts ? 1 : 0) == 1 &&
      EVP_CIPHER_CTX_set_padding(direction->cipher.get(), 0) == 1;
  return is_ready ? Status()
                  : FailedPrecondition("OpenSSL has no 3DES here, which tokens need for privacy");
}

size_t DigestMechanism::max_piece_bytes() const { return kMaxPieceBytes; }

// piece = bytes | MAC | tail, with privacy: cipher(bytes | padding | MAC) | tail
Result<std::string> DigestMechanism::Wrap(std::string_view bytes) {
  const std::string mac = Mac(out_.signing_key, out_.sequence, bytes);
  std::string piece(bytes);
  if (layer_ == Protection::kPrivacy) {
    const size_t padding = kBlockBytes - (bytes.size() + kMacBytes) % kBlockBytes;
    piece.append(padding, static_cast<char>(padding));
  }
  piece += mac;
  if (layer_ == Protection::kPrivacy && !Cipher(out_.cipher.get(), &piece)) {
    return Internal("cannot encrypt");
  }
  return piece + Tail(out_.sequence++);
}

Result<std::string> DigestMechanism::Unwrap(std::string_view piece) {
  const Status fault = DataLoss("the server sends bytes that are not protected as agreed");
  if (piece.size() < kMacBytes + kTailBytes) return fault;
  if (piece.substr(piece.size() - kTailBytes) != Tail(in_.sequence)) return fault;
  std::string plain(piece.substr(0, piece.size() - kTailBytes));
  size_t padding = 0;
  if (layer_ == Protection::kPrivacy) {
    if (plain.size() % kBlockBytes != 0 || plain.size() < kMacBytes + 1 ||
        !Cipher(in_.cipher.get(), &plain)) {
      return fault;
    }
    padding = static_cast<unsigned char>(plain[plain.size() - kMacBytes - 1]);
    if (padding < 1 || padding > kBlockBytes || plain.size() < kMacBytes + padding) return fault;
  }
  const std::string mac = plain.substr(plain.size() - kMacBytes);
  plain.resize(plain.size() - kMacBytes - padding);
  if (!AreEqual(mac, Mac(in_.signing_key, in_.sequence, plain))) return fault;
  ++in_.sequence;
  return plain;
}

}  // namespace tamis::hbase
