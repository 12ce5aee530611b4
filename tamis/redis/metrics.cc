#include "tamis/redis/metrics.h"

#include <utility>

#include "tamis/redis/server_memory.h"

namespace tamis::redis {
namespace {

constexpr std::pair<const char*, uint64_t Metrics::*> kMetrics[] = {
    {"checks_perhaps", &Metrics::checks_perhaps},
    {"checks_absent", &Metrics::checks_absent},
    {"checks_unknown", &Metrics::checks_unknown},
    {"adds_refused", &Metrics::adds_refused},
    {"commands_lost", &Metrics::commands_lost},
    {"erases_skipped", &Metrics::erases_skipped},
    {"rebuilds_started", &Metrics::rebuilds_started},
    {"rebuilds_committed", &Metrics::rebuilds_committed},
};

void Tell(RedisModuleInfoCtx* info, int) noexcept {
  server.InfoAddSection(info, "filters");
  for (const auto& [name, member] : kMetrics) {
    server.InfoAddFieldULongLong(info, name, metrics.*member);
  }
  const FreedInBackground freed = FiguresOfFreeing();
  server.InfoAddFieldULongLong(info, "freed_in_background", freed.all);
  server.InfoAddFieldULongLong(info, "waiting_to_be_freed", freed.waiting);
}

}  // namespace

int RegisterMetrics(Ctx* ctx) { return server.RegisterInfoFunc(ctx, Tell); }

}  // namespace tamis::redis
