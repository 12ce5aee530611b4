// The function that the server calls when it loads the module.
#include <cstdio>
#include <span>

#include "tamis/redis/bloom_commands.h"
#include "tamis/redis/bloom_type.h"
#include "tamis/redis/command.h"
#include "tamis/redis/cuckoo_commands.h"
#include "tamis/redis/cuckoo_type.h"
#include "tamis/redis/metrics.h"
#include "tamis/redis/seeded_commands.h"
#include "tamis/redis/seeded_type.h"
#include "tamis/redis/server.h"
#include "tamis/redis/server_memory.h"
#include "tamis/redis/settings.h"
#include "tamis/redis/tamis_commands.h"
#include "tamis/redis/tamis_type.h"
#include "tamis/redis/trust.h"

namespace tamis::redis {
namespace {

constexpr char kName[] = "bf";   // clients look for it
constexpr int kVersion = 80000;  // the version that replies like these; clients compare it

int Load(Ctx* ctx, String** words, int count) {
  if (const char* missing = server.Resolve(ctx)) {
    // Nothing is known to tell it with.
    std::fprintf(stderr, "tamis_redis: this server has no RedisModule_%s; Redis 7.0 has\n",
                 missing);
    return kErr;
  }
  server.SetModuleAttribs(ctx, kName, kVersion, 1);
  if (UseServerMemory(ctx) != kOk) return kErr;
  // CLUSTER MIGRATESLOTS sends a key by the commands of its Rewrite, in a child that saves no file:
  // a filter arrives without its trust. The server refuses it where a module has not said so.
  server.SetModuleOptions(ctx, kHandleIoErrors | (server.is_valkey ? kHandleSlotMigration : 0));
  if (RegisterSettings(ctx, words, count) != kOk) return kErr;
  if (server.AddACLCategory != nullptr) {
    server.AddACLCategory(ctx, "bloom");
    server.AddACLCategory(ctx, "cuckoo");
    server.AddACLCategory(ctx, "tamis");
  }
  if (RegisterBloomType(ctx) != kOk || RegisterCuckooType(ctx) != kOk ||
      RegisterSeededType(ctx) != kOk || RegisterTamisType(ctx) != kOk ||
      RegisterTrust(ctx) != kOk || RegisterMetrics(ctx) != kOk) {
    return kErr;
  }
  for (const std::span<const Command> commands :
       {BloomCommands(), SeededCommands(), CuckooCommands(), TamisCommands()}) {
    if (RegisterCommands(ctx, commands) != kOk) return kErr;
  }
  return kOk;
}

}  // namespace
}  // namespace tamis::redis

extern "C" __attribute__((visibility("default"))) int RedisModule_OnLoad(RedisModuleCtx* ctx,
                                                                         RedisModuleString** words,
                                                                         int count) {
  try {
    return tamis::redis::Load(ctx, words, count);
  } catch (...) {  // only memory that is not there
    return tamis::redis::kErr;
  }
}
