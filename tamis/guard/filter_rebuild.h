// FilterRebuild: fills a new filter on the server beside the old one and puts it in its place
// (TAMIS.REBUILD).
//
// Only a filter that is known to hold every row may be committed. A failure on the way ends the
// rebuild: it does not continue over another connection, since the last adds may be lost.
//
// The server keeps a rebuild for its program until a lease is over, which the program renews. A
// rebuild whose lease is over was left behind by a program that was killed: the next one ends it
// and begins its own. Every command carries the id, so that a program which was only slow can
// neither fill nor commit nor end the rebuild of the next one.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

  // Seconds for which a program that fills a rebuild may be silent.
  static constexpr uint64_t kLease = 15;

  // A rebuild that is under way, of any program.
  struct UnderWay {
    uint64_t id = 0;
    uint64_t lease_s = 0;     // what is left of it
    bool may_commit = false;  // not so: it was full, or the server may have lost adds
  };
  static Result<std::optional<UnderWay>> Look(RedisConnection* connection, const std::string& key);
  // Ends that rebuild. Ok, too, when it has ended.
  static Status End(RedisConnection* connection, const std::string& key, uint64_t id);

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
  // Renews the lease when it is time to. To be called every second or so.
  Status Keep();
  // Gives it a lease of so many seconds, for the program that fills it next.
  Status KeepFor(uint64_t seconds);
  // Sends the rest and waits until the server has taken all.
  Status Finish();
  // How many of the items the new filter lacks, and appends a few of these. At most 1000 items.
  Result<size_t> CountMissing(std::span<const std::string> items,
                              std::vector<std::string>* examples);
  // REQUIRES: Finish() was ok. kUnavailable: nobody knows whether it is in its place.
  Status Commit(const std::string& mark);
  // Over a new connection when this one is broken. Ok, too, when it is no more.
  Status Abort();

 private:
  FilterRebuild(RedisConnection* connection, std::string key, uint64_t id);
  Status SendWords();
  Status ReceiveOne();
  Status ErrorOf(const RedisReply& reply) const;

  RedisConnection* connection_;
  std::string key_;
  uint64_t id_;
  std::string prefix_;  // of an ADD, behind the number of its words
  std::string words_;   // not sent yet
  size_t word_count_ = 0;
  size_t outstanding_[64] = {};  // items of the commands that were not answered, in a circle
  size_t sent_ = 0;
  size_t answered_ = 0;
  std::chrono::steady_clock::time_point kept_at_;
};

}  // namespace tamis
