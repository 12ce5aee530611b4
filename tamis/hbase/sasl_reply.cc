#include "tamis/hbase/sasl_reply.h"

#include "tamis/base/coding.h"

namespace tamis::hbase {
namespace {

constexpr auto kNoSecurity = static_cast<uint32_t>(-88);
constexpr size_t kMaxClassBytes = 1 << 10;
constexpr size_t kMaxMessageBytes = 64 << 10;

// Takes a text preceded by its size. Nothing if it is incomplete; kDataLoss if it is too long.
Result<std::optional<std::string_view>> TakeText(Reader* reader, size_t max_bytes) {
  const uint32_t size = reader->Big32();
  if (reader->ok() && size > max_bytes) {
    return DataLoss("an answer to the login that is no SASL: " + std::to_string(size) +
                    " bytes, where " + std::to_string(max_bytes) + " are allowed");
  }
  const std::string_view text = reader->Bytes(size);
  return reader->ok() ? std::optional(text) : std::nullopt;
}

}  // namespace

Result<std::optional<SaslReply>> ParseSaslReply(std::string_view bytes) {
  Reader reader(bytes);
  SaslReply reply;
  const auto parsed = [&](SaslReply::Kind kind) {
    reply.kind = kind;
    reply.size = bytes.size() - reader.rest().size();
    return std::optional(reply);
  };
  const uint32_t status = reader.Big32();
  if (!reader.ok()) return std::optional<SaslReply>();
  if (status == 0) {
    Reader ahead = reader;
    if (ahead.Big32() == kNoSecurity) {
      reader = ahead;
      return parsed(SaslReply::Kind::kNoSecurity);
    }
    TAMIS_ASSIGN_OR_RETURN(const auto token, TakeText(&reader, kMaxSaslTokenBytes));
    if (!token) return std::optional<SaslReply>();
    reply.token = *token;
    return parsed(SaslReply::Kind::kChallenge);
  }
  TAMIS_ASSIGN_OR_RETURN(const auto class_name, TakeText(&reader, kMaxClassBytes));
  if (!class_name) return std::optional<SaslReply>();
  TAMIS_ASSIGN_OR_RETURN(const auto message, TakeText(&reader, kMaxMessageBytes));
  if (!message) return std::optional<SaslReply>();
  reply.class_name = *class_name;
  reply.message = *message;
  return parsed(SaslReply::Kind::kRefusal);
}

}  // namespace tamis::hbase
