#include "tamis/redis/server.h"

#include <cstring>

namespace tamis::redis {

Server server;

const char* Server::Resolve(Ctx* ctx) {
  // The first word of a context is the function that finds the others.
  using GetApi = int (*)(const char* name, void* out);
  GetApi get_api;
  std::memcpy(&get_api, static_cast<const void*>(ctx), sizeof(get_api));
#define TAMIS_RESOLVE(result, name, parameters) \
  if (get_api("RedisModule_" #name, &name) != kOk) return #name;
  TAMIS_SERVER_FUNCTIONS(TAMIS_RESOLVE)
#undef TAMIS_RESOLVE
#define TAMIS_RESOLVE(result, name, parameters) \
  if (get_api("RedisModule_" #name, &name) != kOk) name = nullptr;
  TAMIS_OPTIONAL_FUNCTIONS(TAMIS_RESOLVE)
#undef TAMIS_RESOLVE
  void* function = nullptr;
  is_valkey = get_api("ValkeyModule_Alloc", &function) == kOk;
  return nullptr;
}

}  // namespace tamis::redis
