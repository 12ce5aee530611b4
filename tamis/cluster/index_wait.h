// IndexWait: decides for how long a caller waits for an index that regions fail to complete.
//
// A failure does not end the wait at once, since the server tries again: room is made on a disk, a
// server restarts, a region moves. The wait gives up when one region has failed since kPatience,
// and meanwhile
//
//   * the server has failed again, and at least kAttempts times in a row: a server that tries less
//     and less often gets one more attempt after the wait began, however late that comes;
//   * or no attempt is known of, for a reason that does not pass by itself.
//
// A region whose server cannot be asked for a reason that may pass, or that is open nowhere, may be
// so for kOutage: as long as a restart of many servers takes. A region that the server has given up
// ends the wait at once. An attempt that succeeds and an opening elsewhere begin the count anew.
//
// Threads: none; a value of one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tamis/base/executor.h"
#include "tamis/base/status.h"
#include "tamis/cluster/cluster_admin.h"

namespace tamis {

class IndexWait {
 public:
  static constexpr Duration kPatience = std::chrono::minutes(1);
  static constexpr Duration kOutage = std::chrono::minutes(10);
  static constexpr uint64_t kAttempts = 5;
  // A region that moves is open nowhere for a moment; this is no news yet.
  static constexpr Duration kMove = std::chrono::seconds(10);

  // Takes in the progress as of `now`.
  void Look(const IndexProgress& progress, Time now);
  // Ok while the wait goes on; else the reason of the failure, with its code.
  Status GivesUp() const { return gives_up_; }
  // True if the last look has found a failure that is to be shown: it is new, or of another region
  // or for another reason than the one before.
  bool HasNews() const { return has_news_; }

 private:
  struct Failing {
    IndexFailure last;
    Time since{};           // when a look first found the region failing
    uint64_t attempts = 0;  // the number that this look found
  };
  bool IsSame(const IndexFailure& failure) const;
  bool IsHopeless(Time now) const;

  std::optional<Failing> failing_;
  std::optional<IndexFailure> shown_;
  Status gives_up_;
  bool has_news_ = false;
};

}  // namespace tamis
