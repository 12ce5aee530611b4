// FilterFollower: applies a feed of changes to a filter on the server, each exactly once.
//
// The changes and their mark are one MULTI. When the connection breaks it is unknown whether it was
// carried out, but the mark that stands there then tells: it is sent again exactly if it was not.
// Erases carry the generation that was read with the mark: when a rebuild took the filter's place
// meanwhile, erases and mark are refused, since its snapshot may lack the rows already, and the
// feed has to begin behind the mark of the rebuild.
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
    uint64_t not_erased = 0;  // the filter was not trusted: false positives until the next rebuild
    uint64_t batches = 0;
    uint64_t connections = 0;
  };

  // While the server cannot be reached it is tried again, and `say` is told why, until `cancelled`.
  FilterFollower(RedisAddress address, std::string key, int timeout_ms,
                 const std::atomic<bool>* cancelled, std::function<void(const std::string&)> say)
      : address_(std::move(address)),
        key_(std::move(key)),
        timeout_ms_(timeout_ms),
        cancelled_(cancelled),
        say_(std::move(say)) {}

  // `after`: the mark behind which the feed begins; kFailedPrecondition when the filter has
  // another.
  Status Begin(const std::string& after);
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
  std::string mark_;        // of what has been applied
  std::string generation_;  // read with it
  Counters counters_;
};

}  // namespace tamis
