#include "tamis/cli/guard_load.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "tamis/cli/line_writer.h"
#include "tamis/guard/filter_rebuild.h"
#include "tamis/guard/key_repeats.h"
#include "tamis/guard/open_transactions.h"
#include "tamis/guard/shown_key.h"

namespace tamis {
namespace {

// Sleeps; kCancelled as soon as the user has interrupted the program.
Status Pause(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    if (guard_cancelled) return Cancelled("stopped");
    std::this_thread::sleep_for(std::min(time, std::chrono::milliseconds(50)));
  }
  return Status::Ok();
}

// Pauses, and keeps the server's lease of the rebuild alive.
Status PauseAndKeep(std::chrono::milliseconds time, FilterRebuild* rebuild) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    TAMIS_RETURN_IF_ERROR(rebuild->Keep());
    TAMIS_RETURN_IF_ERROR(Pause(std::min(time, std::chrono::milliseconds(1000))));
  }
  return Status::Ok();
}

// Waits until every transaction that may have added a key before the rebuild began has ended.
Status AwaitOthers(const GuardArguments& arguments, FilterRebuild* rebuild) {
  if (!arguments.database.empty()) {
    TAMIS_ASSIGN_OR_RETURN(OpenTransactions open, OpenTransactions::Of(arguments.database));
    std::string told;
    while (true) {
      TAMIS_ASSIGN_OR_RETURN(const bool ended, open.HaveEnded());
      if (ended) break;
      if (told != open.example()) {
        arguments.Say(fmt::format("waiting for {} transactions that began before: {}", open.size(),
                                  open.example()));
      }
      told = open.example();
      TAMIS_RETURN_IF_ERROR(PauseAndKeep(std::chrono::milliseconds(200), rebuild));
    }
  }
  if (arguments.settle_s == GuardArguments::kNone || arguments.settle_s == 0) return Status::Ok();
  arguments.Say(fmt::format("waiting for {} s", arguments.settle_s));
  return PauseAndKeep(std::chrono::seconds(arguments.settle_s), rebuild);
}

// The capacity of the present filter of this key; 0 = there is none. A filter without GUARD is an
// error: it is believed also where adds may be lost, and a rebuild does not change that. So is one
// with WINDOW, which has no rebuild.
Result<uint64_t> CapacityOf(RedisConnection* connection, const std::string& key) {
  TAMIS_ASSIGN_OR_RETURN(const RedisReply info, connection->Ask({"TAMIS.INFO", key}));
  if (info.is_error() && info.text() == "ERR not found") return uint64_t{0};
  if (info.is_error()) return connection->ErrorOf(info);
  uint64_t capacity = 0;
  bool has_guard = true;
  bool has_window = false;
  for (size_t i = 0; i + 1 < info.size(); i += 2) {
    if (info.text(i) == "Capacity") capacity = static_cast<uint64_t>(info.integer(i + 1));
    if (info.text(i) == "Guard") has_guard = info.integer(i + 1) != 0;
    if (info.text(i) == "Window") has_window = info.integer(i + 1) != 0;
  }
  const std::string cannot = "cannot load the filter \"" + key + "\": it was made ";
  const std::string without_guard =
      "without GUARD, so it refuses rows whose adds were lost in a restart; ";
  if (has_window) {
    return FailedPrecondition(
        cannot + "with WINDOW" +
        (has_guard
             ? "; it is filled by TAMIS.ADD alone: "
             : " and " + without_guard + "UNLINK it and make it by TAMIS.RESERVE with both; ") +
        "once it has had every add for a whole window, send TAMIS.TRUST");
  }
  if (!has_guard) {
    return FailedPrecondition(cannot + without_guard + "UNLINK it, then load makes one with GUARD");
  }
  return capacity;
}

// Ends a rebuild that its program left behind, when it was killed or the server restarted. A
// program that is alive renews its lease: then this is an error, unless it is to be replaced.
Status EndAbandoned(const GuardArguments& arguments, RedisConnection* connection) {
  const auto failed = [&](const std::string& why) {
    return FailedPrecondition(
        fmt::format("cannot rebuild \"{}\": {}; `tamis guard abort` ends that rebuild, --replace "
                    "begins another one in its place",
                    arguments.key, why));
  };
  std::optional<FilterRebuild::UnderWay> before;
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(const auto now, FilterRebuild::Look(connection, arguments.key));
    if (!now) return Status::Ok();
    if (now->lease_s == 0 || !now->may_commit || arguments.replace) {
      arguments.Say(fmt::format("rebuild {} is ended{}", now->id,
                                arguments.replace ? "" : ": its program is no more"));
      TAMIS_RETURN_IF_ERROR(FilterRebuild::End(connection, arguments.key, now->id));
      before.reset();
      continue;
    }
    if (before && (before->id != now->id || before->lease_s < now->lease_s)) {
      return failed(fmt::format("another program is filling rebuild {}", now->id));
    }
    if (now->lease_s > FilterRebuild::kLease) {
      return failed(
          fmt::format("rebuild {} is reserved for {} s more for the load that will fill it",
                      now->id, now->lease_s));
    }
    if (!before) {
      arguments.Say(fmt::format("waiting for {} s at most: is the program of rebuild {} alive?",
                                now->lease_s, now->id));
    }
    before = now;
    TAMIS_RETURN_IF_ERROR(Pause(std::chrono::milliseconds(250)));
  }
}

Result<FilterRebuild> BeginRebuild(const GuardArguments& arguments, RedisConnection* connection) {
  FilterRebuild::Options options{arguments.fpr, arguments.capacity, arguments.type};
  TAMIS_ASSIGN_OR_RETURN(const uint64_t present, CapacityOf(connection, arguments.key));
  if (options.capacity == 0) options.capacity = present;
  if (options.capacity == 0) {
    return InvalidArgument("cannot make the filter \"" + arguments.key +
                           "\": give --capacity ROWS");
  }
  TAMIS_RETURN_IF_ERROR(EndAbandoned(arguments, connection));
  return FilterRebuild::Start(connection, arguments.key, options);
}

Status CheckWaiting(const GuardArguments& arguments) {
  if (!arguments.database.empty() || arguments.settle_s != GuardArguments::kNone)
    return Status::Ok();
  return InvalidArgument(
      "cannot load: transactions that are open at the start must end first, or their rows are "
      "lost; give --database (PostgreSQL), or --settle SECONDS, longer than any transaction takes "
      "from its TAMIS.ADD to its commit (0 if there are no writers)");
}

// The keys that were loaded, for messages: how many, and the first one.
struct Loaded {
  uint64_t keys = 0;
  std::string first;  // the form in which it is shown
};

// A sentence for a source that prints keys more than once; each repetition takes room in the
// filter.
std::string NotUnique(const KeyRepeats& repeats) {
  return fmt::format("{:.0f} % of the keys were read before: the column is not unique",
                     repeats.Share() * 100);
}

// The status of a fill that failed. If the filter is full because keys are repeated, it says so: a
// greater filter would not help.
Status FillError(const Status& status, const KeyRepeats& repeats) {
  constexpr double kFew = 0.05;
  if (status.code() != StatusCode::kResourceExhausted || repeats.Share() < kFew) return status;
  return ResourceExhausted("the new filter is full; " + NotUnique(repeats) +
                           ", and each copy takes room; read a unique column, or say with "
                           "--capacity how many rows there are, not how many keys");
}

// Reads all keys of the source into the rebuild; fails if the source may be incomplete. With
// --mark-first the first line is the mark.
Result<Loaded> ReadInto(const GuardArguments& arguments, FilterRebuild* rebuild,
                        std::string* mark) {
  TAMIS_ASSIGN_OR_RETURN(KeySource::Options options, arguments.Source());
  if (arguments.id != GuardArguments::kNone && arguments.command.empty()) options.query.clear();
  options.marked_end = options.command.empty() && options.query.empty();
  options.proved = !arguments.proof.empty() || !arguments.query.empty();
  TAMIS_ASSIGN_OR_RETURN(KeySource source, KeySource::Open(options, &guard_cancelled,
                                                           [rebuild] { return rebuild->Keep(); }));
  if (arguments.mark_first) {
    TAMIS_ASSIGN_OR_RETURN(const std::optional<std::string_view> first, source.TakeFirstLine());
    if (!first || first->empty() || first->size() > 1024) {
      return DataLoss("the first line is to be the mark, of 1 to 1024 bytes");
    }
    *mark = *first;
  }
  Loaded loaded;
  KeyRepeats repeats;
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(const std::optional<std::string_view> key, source.Next());
    if (!key) break;
    if (loaded.keys == 0) loaded.first = ShownKey(*key);
    repeats.Add(*key);
    const Status added = rebuild->Add(*key);
    if (!added.ok()) return FillError(added, repeats);
    if (++loaded.keys % 10'000'000 == 0) arguments.Say(fmt::format("{} rows read", loaded.keys));
  }
  if (source.nulls() > 0) arguments.Say(fmt::format("{} NULLs left out", source.nulls()));
  const Status finished = rebuild->Finish();
  if (!finished.ok()) return FillError(finished, repeats);
  if (repeats.Share() > 0) arguments.Say(NotUnique(repeats) + "; erases may leave copies behind");
  if (loaded.keys < arguments.at_least) {
    return FailedPrecondition(
        fmt::format("{} rows were read, but at least {} were expected (--at-least)", loaded.keys,
                    arguments.at_least));
  }
  return loaded;
}

// Checks that the new filter has every key that the source prints; else the loaded keys are not
// those of the rows. If `may_lack` (the load has a mark), rows that were inserted after the
// snapshot are missing in the filter, so half of the keys suffice.
Status ProveBy(const GuardArguments& arguments, const char* option, Result<KeySource> source,
               const Loaded& loaded, bool may_lack, FilterRebuild* rebuild) {
  constexpr size_t kGroup = 500;
  if (!source.ok()) return source.status();
  std::vector<std::string> group;
  std::vector<std::string> examples;
  uint64_t asked = 0;
  uint64_t missing = 0;
  const auto check = [&] {
    TAMIS_ASSIGN_OR_RETURN(const size_t lacks, rebuild->CountMissing(group, &examples));
    asked += group.size();
    missing += lacks;
    group.clear();
    return Status::Ok();
  };
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(const std::optional<std::string_view> key, source->Next());
    if (!key) break;
    group.emplace_back(*key);
    if (group.size() == kGroup) TAMIS_RETURN_IF_ERROR(check());
  }
  if (!group.empty()) TAMIS_RETURN_IF_ERROR(check());
  if (asked == 0 && loaded.keys > 0) {
    return FailedPrecondition(fmt::format("{} gave no key, though {} were loaded, such as {}",
                                          option, loaded.keys, loaded.first));
  }
  std::vector<std::string> shown;
  for (const std::string& example : examples) shown.push_back(ShownKey(example));
  if (missing > 0 && (!may_lack || missing * 2 > asked)) {
    return FailedPrecondition(
        fmt::format("{} of {} keys of {} are not among those that were loaded, such as {}; the "
                    "first one that was loaded is {}",
                    missing, asked, option, fmt::join(shown, ", "), loaded.first));
  }
  arguments.Say(fmt::format("proved by {} keys of {}", asked, option));
  return Status::Ok();
}

// Checks the new filter with keys that are read in another way than they were loaded.
Status Prove(const GuardArguments& arguments, const Loaded& loaded, bool has_mark,
             FilterRebuild* rebuild) {
  constexpr size_t kSample = 1000;
  const auto keep = [rebuild] { return rebuild->Keep(); };
  if (!arguments.query.empty()) {
    TAMIS_RETURN_IF_ERROR(ProveBy(
        arguments, "--query",
        KeySource::OpenSample(arguments.query, arguments.database, kSample, &guard_cancelled, keep),
        loaded, has_mark, rebuild));
  }
  if (!arguments.proof.empty()) {
    KeySource::Options options;
    options.command = arguments.proof;
    options.as_is = arguments.as_is;
    options.proved = true;
    TAMIS_ASSIGN_OR_RETURN(options.format, arguments.Format());
    TAMIS_RETURN_IF_ERROR(ProveBy(arguments, "--proof",
                                  KeySource::Open(options, &guard_cancelled, keep), loaded,
                                  has_mark, rebuild));
  }
  if (arguments.query.empty() && arguments.proof.empty() && !arguments.unproved) {
    arguments.Say(
        fmt::format("not proved: does the application ask with such keys as {}? "
                    "--proof has a second command print some",
                    loaded.first));
  }
  return Status::Ok();
}

Status CheckProof(const GuardArguments& arguments) {
  if (arguments.mark_first && arguments.command.empty() && arguments.id == GuardArguments::kNone) {
    return InvalidArgument("the first line of a query is a key: --mark-first goes with --command");
  }
  const bool proves = !arguments.query.empty() || !arguments.proof.empty();
  if (proves || arguments.unproved || arguments.database.empty()) return Status::Ok();
  return InvalidArgument(
      "say with --query which keys the database has, such as 'SELECT id FROM items', since a "
      "command that prints them in another form makes a filter that refuses every row; without "
      "--command the query reads them, too. Or give a second command with --proof, or --unproved");
}

Status FillAndCommit(const GuardArguments& arguments, FilterRebuild* rebuild, bool wait) {
  const auto begin = std::chrono::steady_clock::now();
  if (wait) TAMIS_RETURN_IF_ERROR(AwaitOthers(arguments, rebuild));
  const auto begin_reading = std::chrono::steady_clock::now();
  std::string mark = arguments.mark;
  TAMIS_ASSIGN_OR_RETURN(const Loaded loaded, ReadInto(arguments, rebuild, &mark));
  const auto end_reading = std::chrono::steady_clock::now();
  TAMIS_RETURN_IF_ERROR(Prove(arguments, loaded, !mark.empty(), rebuild));
  if (guard_cancelled) return Cancelled("stopped");
  TAMIS_RETURN_IF_ERROR(rebuild->Commit(mark));
  const uint64_t keys = loaded.keys;
  const std::chrono::duration<double> waited = begin_reading - begin;
  const std::chrono::duration<double> read = end_reading - begin_reading;
  arguments.Say(fmt::format("{}: {} rows, waited {:.1f} s, read in {:.1f} s ({:.0f} rows/s)",
                            arguments.key, keys, waited.count(), read.count(),
                            static_cast<double>(keys) / read.count()));
  return Status::Ok();
}

}  // namespace

Status LoadFilter(const GuardArguments& arguments) {
  const bool started_before = arguments.id != GuardArguments::kNone;
  if (arguments.command.empty() && arguments.query.empty() && !started_before) {
    return InvalidArgument(
        "cannot load lines of standard input: the program that prints them may have read the rows "
        "before the "
        "rebuild began; say --query or --command, or begin with `tamis guard start` and say its "
        "--id");
  }
  if (!started_before) TAMIS_RETURN_IF_ERROR(CheckWaiting(arguments));
  TAMIS_RETURN_IF_ERROR(CheckProof(arguments));
  TAMIS_ASSIGN_OR_RETURN(RedisConnection connection, arguments.Open());
  auto rebuild = started_before ? FilterRebuild::Take(&connection, arguments.key, arguments.id)
                                : BeginRebuild(arguments, &connection);
  if (!rebuild.ok()) return rebuild.status();
  Status status = FillAndCommit(arguments, &*rebuild, !started_before);
  if (status.ok()) return status;
  const Status aborted = rebuild->Abort();
  if (!aborted.ok()) arguments.Say("the rebuild could not be aborted: " + aborted.message());
  return status.WithContext("cannot load \"" + arguments.key + "\", which stays as it was");
}

Status StartRebuild(const GuardArguments& arguments) {
  TAMIS_RETURN_IF_ERROR(CheckWaiting(arguments));
  TAMIS_ASSIGN_OR_RETURN(RedisConnection connection, arguments.Open());
  TAMIS_ASSIGN_OR_RETURN(FilterRebuild rebuild, BeginRebuild(arguments, &connection));
  Status status = AwaitOthers(arguments, &rebuild);
  if (status.ok()) status = rebuild.KeepFor(arguments.hold_s);
  if (status.ok()) status = WriteOutput(fmt::format("{}\n", rebuild.id()));
  if (!status.ok()) (void)rebuild.Abort().ok();
  return status;
}

Status AbortRebuild(const GuardArguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(RedisConnection connection, arguments.Open());
  if (arguments.id != GuardArguments::kNone) {
    return FilterRebuild::Take(&connection, arguments.key, arguments.id).Abort();
  }
  return connection.Demand({"TAMIS.REBUILD", arguments.key, "ABORT"}).status();
}

}  // namespace tamis
