// Settings of the module, which `loadmodule` words, the configuration file and CONFIG SET change.
//
// An argument of a command overrides a setting, and a creation is replicated with all of its
// parameters: servers of different settings hold equal filters.
#pragma once

#include <cstdint>

#include "tamis/redis/server.h"

namespace tamis::redis {

struct Settings {
  double bf_error_rate = 0.01;
  long long bf_initial_size = 100;
  long long bf_expansion_factor = 2;
  long long cf_bucket_size = 2;
  long long cf_initial_size = 1024;
  long long cf_max_iterations = 20;
  long long cf_expansion_factor = 1;
  long long cf_max_expansions = 32;
  long long max_bytes = (1ll << 32);  // a key's; 0 = no limit
  // Bytes of filters that one command copies; the server stands still for that time; 0 = no limit.
  long long max_copied_bytes = 1ll << 24;
  // Seconds behind a commit in which nothing is erased: the row of an erase that was sent before
  // the commit may not be in the new filter.
  long long erase_delay = 60;
  // A primary believes a filter with GUARD while so many replicas have acknowledged within so many
  // seconds: it is not one that was cut off while another was promoted.
  long long guard_min_replicas = 0;
  long long guard_max_lag = 5;
  // A filter of valkey-bloom's kind is not made, and does not grow, beyond so many bytes.
  long long seeded_max_bytes = 128ll << 20;
  bool valkey_bloom = false;      // the filters that BF.* makes are of valkey-bloom's kind
  bool auto_create = true;        // BF.ADD and the like make a filter
  bool missing_is_error = false;  // EXISTS of a missing key is an error and not 0
  // Conditions under which a filter with GUARD is believed although its last adds may be missing.
  bool trust_after_restart = false;
  bool trust_on_replicas = false;
};

extern Settings settings;

// Reads the words behind `loadmodule`, pairs of a name and a value, and registers the settings with
// the server. kErr, and the log says why, when a word is not understood.
int RegisterSettings(Ctx* ctx, String** words, int count);

// Whether the limits bind this command: true for a client's, false for a command that another
// server has done already and that is replicated, or loaded from a log.
bool LimitsApply(Ctx* ctx);
// Whether a command that adds items may make the filter when the key is missing.
bool MayCreate(Ctx* ctx);
// How many bytes a key may have for this command.
uint64_t GreatestBytes(Ctx* ctx);
// How many bytes of filters this command may copy. nullptr: the command is COPY, for which the
// server does not say whether a client sent it; a replica gets no COPY from a client, so there it
// has no limit.
uint64_t GreatestCopiedBytes(Ctx* ctx);

}  // namespace tamis::redis
