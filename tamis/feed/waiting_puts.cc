#include "tamis/feed/waiting_puts.h"

#include <algorithm>
#include <iterator>

namespace tamis {

void WaitingPuts::Over::Call() {
  for (auto& [sequence, put] : acknowledged) put.done(Status::Ok());
  for (auto& [sequence, put] : late) {
    put.done(DeadlineExceeded(
        "coordinators did not acknowledge in time; the write may have been carried out"));
  }
}

void WaitingPuts::Collect(uint64_t floor, Time now, Over* over) {
  for (auto it = puts_.begin(); it != puts_.end();) {
    const auto next = std::next(it);
    const Put& put = it->second;
    if (it->first <= floor && now >= put.not_before) {
      over->acknowledged.insert(puts_.extract(it));
    } else if (now >= put.deadline) {
      over->late.insert(puts_.extract(it));
    }
    it = next;
  }
}

Time WaitingPuts::NextEnd(Time now) const {
  Time next = Time::max();
  for (const auto& [sequence, put] : puts_) {
    next = std::min(next, put.deadline);
    if (put.not_before > now) next = std::min(next, put.not_before);
  }
  return next;
}

}  // namespace tamis
