#include "tamis/redis/settings.h"

#include <strings.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include "tamis/redis/faults.h"

namespace tamis::redis {

Settings settings;

namespace {

// From Redis 8: the name stands without that of the module. Valkey, whose versions are numbered
// again, warns of it or takes it for something else.
constexpr unsigned kUnprefixed = 1 << 9;
constexpr int kVersion8 = 8 << 16;

struct Number {
  const char* name;
  const char* old_name;  // "" = none
  long long Settings::*value;
  long long least;
  long long greatest;
};

// The server checks nothing: its message is another one than clients know.
constexpr long long kAnyLeast = std::numeric_limits<long long>::min();
constexpr long long kAnyGreatest = std::numeric_limits<long long>::max();

constexpr long long kCapacity = 1ll << 30;
constexpr Number kNumbers[] = {
    {"bloom-memory-usage-limit", "", &Settings::seeded_max_bytes, 0, 1ll << 62},
    {"bf-initial-size", "INITIAL_SIZE", &Settings::bf_initial_size, 1, kCapacity},
    {"bf-expansion-factor", "", &Settings::bf_expansion_factor, 0, 32768},
    {"cf-bucket-size", "", &Settings::cf_bucket_size, 1, 255},
    {"cf-initial-size", "", &Settings::cf_initial_size, 2, kCapacity},
    {"cf-max-iterations", "", &Settings::cf_max_iterations, 1, 65535},
    {"cf-expansion-factor", "", &Settings::cf_expansion_factor, 0, 32768},
    {"cf-max-expansions", "CF_MAX_EXPANSIONS", &Settings::cf_max_expansions, 1, 65536},
    {"tamis-erase-delay", "", &Settings::erase_delay, 0, 86400},
    {"tamis-guard-max-lag", "", &Settings::guard_max_lag, 2, 86400},
    {"tamis-guard-min-replicas", "", &Settings::guard_min_replicas, 0, 1000},
    {"tamis-max-copied-bytes", "", &Settings::max_copied_bytes, 0, 1ll << 62},
    {"tamis-max-bytes", "", &Settings::max_bytes, 0, 1ll << 62},
};

struct Flag {
  const char* name;
  bool Settings::*value;
};

constexpr Flag kFlags[] = {
    {"tamis-auto-create", &Settings::auto_create},
    {"tamis-missing-is-error", &Settings::missing_is_error},
    {"tamis-trust-after-restart", &Settings::trust_after_restart},
    {"tamis-trust-on-replicas", &Settings::trust_on_replicas},
    {"tamis-valkey-bloom", &Settings::valkey_bloom},
};

// Settings that are there with a fault only.
struct TestNumber {
  const char* name;
  bool Faults::*fault;
  long long* value;
};

constexpr TestNumber kTestNumbers[] = {
    {"tamis-failing-allocation", &Faults::allocations, &failing_allocation},
    {"tamis-running-clock", &Faults::clocks, &running_clock},
    {"tamis-wall-clock", &Faults::clocks, &wall_clock},
};

constexpr char kErrorRate[] = "bf-error-rate";

// nullptr, or what is wrong. Bucket size and initial size bound one another.
const char* CheckNumber(const Number& number, long long value) {
  static char error[160];
  if (value < number.least || value > number.greatest) {
    std::snprintf(error, sizeof(error), "%s must be in the range [%lld, %lld]", number.name,
                  number.least, number.greatest);
    return error;
  }
  const long long bucket =
      number.value == &Settings::cf_bucket_size ? value : settings.cf_bucket_size;
  const long long size =
      number.value == &Settings::cf_initial_size ? value : settings.cf_initial_size;
  if (bucket * 2 > size) {
    std::snprintf(error, sizeof(error),
                  number.value == &Settings::cf_bucket_size
                      ? "cf-bucket-size must be in the range [1, cf-initial-size / 2 = %lld]"
                      : "cf-initial-size must be in the range [2 * cf-bucket-size = %lld, 2^30]",
                  number.value == &Settings::cf_bucket_size ? size / 2 : bucket * 2);
    return error;
  }
  return nullptr;
}

const char* CheckErrorRate(double value) {
  return value > 0 && value < 1 ? nullptr : "bf-error-rate must be in the range (0, 1)";
}

String* Text(const char* text) {
  return server.CreateString(nullptr, text, std::string_view(text).size());
}

int SetNumberSetting(const char*, long long value, void* privdata, String** error) {
  const auto& number = *static_cast<const Number*>(privdata);
  if (const char* wrong = CheckNumber(number, value)) {
    *error = Text(wrong);
    return kErr;
  }
  settings.*number.value = value;
  return kOk;
}

long long GetNumberSetting(const char*, void* privdata) {
  return settings.*static_cast<const Number*>(privdata)->value;
}

int SetFlagSetting(const char*, int value, void* privdata, String**) {
  settings.*static_cast<const Flag*>(privdata)->value = value != 0;
  return kOk;
}

int GetFlagSetting(const char*, void* privdata) {
  return settings.*static_cast<const Flag*>(privdata)->value ? 1 : 0;
}

int SetErrorRate(const char*, String* text, void*, String** error) {
  double value = 0;
  const char* wrong = server.StringToDouble(text, &value) != kOk
                          ? "bf-error-rate must be a number in the range (0, 1)"
                          : CheckErrorRate(value);
  if (wrong != nullptr) {
    *error = Text(wrong);
    return kErr;
  }
  settings.bf_error_rate = value;
  return kOk;
}

String* GetErrorRate(const char*, void*) {
  // The server reads it and does not free it: one string, replaced each time.
  static String* last = nullptr;
  if (last != nullptr) server.FreeString(nullptr, last);
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", settings.bf_error_rate);
  double shortest = 0;
  for (int digits = 1; digits < 17 && shortest != settings.bf_error_rate; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, settings.bf_error_rate);
    shortest = std::strtod(text, nullptr);
  }
  if (shortest != settings.bf_error_rate) {
    std::snprintf(text, sizeof(text), "%.17g", settings.bf_error_rate);
  }
  last = Text(text);
  return last;
}

// nullptr, or what is wrong.
const char* ReadWord(String* name_word, String* value_word) {
  const char* name = server.StringPtrLen(name_word, nullptr);
  if (strcasecmp(name, kErrorRate) == 0 || strcasecmp(name, "ERROR_RATE") == 0) {
    double value = 0;
    if (server.StringToDouble(value_word, &value) != kOk) return "is no number";
    if (const char* wrong = CheckErrorRate(value)) return wrong;
    settings.bf_error_rate = value;
    return nullptr;
  }
  for (const Number& number : kNumbers) {
    if (strcasecmp(name, number.name) != 0 &&
        (*number.old_name == '\0' || strcasecmp(name, number.old_name) != 0)) {
      continue;
    }
    long long value = 0;
    if (server.StringToLongLong(value_word, &value) != kOk) return "is no number";
    if (const char* wrong = CheckNumber(number, value)) return wrong;
    settings.*number.value = value;
    return nullptr;
  }
  for (const Flag& flag : kFlags) {
    if (strcasecmp(name, flag.name) != 0) continue;
    const char* value = server.StringPtrLen(value_word, nullptr);
    const bool yes = strcasecmp(value, "yes") == 0;
    if (!yes && strcasecmp(value, "no") != 0) return "must be yes or no";
    settings.*flag.value = yes;
    return nullptr;
  }
  for (const TestNumber& number : kTestNumbers) {
    if (strcasecmp(name, number.name) != 0 || !(faults.*number.fault)) continue;
    return server.StringToLongLong(value_word, number.value) == kOk ? nullptr : "is no number";
  }
  if (strcasecmp(name, "tamis-fault") == 0) {
    const char* const fault = server.StringPtrLen(value_word, nullptr);
    if (!SetFault(fault)) return "is no fault";
    server.Log(nullptr, "warning", "tamis-fault %s: ROWS WILL BE REFUSED. This is for tests only",
               fault);
    return nullptr;
  }
  return "is no setting of this module; docs/REDIS.md lists them";
}

}  // namespace

int RegisterSettings(Ctx* ctx, String** words, int count) {
  if (count % 2 != 0) {
    server.Log(ctx, "warning",
               "loadmodule: the words behind the path are pairs of a name and a "
               "value; there are %d",
               count);
    return kErr;
  }
  for (int i = 0; i < count; i += 2) {
    if (const char* wrong = ReadWord(words[i], words[i + 1])) {
      server.Log(ctx, "warning", "loadmodule: \"%s %s\": %s",
                 server.StringPtrLen(words[i], nullptr), server.StringPtrLen(words[i + 1], nullptr),
                 wrong);
      return kErr;
    }
  }
  const unsigned flags =
      server.GetServerVersion() >= kVersion8 && !server.is_valkey ? kUnprefixed : 0;
  // The words' values become the defaults, which the configuration file may still change.
  for (const Number& number : kNumbers) {
    if (server.RegisterNumericConfig(ctx, number.name, settings.*number.value, flags, kAnyLeast,
                                     kAnyGreatest, GetNumberSetting, SetNumberSetting, nullptr,
                                     const_cast<Number*>(&number)) != kOk) {
      return kErr;
    }
  }
  for (const Flag& flag : kFlags) {
    if (server.RegisterBoolConfig(ctx, flag.name, settings.*flag.value ? 1 : 0, flags,
                                  GetFlagSetting, SetFlagSetting, nullptr,
                                  const_cast<Flag*>(&flag)) != kOk) {
      return kErr;
    }
  }
  String* rate = GetErrorRate(nullptr, nullptr);
  const std::string text = server.StringPtrLen(rate, nullptr);
  if (server.RegisterStringConfig(ctx, kErrorRate, text.c_str(), flags, GetErrorRate, SetErrorRate,
                                  nullptr, nullptr) != kOk) {
    return kErr;
  }
  for (const TestNumber& number : kTestNumbers) {
    if (!(faults.*number.fault)) continue;
    if (server.RegisterNumericConfig(
            ctx, number.name, *number.value, flags, 0, kAnyGreatest,
            [](const char*, void* data) { return *static_cast<const TestNumber*>(data)->value; },
            [](const char*, long long value, void* data, String**) {
              *static_cast<const TestNumber*>(data)->value = value;
              return kOk;
            },
            nullptr, const_cast<TestNumber*>(&number)) != kOk) {
      return kErr;
    }
  }
  return server.LoadConfigs(ctx);
}

bool LimitsApply(Ctx* ctx) {
  return (server.GetContextFlags(ctx) & (kFlagReplicated | kFlagLoading)) == 0;
}

bool MayCreate(Ctx* ctx) { return settings.auto_create || !LimitsApply(ctx); }

uint64_t GreatestBytes(Ctx* ctx) {
  if (settings.max_bytes == 0 || !LimitsApply(ctx)) return ~uint64_t{0};
  return static_cast<uint64_t>(settings.max_bytes);
}

uint64_t GreatestCopiedBytes(Ctx* ctx) {
  const int flags = server.GetContextFlags(ctx);
  const int unbound = kFlagLoading | (ctx == nullptr ? kFlagSlave : kFlagReplicated);
  if (settings.max_copied_bytes == 0 || (flags & unbound) != 0) return ~uint64_t{0};
  return static_cast<uint64_t>(settings.max_copied_bytes);
}

}  // namespace tamis::redis
