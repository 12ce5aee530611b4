#include "tamis/hbase/token_file.h"

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <system_error>

#include "tamis/base/coding.h"

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

}  // namespace tamis::hbase
