// FilterRebuild: fills a new filter on the server beside the old one and puts it in its place
// (TAMIS.REBUILD).
//
// Only what is known to hold every row may be committed. Whatever fails on the way ends it: there
// is no going on over another connection, since the last adds may be lost.
#pragma once

#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/guard/redis_connection.h"

namespace tamis {

class FilterRebuild {
 public:
  struct Options {
    double fpr = 0.01;
    uint64_t capacity = 0;
    std::string type;  // empty: the server's choice
  };

  // The connection must outlive it. From now on the new filter takes what is added to the old one.
  static Result<FilterRebuild> Start(RedisConnection* connection, std::string key,
                                     const Options& options);
  // One that Start gave the id of, perhaps to another program.
  static FilterRebuild Take(RedisConnection* connection, std::string key, uint64_t id) {
    return {connection, std::move(key), id};
  }

  uint64_t id() const { return id_; }

  // Not ok: Abort.
  Status Add(std::string_view item);
  // Sends the rest and waits until the server has taken all.
  Status Finish();
  // REQUIRES: Finish() was ok. kUnavailable: nobody knows whether it is in its place.
  Status Commit(const std::string& mark);
  // Over a new connection when this one is broken.
  Status Abort();

 private:
  FilterRebuild(RedisConnection* connection, std::string key, uint64_t id);
  Status SendWords();
  Status ReceiveOne();

  RedisConnection* connection_;
  std::string key_;
  uint64_t id_;
  std::string prefix_;  // of an ADD, behind the number of its words
  std::string words_;   // not sent yet
  size_t word_count_ = 0;
  size_t outstanding_[64] = {};  // items of the commands that were not answered, in a circle
  size_t sent_ = 0;
  size_t answered_ = 0;
};

}  // namespace tamis
