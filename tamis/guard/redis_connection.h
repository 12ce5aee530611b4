// RedisConnection: one connection to a Redis or Valkey server.
//
// A command is sent once. When the connection breaks, it may have been carried out or not: the
// status is kUnavailable, and the command is not sent again here, since a repeated erase would
// remove another key with the same fingerprint. An error that the server replies is a value
// (RedisReply::is_error). Threads: exclusive access.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/guard/redis_address.h"

struct redisContext;
struct redisReply;

namespace tamis {

class RedisReply {
 public:
  explicit RedisReply(redisReply* reply);  // takes it

  bool is_error() const;
  bool is_nothing() const;
  bool is_integer() const;
  bool is_array() const;
  std::string_view text() const;  // the text of a string, a status or an error; else ""
  long long integer() const;      // 0 when it is none
  size_t size() const;            // the size of an array; else 0
  // Elements of an array. REQUIRES: i < size().
  std::string_view text(size_t i) const;
  long long integer(size_t i) const;
  bool is_error(size_t i) const;
  bool is_integer(size_t i) const;
  // Elements of an array within the array.
  size_t size_of(size_t i) const;
  long long integer(size_t i, size_t j) const;

 private:
  struct Free {
    void operator()(redisReply* reply) const;
  };
  std::unique_ptr<redisReply, Free> reply_;
};

class RedisConnection {
 public:
  // Connects, logs in and selects the database. Each wait for the server, here and later, ends
  // after timeout_ms.
  static Result<RedisConnection> Open(const RedisAddress& address, int timeout_ms);

  // One command and its reply. kUnavailable: the connection broke or the time was over; the
  // connection cannot be used any more.
  Result<RedisReply> Ask(std::span<const std::string_view> words);
  Result<RedisReply> Ask(std::initializer_list<std::string_view> words) {
    return Ask(std::span(words.begin(), words.size()));
  }
  // Like Ask, but an error that the server sent is a status too.
  Result<RedisReply> Demand(std::initializer_list<std::string_view> words);

  // For many commands at once: Send their bytes (AppendCommand), then Receive each reply in turn.
  Status Send(std::string_view bytes);
  Result<RedisReply> Receive();

  const RedisAddress& address() const { return address_; }
  // Translates a server's error for the caller.
  Status ErrorOf(const RedisReply& reply) const;

 private:
  struct Free {
    void operator()(redisContext* context) const;
  };

  RedisConnection(RedisAddress address, redisContext* context)
      : address_(std::move(address)), context_(context) {}
  Status Broken(std::string_view doing) const;
  Status Enter();

  RedisAddress address_;
  std::unique_ptr<redisContext, Free> context_;
};

// Appends a command in the protocol's bytes.
void AppendCommand(std::span<const std::string_view> words, std::string* bytes);
inline void AppendCommand(std::initializer_list<std::string_view> words, std::string* bytes) {
  AppendCommand(std::span(words.begin(), words.size()), bytes);
}
// A part of that: one word.
void AppendWord(std::string_view word, std::string* bytes);

}  // namespace tamis
