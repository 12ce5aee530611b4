#include "tamis/hbase/token_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <system_error>

#include "tamis/base/coding.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

constexpr std::string_view kMagic = "HDTS";

// WritableUtils.readVInt; a negative number is read as 0.
uint64_t TakeVint(Reader* reader) {
  const auto first = static_cast<int8_t>(reader->Byte());
  if (first >= -112) return first < 0 ? 0 : static_cast<uint64_t>(first);
  const int size = first < -120 ? -first - 120 : -first - 112;
  uint64_t value = 0;
  for (int i = 0; i < size; ++i) value = value << 8 | reader->Byte();
  return first < -120 ? 0 : value;
}

// WritableUtils.writeVLong, of numbers that are not negative.
void PutVint(std::string* out, uint64_t value) {
  if (value <= 127) return out->push_back(static_cast<char>(value));
  int size = 1;
  while (value >> (8 * size) != 0) ++size;
  out->push_back(static_cast<char>(-112 - size));
  while (--size >= 0) out->push_back(static_cast<char>(value >> (8 * size)));
}

void PutText(std::string* out, std::string_view text) {
  PutVint(out, text.size());
  out->append(text);
}

std::string Failure(const std::string& file) {
  return "cannot write the tokens to \"" + file + "\": " + std::generic_category().message(errno);
}

std::string TakeBytes(Reader* reader) { return std::string(reader->Bytes(TakeVint(reader))); }

}  // namespace

Result<std::vector<DelegationToken>> ParseTokens(std::string_view bytes) {
  Reader reader(bytes);
  if (reader.Bytes(kMagic.size()) != kMagic) {
    return DataLoss("it does not begin as a file of Hadoop's tokens");
  }
  if (const uint8_t version = reader.Byte(); version != 0) {
    return DataLoss("it has the format " + std::to_string(version) +
                    " of Hadoop's tokens, and only format 0 (writable) can be read");
  }
  std::vector<DelegationToken> tokens;
  const uint64_t count = TakeVint(&reader);
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    TakeBytes(&reader);  // the alias
    DelegationToken token;
    token.identifier = TakeBytes(&reader);
    token.password = TakeBytes(&reader);
    token.kind = TakeBytes(&reader);
    token.service = TakeBytes(&reader);
    tokens.push_back(std::move(token));
  }
  if (!reader.ok()) return DataLoss("it ends in the middle of a token");
  return tokens;
}

Result<std::vector<DelegationToken>> ReadTokens(const std::string& file) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  if (!in.good() && !in.eof()) {
    return InvalidArgument("cannot read the tokens in \"" + file +
                           "\": " + std::generic_category().message(errno));
  }
  auto tokens = ParseTokens(bytes);
  if (!tokens.ok())
    return tokens.status().WithContext("cannot read the tokens in \"" + file + "\"");
  return tokens;
}

std::string FormatTokens(const std::vector<DelegationToken>& tokens) {
  std::string bytes(kMagic);
  bytes += '\0';
  PutVint(&bytes, tokens.size());
  for (const DelegationToken& token : tokens) {
    PutText(&bytes, token.service);  // the alias
    PutText(&bytes, token.identifier);
    PutText(&bytes, token.password);
    PutText(&bytes, token.kind);
    PutText(&bytes, token.service);
  }
  PutVint(&bytes, 0);  // secrets
  return bytes;
}

Status WriteTokens(const std::vector<DelegationToken>& tokens, const std::string& file) {
  const std::string bytes = FormatTokens(tokens);
  const std::string next = file + ".new";
  ::unlink(next.c_str());  // it may be readable for others
  const int out = ::open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (out < 0) return InvalidArgument(Failure(file));
  const bool written =
      ::write(out, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  if (::close(out) != 0 || !written || ::rename(next.c_str(), file.c_str()) != 0) {
    const Status status = Unavailable(Failure(file));
    ::unlink(next.c_str());
    return status;
  }
  return {};
}

Result<TokenFacts> FactsOf(const DelegationToken& token) {
  Reader reader(token.identifier);
  const std::string_view bytes = reader.Bytes(reader.Big32());
  pb::TokenIdentifier identifier;
  if (!reader.ok() || !identifier.ParseFromString(std::string(bytes))) {
    return DataLoss("the identifier of a token cannot be read");
  }
  return TokenFacts{.user = identifier.username(),
                    .issued_ms = identifier.issue_date(),
                    .expires_ms = identifier.expiration_date()};
}

}  // namespace tamis::hbase
