// FilterFollower: applies a feed of changes to a filter on the server, each change exactly once.
//
// A batch of changes and its mark are sent as one transaction (MULTI), so the mark of the filter
// says which batches it contains. When the connection breaks, the outcome of a batch is unknown.
// The follower then reads the filter's mark over a new connection, and sends the batch again only
// if the mark is still that of the batch before.
//
// The erases and the new mark carry the generation that was read with the mark. The server refuses
// both if a rebuild has replaced the filter since: the new filter was filled from a later snapshot,
// which may lack the erased rows already. If the new filter has another mark, the follower ends
// with an error, and the feed has to begin again behind the new mark. If the mark is the same, the
// follower sends erases and mark again with the new generation.
//
// Threads: one at a time; `cancelled` may be set by any.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "tamis/base/status.h"
#include "tamis/guard/change_feed.h"
#include "tamis/guard/redis_connection.h"

namespace tamis {

class FilterFollower {
 public:
  struct Counters {
    uint64_t added = 0;
    uint64_t erased = 0;
    // Erases that changed nothing: the server refused them, and then the filter keeps the keys
    // until the next rebuild; or the filter did not contain the keys.
    uint64_t not_erased = 0;
    uint64_t batches = 0;
    uint64_t connections = 0;
  };

  // While Apply cannot reach the server, it tries again until `cancelled` is set, and passes each
  // new reason to `say`. `timeout_ms` bounds one wait for the server.
  FilterFollower(RedisAddress address, std::string key, int timeout_ms,
                 const std::atomic<bool>* cancelled, std::function<void(const std::string&)> say)
      : address_(std::move(address)),
        key_(std::move(key)),
        timeout_ms_(timeout_ms),
        cancelled_(cancelled),
        say_(std::move(say)) {}

  // Connects. `after` is the mark behind which the feed begins; kFailedPrecondition when the filter
  // has another mark.
  Status Begin(const std::string& after);
  // Applies a batch. After a batch that has caught up with the database (FeedChanges::caught_up) it
  // sends TAMIS.TRUST. kResourceExhausted: the filter was full; it was removed, so that it cannot
  // refuse rows that it lacks. kFailedPrecondition: the filter is gone, or is another one.
  Status Apply(const FeedChanges& changes);

  const Counters& counters() const { return counters_; }

 private:
  enum class Outcome { kDone, kUnknown, kOtherGeneration };

  Status Connect();
  Status ReadPlace(std::string* mark);  // and the generation
  Status StillHere();
  Result<Outcome> Try(const FeedChanges& changes, bool with_adds);
  Result<bool> Settled(const FeedChanges& changes);  // after an unknown outcome
  Status GiveUpFilter();

  const RedisAddress address_;
  const std::string key_;
  const int timeout_ms_;
  const std::atomic<bool>* cancelled_;
  const std::function<void(const std::string&)> say_;
  std::optional<RedisConnection> connection_;
  std::string mark_;        // the mark of the last batch that was applied
  std::string generation_;  // the filter's generation when its mark was last read
  Counters counters_;
};

}  // namespace tamis
