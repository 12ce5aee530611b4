// GuardArguments: what the subcommands of `tamis guard` are given, and what follows from it: the
// connection to the server, and where keys come from.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "tamis/base/status.h"
#include "tamis/guard/key_source.h"
#include "tamis/guard/redis_connection.h"

namespace tamis {

// Set by a signal: the command ends.
inline std::atomic<bool> guard_cancelled = false;

struct GuardArguments {
  static constexpr uint64_t kNone = UINT64_MAX;

  std::string redis = "redis://localhost";
  std::string key;
  uint64_t timeout_s = 60;

  std::string command;
  std::string query;
  std::string proof;
  bool unproved = false;
  bool as_is = false;
  std::string format = "plain";
  std::string database;
  uint64_t settle_s = kNone;  // not given
  uint64_t id = kNone;
  uint64_t capacity = 0;
  uint64_t at_least = 1;
  double fpr = 0.01;
  std::string type;
  std::string mark;
  std::string after;
  uint64_t hold_s = 600;
  bool replace = false;
  bool mark_first = false;
  bool mark_only = false;
  bool quiet = false;

  void Say(const std::string& text) const;  // on stderr, unless `quiet`
  Result<RedisConnection> Open() const;
  Result<KeyReader::Format> Format() const;
  // Reads from the options where the keys come from.
  Result<KeySource::Options> Source() const;
};

}  // namespace tamis
