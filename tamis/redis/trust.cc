#include "tamis/redis/trust.h"

#include <memory>
#include <string>

#include "tamis/redis/clock.h"
#include "tamis/redis/faults.h"
#include "tamis/redis/filter_key.h"
#include "tamis/redis/metrics.h"
#include "tamis/redis/replicas.h"
#include "tamis/redis/settings.h"
#include "tamis/redis/slice_command.h"
#include "tamis/redis/trusted_keys.h"

namespace tamis::redis {
namespace {

constexpr ServerEvent kRoleChanged = {0, 1};
constexpr ServerEvent kPersistence = {1, 1};
constexpr ServerEvent kLoading = {3, 1};
constexpr ServerEvent kDatabasesSwapped = {11, 1};
// Sub-events of these two.
constexpr uint64_t kSavesLogInBackground = 1;
constexpr uint64_t kSavesLog = 5;
constexpr uint64_t kSavingEnded = 3;
constexpr uint64_t kSavingFailed = 4;
constexpr uint64_t kLoadsLog = 1;
constexpr uint64_t kLoadsFirstCopy = 2;

uint64_t trust_epoch = 1;
bool chains_believed = true;
bool saves_file = false;  // or a first copy; in the process that does so
bool saves_log = false;
bool loads_first_copy = false;  // a replica loads the first copy of its primary
bool loads_log = false;         // its own

bool IsReplica(Ctx* ctx) { return (server.GetContextFlags(ctx) & kFlagSlave) != 0; }

// A replica that was promoted lacks what its primary did last, and so do the replicas that follow
// it now; a primary that follows another lacks what that one did before. Their logs say so, too.
// Within the command that changes the role nothing may be replicated: the server would take that
// command for a write, and replicate it, too. A timer runs before its reply goes out.
void OnRoleChange(Ctx* ctx, ServerEvent, uint64_t, void*) noexcept {
  DoubtAll(ctx);
  if (faults.role_is_not_logged) return;
  server.CreateTimer(
      ctx, 0, [](Ctx* later, void*) noexcept { server.Replicate(later, "TAMIS.DOUBTALL", ""); },
      nullptr);
}

// A filter that stood elsewhere now has a name that adds were sent to meanwhile. The event names
// two databases, not the keys in them, so no filter is believed.
void OnDatabasesSwapped(Ctx* ctx, ServerEvent, uint64_t, void*) noexcept {
  if (!faults.moved_is_believed) DoubtAll(ctx);
}

void OnPersistence(Ctx*, ServerEvent, uint64_t what, void*) noexcept {
  saves_file = what != kSavingEnded && what != kSavingFailed;
  saves_log = what == kSavesLog || what == kSavesLogInBackground;
}

void OnLoading(Ctx*, ServerEvent, uint64_t what, void*) noexcept {
  loads_first_copy = what == kLoadsFirstCopy;
  loads_log = what == kLoadsLog;
}

}  // namespace

int RegisterTrust(Ctx* ctx) {
  return SubscribeToReplicas(ctx) == kOk && RegisterTrustedKeys(ctx) == kOk &&
                 server.SubscribeToServerEvent(ctx, kRoleChanged, OnRoleChange) == kOk &&
                 server.SubscribeToServerEvent(ctx, kPersistence, OnPersistence) == kOk &&
                 server.SubscribeToServerEvent(ctx, kLoading, OnLoading) == kOk &&
                 server.SubscribeToServerEvent(ctx, kDatabasesSwapped, OnDatabasesSwapped) == kOk
             ? kOk
             : kErr;
}

uint64_t TrustEpoch() { return trust_epoch; }

uint64_t TrustEpochToSave() {
  if (faults.dumps_are_trusted || faults.copies_are_believed) return trust_epoch;
  return saves_file && (!IsReplica(nullptr) || faults.replicas_log_trust) ? trust_epoch
                                                                          : kNoTrustEpoch;
}

bool SavesLog() { return saves_log; }

void DoubtAll(Ctx* ctx) {
  ++trust_epoch;
  SignalTrustedKeys(ctx);
}

void CommandLost(Ctx* ctx, bool says_so) noexcept {
  if (LimitsApply(ctx)) return;
  ++metrics.commands_lost;
  server.Log(ctx, "warning",
             "memory does not suffice for a command that another server has done; what it adds is "
             "missing here, and %s no longer believed",
             says_so ? "the filter is" : "filters with GUARD and those of BF.* and CF.* are");
  if (says_so) return;
  DoubtAll(ctx);
  chains_believed = false;
}

void CommandRefused(Ctx* ctx, bool items) noexcept {
  if (LimitsApply(ctx)) return;
  ++metrics.commands_lost;
  server.Log(ctx, "warning",
             "a command that another server has done is refused here: its words are not "
             "understood%s",
             items ? "; its items are missing, and filters with GUARD and those of BF.* and CF.* "
                     "are no longer believed"
                   : "; its filter is made by the next command that adds to it, with other "
                     "options");
  if (!items) return;
  DoubtAll(ctx);
  chains_believed = false;
}

bool ChainsBelieved() { return chains_believed || faults.incomplete_is_believed; }

bool LoadsFiles(Ctx* ctx) { return (server.GetContextFlags(ctx) & kFlagLoading) != 0; }

bool MayTrust(Ctx* ctx) {
  if (!LoadsFiles(ctx) || loads_first_copy) return true;
  return settings.trust_after_restart && (!IsReplica(ctx) || faults.old_copies_are_believed);
}

void DoubtInOwnLog(Ctx* ctx, String* key) {
  if (IsReplica(ctx) && !faults.replicas_log_trust) {
    server.Replicate(ctx, "TAMIS.DOUBT", "sR", key);
  }
}

// The server logs RESTORE after the module has read the value, so that what is to stand behind it
// comes from a timer, which runs before the log is written. By then another command may have given
// the name to another filter, of which nothing is written.
void DisownInLog(Ctx* ctx, int database, std::string_view key, const TrustedFilter& filter) {
  if (!filter.metadata().was_in_log || faults.log_of_another_is_believed) return;
  struct Restored {
    int database;
    std::string key;
    uint64_t generation;
  };
  auto restored =
      std::make_unique<Restored>(Restored{database, std::string(key), filter.generation()});
  server.CreateTimer(
      ctx, 0,
      [](Ctx* later, void* data) noexcept {
        const std::unique_ptr<Restored> restored(static_cast<Restored*>(data));
        if (server.SelectDb(later, restored->database) != kOk) return;
        String* const name = server.CreateString(later, restored->key.data(), restored->key.size());
        {
          const FilterKey<TrustedFilter> there(later, name, kRead);
          if (there.get() != nullptr && there->generation() == restored->generation) {
            server.Replicate(later, "TAMIS.DOUBT", "s", name);
            if (there->window() != nullptr) ReplicateSlice(later, name, *there);
          }
        }
        server.FreeString(later, name);
      },
      restored.release());
}

void TrustLoaded(Ctx* ctx, TrustedFilter* filter) {
  const bool loading = LoadsFiles(ctx);
  if (filter->partial()) return;
  if (Window* const window = filter->window()) {
    // The wall clocks of two servers are not compared.
    const bool own = loading && !loads_first_copy && (!loads_log || filter->metadata().was_in_log);
    window->Resume(PresentMoment(), own);
  }
  if ((!loading && !faults.copies_are_believed) || !MayTrust(ctx)) return;
  // The base of a log that is not of this server's making is its primary's first copy, which lacks
  // what the primary did later.
  const bool own = !loads_log || filter->metadata().was_in_log || faults.replicas_log_trust ||
                   faults.dumps_are_trusted;
  if (!own) return;
  if (filter->metadata().was_trusted) filter->Trust(trust_epoch);
  if (TrustedFilter::Rebuild* rebuild = filter->rebuild(); rebuild && rebuild->was_sound) {
    rebuild->sound_epoch = trust_epoch;
  }
}

bool Believed(Ctx* ctx, const TrustedFilter& filter) {
  if (filter.empty()) return false;
  if (filter.metadata().incomplete && !faults.incomplete_is_believed) return false;
  if (!filter.metadata().guard) return true;
  if (!filter.IsTrustedIn(trust_epoch)) return false;
  if (IsReplica(ctx)) return settings.trust_on_replicas;
  return settings.guard_min_replicas == 0 ||
         ReplicasFollow(ctx, settings.guard_min_replicas, settings.guard_max_lag);
}

}  // namespace tamis::redis
