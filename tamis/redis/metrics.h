// The module's counters since it was loaded, for INFO.
#pragma once

#include <cstdint>

#include "tamis/redis/server.h"

namespace tamis::redis {

struct Metrics {
  // The answers of TAMIS.CHECK.
  uint64_t checks_perhaps = 0;
  uint64_t checks_absent = 0;
  uint64_t checks_unknown = 0;
  uint64_t adds_refused = 0;
  uint64_t commands_lost = 0;  // commands that another server has done and this one could not do
  uint64_t erases_skipped = 0;
  uint64_t rebuilds_started = 0;
  uint64_t rebuilds_committed = 0;
};

inline Metrics metrics;

// The section `bf_filters` of INFO.
int RegisterMetrics(Ctx* ctx);

}  // namespace tamis::redis
