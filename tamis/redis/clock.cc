#include "tamis/redis/clock.h"

#include <time.h>

#include "tamis/redis/faults.h"
#include "tamis/redis/server.h"

namespace tamis::redis {

Moment PresentMoment() {
  Moment now;
  timespec running = {};
  // Goes on while the machine sleeps.
  clock_gettime(CLOCK_BOOTTIME, &running);
  now.running_ms = running_clock != 0 ? running_clock
                                      : int64_t{running.tv_sec} * 1000 + running.tv_nsec / 1000000;
  now.wall_ms = wall_clock != 0 ? wall_clock : server.Milliseconds();
  return now;
}

}  // namespace tamis::redis
