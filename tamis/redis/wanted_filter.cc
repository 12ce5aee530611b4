#include "tamis/redis/wanted_filter.h"

#include <cstdio>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/redis/option_words.h"
#include "tamis/redis/settings.h"
#include "tamis/redis/trust.h"

namespace tamis::redis {
namespace {

constexpr char kDefaultType[] = "blocked-quotient";
// A slice has a low rate, which this one has in small steps: each bit halves it.
constexpr char kDefaultTypeOfSlices[] = "cuckoo";

}  // namespace

std::string WantedFilter::Rate() const {
  char rate[32];
  std::snprintf(rate, sizeof(rate), "%.17g", options.fpr);
  return rate;
}

double WantedFilter::BytesOfOne() const { return Window::BytesOfFilter(*type, OptionsOfOne()); }

double WantedFilter::RateAtCapacity() const {
  const std::vector<double> rates(slices + 1, AnyFilter::FprAtCapacity(*type, OptionsOfOne().fpr));
  return Window::RateOver(rates);
}

bool ReadWanted(Ctx* ctx, Words words, Purpose purpose, WantedFilter* wanted) {
  const auto error = [&](const std::string& text) {
    server.ReplyWithError(ctx, text.c_str());
    return false;
  };
  FilterOptions& options = wanted->options;
  long long number = 0;
  if (!ParseDouble(words[0], &options.fpr)) return error("ERR bad error rate");
  if (!ParseInteger(words[1], &number) || number < 1) return error("ERR bad capacity");
  options.capacity = static_cast<uint64_t>(number);
  const String* type = nullptr;
  std::optional<long long> seed;
  std::optional<long long> id;
  std::optional<long long> lease;
  std::optional<long long> window;
  std::optional<long long> slices;
  std::vector<Option> known = {{.name = "TYPE", .value = &type, .no_value = kUnknownWord}};
  if (purpose != Purpose::kSize) {
    known.push_back(
        {.name = "SEED", .value = &seed, .bad = "ERR bad seed", .no_value = kUnknownWord});
  }
  if (purpose == Purpose::kReserve) {
    known.push_back({"GUARD", &wanted->guard});
    known.push_back({.name = "WINDOW",
                     .value = &window,
                     .bad = "ERR bad window: it is 1 to 1000000000 seconds",
                     .least = 1,
                     .greatest = Window::kGreatestSeconds,
                     .no_value = kUnknownWord});
  }
  if (purpose != Purpose::kRebuild) {
    known.push_back({.name = "SLICES",
                     .value = &slices,
                     .bad = "ERR bad slices: a window has 1 to 64",
                     .least = 1,
                     .greatest = Window::kGreatestSlices,
                     .no_value = kUnknownWord});
  }
  if (purpose == Purpose::kRebuild) {
    known.push_back(
        {.name = "ID", .value = &id, .bad = "ERR bad id", .least = 0, .no_value = kUnknownWord});
    known.push_back({.name = "LEASE",
                     .value = &lease,
                     .bad = kBadLease,
                     .least = 0,
                     .greatest = kGreatestLease,
                     .no_value = kUnknownWord});
  }
  if (!ReadOptions(ctx, words, 2, known)) return false;
  // Random values, which replicas receive.
  options.seed = seed ? static_cast<uint64_t>(*seed) : SeedFromSystem();
  // One that every language can hold.
  wanted->id = id ? static_cast<uint64_t>(*id) : SeedFromSystem() >> 11;
  if (lease) wanted->lease_s = static_cast<uint64_t>(*lease);
  if (slices && !window && purpose == Purpose::kReserve) {
    return error("ERR SLICES are those of a WINDOW: say its seconds");
  }
  if (window) wanted->window_s = static_cast<uint64_t>(*window);
  if (slices || window) {
    wanted->slices = slices ? static_cast<uint64_t>(*slices) : Window::kDefaultSlices;
  }
  for (const FilterOptions& checked : {options, wanted->OptionsOfOne()}) {
    const Status status = checked.Validate();
    if (!status.ok()) return error("ERR " + status.message());
  }
  const std::string_view by_default = wanted->slices == 0 ? kDefaultType : kDefaultTypeOfSlices;
  wanted->type = AnyFilter::FindType(type == nullptr ? by_default : TextOf(type));
  // A type that is not known may come from the wire with any bytes: they do not belong in an error.
  if (wanted->type == nullptr || wanted->type->fixed) {
    std::string names;
    for (const FilterType& known : AnyFilter::Types()) {
      if (!known.fixed) names += " " + std::string(known.name);
    }
    return error("ERR no such type; there are:" + names);
  }
  if (purpose == Purpose::kSize) return true;
  if (wanted->Bytes() > static_cast<double>(GreatestBytes(ctx))) {
    return error("ERR could not create filter: greater than tamis-max-bytes");
  }
  // An item may make all of its counters wider, several times in a command.
  constexpr double kWidened = 8;
  if (wanted->type->kind == FilterKind::kDynamicCount &&
      wanted->Bytes() * kWidened > static_cast<double>(GreatestCopiedBytes(ctx))) {
    return error(
        "ERR could not create filter: adding an item may copy a filter of this type, and it is "
        "greater than an eighth of tamis-max-copied-bytes");
  }
  return true;
}

std::optional<AnyFilter> Create(Ctx* ctx, const WantedFilter& wanted) {
  auto filter = AnyFilter::Create(wanted.type->name, wanted.OptionsOfOne());
  if (filter.ok()) return std::move(*filter);
  CommandLost(ctx, false);
  server.ReplyWithError(ctx, ("ERR " + filter.status().message()).c_str());
  return std::nullopt;
}

}  // namespace tamis::redis
