#include "tamis/redis/trusted_keys.h"

#include <set>
#include <string>
#include <utility>

#include "tamis/redis/command.h"
#include "tamis/redis/faults.h"

namespace tamis::redis {
namespace {

constexpr ServerEvent kFlushed = {2, 1};
constexpr uint64_t kFlushBegins = 0;
constexpr int kAllDatabases = -1;

struct Place {
  int database;
  std::string name;
};
// Compares with views, too, so that a search takes no memory.
struct Before {
  using is_transparent = void;
  using View = std::pair<int, std::string_view>;
  static View Of(const Place& place) { return {place.database, place.name}; }
  static View Of(const View& view) { return view; }
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    return Of(a) < Of(b);
  }
};
std::set<Place, Before> keys;

// A flush calls no value's unlink, and tells of all its keys itself.
void OnFlush(Ctx*, ServerEvent, uint64_t what, void* data) noexcept {
  if (what != kFlushBegins) return;
  const int database = static_cast<const FlushInfo*>(data)->database;
  std::erase_if(keys, [database](const Place& key) {
    return database == kAllDatabases || key.database == database;
  });
}

}  // namespace

int RegisterTrustedKeys(Ctx* ctx) { return server.SubscribeToServerEvent(ctx, kFlushed, OnFlush); }

void ListTrustedKey(Ctx* ctx, const String* key) {
  ListTrustedKey(server.GetSelectedDb(ctx), TextOf(key));
}

void ListTrustedKey(int database, std::string_view key) {
  if (!keys.contains(Before::View(database, key))) keys.insert({database, std::string(key)});
}

void UnlistTrustedKey(int database, std::string_view key) noexcept {
  const auto at = keys.find(Before::View(database, key));
  if (at != keys.end()) keys.erase(at);
}

void SignalTrustedKeys(Ctx* ctx) noexcept {
  const auto ended = std::exchange(keys, {});
  if (faults.end_of_trust_is_silent || ended.empty()) return;
  const int selected = server.GetSelectedDb(ctx);
  for (const auto& [database, key] : ended) {
    String* const name = server.CreateString(ctx, key.data(), key.size());
    if (server.SelectDb(ctx, database) == kOk) server.SignalModifiedKey(ctx, name);
    server.FreeString(ctx, name);
  }
  server.SelectDb(ctx, selected);
}

}  // namespace tamis::redis
