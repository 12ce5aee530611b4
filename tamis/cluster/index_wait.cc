#include "tamis/cluster/index_wait.h"

#include <utility>

namespace tamis {

void IndexWait::Look(const IndexProgress& progress, Time now) {
  has_news_ = false;
  if (!progress.failure.has_value()) {
    failing_.reset();
    return;
  }
  const IndexFailure& failure = *progress.failure;
  if (!IsSame(failure)) failing_ = {.last = {}, .since = now, .attempts = failure.attempts};
  failing_->last = failure;
  if (IsHopeless(now)) gives_up_ = failure.reason;
  const bool may_move = failure.attempts == 0 && IsTransient(failure.reason.code());
  if (may_move && now - failing_->since < kMove) return;
  has_news_ = !shown_.has_value() || shown_->region != failure.region ||
              shown_->server != failure.server || shown_->reason != failure.reason;
  if (has_news_) shown_ = failure;
}

// The same opening of the same region, without success in between.
bool IndexWait::IsSame(const IndexFailure& failure) const {
  if (!failing_.has_value()) return false;
  const IndexFailure& last = failing_->last;
  return last.region == failure.region && last.server == failure.server &&
         last.attempts <= failure.attempts && (last.attempts == 0) == (failure.attempts == 0);
}

bool IndexWait::IsHopeless(Time now) const {
  const IndexFailure& failure = failing_->last;
  if (failure.given_up) return true;
  const Duration failing = now - failing_->since;
  if (failure.attempts == 0) {
    return failing >= (IsTransient(failure.reason.code()) ? kOutage : kPatience);
  }
  return failing >= kPatience && failure.attempts >= kAttempts &&
         failure.attempts > failing_->attempts;
}

}  // namespace tamis
