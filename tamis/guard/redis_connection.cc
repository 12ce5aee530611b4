#include "tamis/guard/redis_connection.h"

#include <hiredis/hiredis.h>

#include <charconv>

namespace tamis {
namespace {

std::string_view TextOf(const redisReply& reply) {
  const bool text = reply.type == REDIS_REPLY_STRING || reply.type == REDIS_REPLY_STATUS ||
                    reply.type == REDIS_REPLY_ERROR;
  return text ? std::string_view(reply.str, reply.len) : std::string_view();
}

long long IntegerOf(const redisReply& reply) {
  return reply.type == REDIS_REPLY_INTEGER ? reply.integer : 0;
}

}  // namespace

RedisReply::RedisReply(redisReply* reply) : reply_(reply) {}
void RedisReply::Free::operator()(redisReply* reply) const { freeReplyObject(reply); }

bool RedisReply::is_error() const { return reply_->type == REDIS_REPLY_ERROR; }
bool RedisReply::is_nothing() const { return reply_->type == REDIS_REPLY_NIL; }
bool RedisReply::is_integer() const { return reply_->type == REDIS_REPLY_INTEGER; }
bool RedisReply::is_array() const { return reply_->type == REDIS_REPLY_ARRAY; }
std::string_view RedisReply::text() const { return TextOf(*reply_); }
long long RedisReply::integer() const { return IntegerOf(*reply_); }
size_t RedisReply::size() const { return is_array() ? reply_->elements : 0; }
std::string_view RedisReply::text(size_t i) const { return TextOf(*reply_->element[i]); }
long long RedisReply::integer(size_t i) const { return IntegerOf(*reply_->element[i]); }
bool RedisReply::is_error(size_t i) const { return reply_->element[i]->type == REDIS_REPLY_ERROR; }

bool RedisReply::is_integer(size_t i) const {
  return reply_->element[i]->type == REDIS_REPLY_INTEGER;
}
size_t RedisReply::size_of(size_t i) const {
  return reply_->element[i]->type == REDIS_REPLY_ARRAY ? reply_->element[i]->elements : 0;
}
long long RedisReply::integer(size_t i, size_t j) const {
  return IntegerOf(*reply_->element[i]->element[j]);
}

void RedisConnection::Free::operator()(redisContext* context) const { redisFree(context); }

Result<RedisConnection> RedisConnection::Open(const RedisAddress& address, int timeout_ms) {
  const timeval timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000L};
  redisContext* context =
      address.host.empty() ? redisConnectUnixWithTimeout(address.socket.c_str(), timeout)
                           : redisConnectWithTimeout(address.host.c_str(), address.port, timeout);
  if (context == nullptr) return ResourceExhausted("cannot connect to Redis: out of memory");
  RedisConnection connection(address, context);
  if (context->err != 0) return connection.Broken("connect to");
  redisSetTimeout(context, timeout);
  if (!address.host.empty()) redisEnableKeepAlive(context);  // which a socket has not
  TAMIS_RETURN_IF_ERROR(connection.Enter());
  return connection;
}

Status RedisConnection::Enter() {
  if (!address_.password.empty()) {
    std::vector<std::string_view> words = {"AUTH"};
    if (!address_.user.empty()) words.push_back(address_.user);
    words.push_back(address_.password);
    TAMIS_ASSIGN_OR_RETURN(const RedisReply reply, Ask(words));
    if (reply.is_error()) return ErrorOf(reply);
  }
  if (address_.database != 0) {
    const auto selected = Demand({"SELECT", std::to_string(address_.database)});
    if (!selected.ok()) return selected.status();
  }
  return Status::Ok();
}

Status RedisConnection::Broken(std::string_view doing) const {
  return Unavailable("cannot " + std::string(doing) + " " + address_.ToString() + ": " +
                     (context_->err != 0 ? context_->errstr : "the connection is closed"));
}

Status RedisConnection::ErrorOf(const RedisReply& reply) const {
  const std::string_view text = reply.text();
  std::string message = address_.ToString() + " answers \"" + std::string(text) + "\"";
  if (text.starts_with("ERR unknown command")) {
    message += ": load the module tamis_redis.so there";
  }
  if (text.starts_with("WRONGTYPE")) {
    message +=
        ": the key is no filter of `tamis guard load` or TAMIS.RESERVE; BF.INFO and CF.INFO "
        "describe those of BF.* and CF.*, which `tamis guard` only verifies";
  }
  if (text.starts_with("OOM")) return ResourceExhausted(message);
  if (text.starts_with("LOADING") || text.starts_with("BUSY")) return Busy(message);
  return FailedPrecondition(message);
}

Status RedisConnection::Send(std::string_view bytes) {
  if (redisAppendFormattedCommand(context_.get(), bytes.data(), bytes.size()) != REDIS_OK) {
    return Broken("write to");
  }
  int done = 0;
  while (done == 0) {
    if (redisBufferWrite(context_.get(), &done) != REDIS_OK) return Broken("write to");
  }
  return Status::Ok();
}

Result<RedisReply> RedisConnection::Receive() {
  void* reply = nullptr;
  if (redisGetReply(context_.get(), &reply) != REDIS_OK || reply == nullptr) {
    return Broken("read from");
  }
  return RedisReply(static_cast<redisReply*>(reply));
}

Result<RedisReply> RedisConnection::Ask(std::span<const std::string_view> words) {
  std::string bytes;
  AppendCommand(words, &bytes);
  TAMIS_RETURN_IF_ERROR(Send(bytes));
  return Receive();
}

Result<RedisReply> RedisConnection::Demand(std::initializer_list<std::string_view> words) {
  TAMIS_ASSIGN_OR_RETURN(RedisReply reply, Ask(words));
  if (reply.is_error()) return ErrorOf(reply);
  return reply;
}

void AppendWord(std::string_view word, std::string* bytes) {
  char number[24];
  char* end = std::to_chars(number, number + sizeof(number), word.size()).ptr;
  *bytes += '$';
  bytes->append(number, static_cast<size_t>(end - number));
  *bytes += "\r\n";
  *bytes += word;
  *bytes += "\r\n";
}

void AppendCommand(std::span<const std::string_view> words, std::string* bytes) {
  *bytes += "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) AppendWord(word, bytes);
}

}  // namespace tamis
