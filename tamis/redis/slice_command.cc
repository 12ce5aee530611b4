#include "tamis/redis/slice_command.h"

#include <new>
#include <utility>

#include "tamis/redis/clock.h"
#include "tamis/redis/faults.h"
#include "tamis/redis/server_memory.h"
#include "tamis/redis/settings.h"
#include "tamis/redis/trust.h"

namespace tamis::redis {
namespace {

constexpr char kBadSlice[] = "ERR bad slice";

// False when memory does not suffice.
bool BeginSlice(TrustedFilter& filter, uint64_t number, uint64_t elapsed_ms, Moment now) try {
  const FilterOptions options =
      Window::SliceOptions(filter.OptionsOfWindow(), filter.window()->slices());
  auto fresh = AnyFilter::Create(filter.filter().type().name, options);
  if (!fresh.ok()) return false;
  auto over = filter.BeginSlice(number, elapsed_ms, now, std::move(*fresh));
  size_t bytes = 0;
  for (const Window::Slice& slice : over) bytes += slice.filter->SizeBytes();
  FreeLater(std::move(over), bytes);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

bool ParseNatural(const String* word, uint64_t* value) {
  long long number = 0;
  if (!ParseInteger(word, &number) || number < 0) return false;
  *value = static_cast<uint64_t>(number);
  return true;
}

// TAMIS.SLICE key BEGIN number elapsed_ms wall_ms: the newest slice has this number, and began so
// long before the command was sent, at this time of the sender's wall clock.
void Begin(Ctx* ctx, Words words, TrustedFilter& filter) {
  uint64_t number = 0;
  uint64_t elapsed_ms = 0;
  uint64_t wall_ms = 0;
  if (!ParseNatural(words[3], &number) || !ParseNatural(words[4], &elapsed_ms) ||
      !ParseNatural(words[5], &wall_ms) || number > uint64_t{1} << 62) {
    server.ReplyWithError(ctx, kBadSlice);
    return;
  }
  const Moment now = PresentMoment();
  // In this server's own log the time since then counts. Another server's wall clock may differ.
  const bool logged = (server.GetContextFlags(ctx) & kFlagLoading) != 0;
  if ((logged || faults.time_under_way_counts) && now.wall_ms > static_cast<int64_t>(wall_ms)) {
    elapsed_ms += static_cast<uint64_t>(now.wall_ms) - wall_ms;
  }
  Window& window = *filter.window();
  if (number > window.newest()) {
    if (!BeginSlice(filter, number, elapsed_ms, now)) {
      // The items that are added go to an older slice, and would be forgotten too early.
      filter.set_incomplete();
      CommandLost(ctx, true);
      server.ReplyWithError(ctx, kNoMemory);
      return;
    }
  } else if (number == window.newest()) {
    window.SetElapsed(elapsed_ms, now);
  }
  ReplicateSlice(ctx, words[1], filter);
  Notify(ctx, "tamis.slice", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

// TAMIS.SLICE key DEL number item...: erases as the server did that sends it.
void EraseSince(Ctx* ctx, Words words, TrustedFilter& filter) {
  uint64_t since = 0;
  if (!ParseNatural(words[3], &since)) {
    server.ReplyWithError(ctx, kBadSlice);
    return;
  }
  for (const String* item : words.subspan(4)) filter.Erase(TextOf(item), since);
  server.ReplicateVerbatim(ctx);
  Notify(ctx, "tamis.del", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

}  // namespace

void ReplicateSlice(Ctx* ctx, String* name, TrustedFilter& filter) {
  if (faults.slices_are_not_sent) return;
  const Moment now = PresentMoment();
  filter.window()->WallClockIsLogged(now);
  server.Replicate(
      ctx, "TAMIS.SLICE", "sclll", name, "BEGIN", static_cast<long long>(filter.window()->newest()),
      static_cast<long long>(filter.window()->ElapsedMs(now)), static_cast<long long>(now.wall_ms));
}

void ReplicateErase(Ctx* ctx, String* name, uint64_t since, std::span<String*> items) {
  server.Replicate(ctx, "TAMIS.SLICE", "sclv", name, "DEL", static_cast<long long>(since),
                   items.data(), items.size());
}

const char* BeginSliceIfDue(Ctx* ctx, String* name, TrustedFilter& filter) {
  const Window* const window = filter.window();
  if (window == nullptr || !LimitsApply(ctx)) return nullptr;
  const Moment now = PresentMoment();
  const uint64_t number = window->NumberAt(now);
  if (number == window->newest()) {
    if (window->WallClockWasSet(now)) ReplicateSlice(ctx, name, filter);
    return nullptr;
  }
  if (Window::BytesOfSlices(filter.filter().type(), filter.OptionsOfWindow(), window->slices()) >
      static_cast<double>(GreatestBytes(ctx))) {
    return "ERR the next slice of the window would make the filter greater than tamis-max-bytes";
  }
  if (!BeginSlice(filter, number, window->ElapsedInSliceMs(now), now)) return kNoMemory;
  ReplicateSlice(ctx, name, filter);
  Notify(ctx, "tamis.slice", name);
  return nullptr;
}

void Slice(Ctx* ctx, Words words) {
  if (LimitsApply(ctx)) {
    server.ReplyWithError(
        ctx,
        "ERR servers send TAMIS.SLICE to replicas and logs; clients send TAMIS.ADD "
        "and TAMIS.DELIF");
    return;
  }
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Whole(ctx, key)) return;
  if (key->window() == nullptr) {
    server.ReplyWithError(ctx, "ERR the filter has no WINDOW");
    return;
  }
  if (Is(words[2], "BEGIN") && words.size() == 6) return Begin(ctx, words, *key);
  if (Is(words[2], "DEL") && words.size() >= 5) return EraseSince(ctx, words, *key);
  server.ReplyWithError(ctx, kBadSlice);
}

}  // namespace tamis::redis
