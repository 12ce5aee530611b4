// FilterRebuild: fills a new filter on the server beside the old one, and replaces the old one with
// it (TAMIS.REBUILD).
//
// Only a filter that is known to hold every row may be committed. A failure on the way ends the
// rebuild: it does not continue over another connection, since the last adds may be lost.
//
// The server reserves a rebuild for the program that started it until a lease ends; the program
// renews the lease. When the lease has ended, the next program assumes that the first one was
// killed, ends its rebuild and starts another. Every command carries the rebuild's id, so that a
// program which was only slow can neither fill nor commit nor end the other program's rebuild.
//
// Threads: exclusive access.
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

  // A rebuild that is under way, started by any program.
  struct UnderWay {
    uint64_t id = 0;
    uint64_t lease_s = 0;     // the rest of the lease, in seconds
    bool may_commit = false;  // false: the rebuild refused an add, or the server may have lost adds
  };
  // The rebuild of the filter `key`; nullopt when there is none, or no such filter.
  static Result<std::optional<UnderWay>> Look(RedisConnection* connection, const std::string& key);
  // Ends the rebuild with this id. Also ok when it has already ended.
  static Status End(RedisConnection* connection, const std::string& key, uint64_t id);

  // Starts a rebuild. From now on the server adds every item also to the new filter. The connection
  // must outlive the returned object. kFailedPrecondition when another rebuild is under way.
  static Result<FilterRebuild> Start(RedisConnection* connection, std::string key,
                                     const Options& options);
  // Continues a rebuild whose id Start gave, perhaps to another program.
  static FilterRebuild Take(RedisConnection* connection, std::string key, uint64_t id) {
    return {connection, std::move(key), id};
  }

  uint64_t id() const { return id_; }

  // Adds an item to the new filter; items are sent in batches. After an error, call Abort.
  Status Add(std::string_view item);
  // Renews the lease if that is due. Call it about once a second.
  Status Keep();
  // Sets the lease to so many seconds, for the program that continues the rebuild.
  Status KeepFor(uint64_t seconds);
  // Sends the remaining items and waits until the server has added all of them.
  Status Finish();
  // Returns how many of the items the new filter lacks, and appends some of these to `examples`,
  // until it has three. At most 1000 items.
  Result<size_t> CountMissing(std::span<const std::string> items,
                              std::vector<std::string>* examples);
  // Replaces the old filter with the new one, whose mark becomes `mark` if that is not empty.
  // kUnavailable: it is unknown whether the server has done it. REQUIRES: Finish() was ok.
  Status Commit(const std::string& mark);
  // Ends the rebuild, over a new connection if this one is broken. Also ok when it has ended.
  Status Abort();

 private:
  FilterRebuild(RedisConnection* connection, std::string key, uint64_t id);
  Status SendWords();
  Status ReceiveOne();
  Status ErrorOf(const RedisReply& reply) const;

  RedisConnection* connection_;
  std::string key_;
  uint64_t id_;
  std::string prefix_;  // the first words of an add command, encoded
  std::string words_;   // the items that are not sent yet, encoded
  size_t word_count_ = 0;
  size_t outstanding_[64] = {};  // a ring: number of items of each command without a reply yet
  size_t sent_ = 0;
  size_t answered_ = 0;
  std::chrono::steady_clock::time_point kept_at_;
};

}  // namespace tamis
