#include "tamis/feed/parked_polls.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tamis {

void ParkedPolls::Park(Poll poll) {
  const uint64_t coordinator = poll.request.coordinator();
  polls_.emplace(coordinator, std::move(poll));
}

template <class Condition>
ParkedPolls::Polls ParkedPolls::TakeIf(Condition&& condition) {
  Polls taken;
  for (auto it = polls_.begin(); it != polls_.end();) {
    const auto next = std::next(it);
    if (condition(it->second)) taken.insert(polls_.extract(it));
    it = next;
  }
  return taken;
}

ParkedPolls::Polls ParkedPolls::TakeDue(Time now) {
  return TakeIf([&](const Poll& poll) { return poll.until <= now; });
}

ParkedPolls::Polls ParkedPolls::TakeBehind(uint64_t last) {
  return TakeIf([&](const Poll& poll) { return poll.request.applied() != last; });
}

Time ParkedPolls::NextEnd() const {
  Time next = Time::max();
  for (const auto& [coordinator, poll] : polls_) next = std::min(next, poll.until);
  return next;
}

}  // namespace tamis
