// tamis guard: filters on a Redis or Valkey server that keep lookups of rows that do not exist away
// from a database (docs/GUARD.md).
#include <fmt/core.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>
#include <unordered_set>

#include "tamis/cli/command.h"
#include "tamis/cli/interrupt.h"
#include "tamis/cli/line_writer.h"
#include "tamis/guard/change_feed.h"
#include "tamis/guard/filter_follower.h"
#include "tamis/guard/filter_rebuild.h"
#include "tamis/guard/key_repeats.h"
#include "tamis/guard/key_source.h"
#include "tamis/guard/open_transactions.h"
#include "tamis/guard/redis_connection.h"

namespace tamis {
namespace {

constexpr uint64_t kNoId = UINT64_MAX;

struct Arguments {
  std::string redis = "redis://localhost";
  std::string key;
  uint64_t timeout_s = 60;

  std::string command;
  std::string query;
  std::string proof;
  bool unproved = false;
  bool as_is = false;
  std::string format = "plain";
  std::string database;
  uint64_t settle_s = kNoId;  // not given
  uint64_t id = kNoId;
  uint64_t capacity = 0;
  uint64_t at_least = 1;
  double fpr = 0.01;
  std::string type;
  std::string mark;
  std::string after;
  uint64_t hold_s = 600;
  bool replace = false;
  bool mark_first = false;
  bool mark_only = false;
  bool quiet = false;
};

std::atomic<bool> cancelled = false;

void Say(const Arguments& arguments, const std::string& text) {
  if (!arguments.quiet) fmt::print(stderr, "{}\n", text);
}

Result<RedisConnection> Open(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(const RedisAddress address, RedisAddress::Parse(arguments.redis));
  return RedisConnection::Open(address, static_cast<int>(arguments.timeout_s * 1000));
}

Result<KeyReader::Format> FormatOf(const std::string& name) {
  if (name == "plain") return KeyReader::Format::kPlain;
  if (name == "lines") return KeyReader::Format::kLines;
  if (name == "null") return KeyReader::Format::kNull;
  if (name == "copy") return KeyReader::Format::kCopy;
  return InvalidArgument("there is no format \"" + name + "\"");
}

// Reads from the options where the keys come from.
Result<KeySource::Options> SourceOf(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(const KeyReader::Format format, FormatOf(arguments.format));
  if (!arguments.query.empty() && arguments.database.empty()) {
    return InvalidArgument("--query is asked of a PostgreSQL: say with --database which one");
  }
  KeySource::Options options;
  options.command = arguments.command;
  options.query = arguments.query;
  options.database = arguments.database;
  options.format = format;
  options.as_is = arguments.as_is;
  return options;
}

// Sleeps, unless somebody asked to stop.
Status Pause(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    if (cancelled) return Cancelled("stopped");
    std::this_thread::sleep_for(std::min(time, std::chrono::milliseconds(50)));
  }
  return Status::Ok();
}

// --- load --------------------------------------------------------------------------------------

// Pauses, and keeps the server's lease of the rebuild alive.
Status PauseAndKeep(std::chrono::milliseconds time, FilterRebuild* rebuild) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    TAMIS_RETURN_IF_ERROR(rebuild->Keep());
    TAMIS_RETURN_IF_ERROR(Pause(std::min(time, std::chrono::milliseconds(1000))));
  }
  return Status::Ok();
}

// Until every transaction that may have added a key before the rebuild began has ended.
Status AwaitOthers(const Arguments& arguments, FilterRebuild* rebuild) {
  if (!arguments.database.empty()) {
    TAMIS_ASSIGN_OR_RETURN(OpenTransactions open, OpenTransactions::Of(arguments.database));
    std::string told;
    while (true) {
      TAMIS_ASSIGN_OR_RETURN(const bool ended, open.HaveEnded());
      if (ended) break;
      if (told != open.example()) {
        Say(arguments, fmt::format("waiting for {} transactions that began before: {}", open.size(),
                                   open.example()));
      }
      told = open.example();
      TAMIS_RETURN_IF_ERROR(PauseAndKeep(std::chrono::milliseconds(200), rebuild));
    }
  }
  if (arguments.settle_s == kNoId || arguments.settle_s == 0) return Status::Ok();
  Say(arguments, fmt::format("waiting for {} s", arguments.settle_s));
  return PauseAndKeep(std::chrono::seconds(arguments.settle_s), rebuild);
}

// How many that a filter of this key had room for; 0 = there is none.
Result<uint64_t> CapacityOf(RedisConnection* connection, const std::string& key) {
  TAMIS_ASSIGN_OR_RETURN(const RedisReply info, connection->Ask({"TAMIS.INFO", key}));
  if (info.is_error() && info.text() == "ERR not found") return uint64_t{0};
  if (info.is_error()) return connection->ErrorOf(info);
  for (size_t i = 0; i + 1 < info.size(); i += 2) {
    if (info.text(i) == "Capacity") return static_cast<uint64_t>(info.integer(i + 1));
  }
  return uint64_t{0};
}

// Ends a rebuild that its program left behind, when it was killed or the server restarted. A
// program that is alive renews its lease: then this is an error, unless it is to be replaced.
Status EndAbandoned(const Arguments& arguments, RedisConnection* connection) {
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
      Say(arguments, fmt::format("rebuild {} is ended{}", now->id,
                                 arguments.replace ? "" : ": its program is no more"));
      TAMIS_RETURN_IF_ERROR(FilterRebuild::End(connection, arguments.key, now->id));
      before.reset();
      continue;
    }
    if (before && (before->id != now->id || before->lease_s < now->lease_s)) {
      return failed(fmt::format("another program is at it (rebuild {})", now->id));
    }
    if (now->lease_s > FilterRebuild::kLease) {
      return failed(fmt::format("rebuild {} is kept for {} s more for the load that is to fill it",
                                now->id, now->lease_s));
    }
    if (!before) {
      Say(arguments, fmt::format("waiting for {} s at most: is the program of rebuild {} alive?",
                                 now->lease_s, now->id));
    }
    before = now;
    TAMIS_RETURN_IF_ERROR(Pause(std::chrono::milliseconds(250)));
  }
}

Result<FilterRebuild> StartRebuild(const Arguments& arguments, RedisConnection* connection) {
  FilterRebuild::Options options{arguments.fpr, arguments.capacity, arguments.type};
  if (options.capacity == 0) {
    TAMIS_ASSIGN_OR_RETURN(options.capacity, CapacityOf(connection, arguments.key));
  }
  if (options.capacity == 0) {
    return InvalidArgument("cannot make the filter \"" + arguments.key +
                           "\": say with --capacity for how many rows");
  }
  TAMIS_RETURN_IF_ERROR(EndAbandoned(arguments, connection));
  return FilterRebuild::Start(connection, arguments.key, options);
}

Status CheckWaiting(const Arguments& arguments) {
  if (!arguments.database.empty() || arguments.settle_s != kNoId) return Status::Ok();
  return InvalidArgument(
      "say how it is known that transactions that began before have ended, since their rows may be "
      "neither in the filter nor in the snapshot: --database for PostgreSQL, or --settle SECONDS, "
      "longer than any takes from its TAMIS.ADD to its commit (0 when nobody writes)");
}

// Which keys were loaded, for a person.
struct Loaded {
  uint64_t keys = 0;
  std::string first;
};

// A key that comes again is another copy, which takes room.
std::string NotUnique(const KeyRepeats& repeats) {
  return fmt::format("{:.0f} % of the keys came before: the column is not unique",
                     repeats.Share() * 100);
}

// With what to do where the reason is none that a greater filter ends.
Status FillError(const Status& status, const KeyRepeats& repeats) {
  constexpr double kFew = 0.05;
  if (status.code() != StatusCode::kResourceExhausted || repeats.Share() < kFew) return status;
  return ResourceExhausted("the new filter is full; " + NotUnique(repeats) +
                           ", and each copy takes room; read a unique column, or say with "
                           "--capacity how many rows there are, not how many keys");
}

// Reads the keys to the end of what is known to be all. With --mark-first the first line is the
// mark.
Result<Loaded> ReadInto(const Arguments& arguments, FilterRebuild* rebuild, std::string* mark) {
  TAMIS_ASSIGN_OR_RETURN(KeySource::Options options, SourceOf(arguments));
  if (arguments.id != kNoId && arguments.command.empty()) options.query.clear();
  options.marked_end = options.command.empty() && options.query.empty();
  TAMIS_ASSIGN_OR_RETURN(KeySource source, KeySource::Open(options, &cancelled,
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
    if (loaded.keys == 0) loaded.first = *key;
    repeats.Add(*key);
    const Status added = rebuild->Add(*key);
    if (!added.ok()) return FillError(added, repeats);
    if (++loaded.keys % 10'000'000 == 0) Say(arguments, fmt::format("{} rows read", loaded.keys));
  }
  if (source.nulls() > 0) Say(arguments, fmt::format("{} NULLs left out", source.nulls()));
  const Status finished = rebuild->Finish();
  if (!finished.ok()) return FillError(finished, repeats);
  if (repeats.Share() > 0) Say(arguments, NotUnique(repeats) + "; erases may leave copies behind");
  if (loaded.keys < arguments.at_least) {
    return FailedPrecondition(
        fmt::format("there came {} rows, and at least {} were expected (--at-least)", loaded.keys,
                    arguments.at_least));
  }
  return loaded;
}

// Every key that the source prints is one of the new filter's: else the keys that were loaded are
// not those of the rows. With a mark, rows that came behind the snapshot are in neither, and half
// of them have to be.
Status ProveBy(const Arguments& arguments, const char* option, Result<KeySource> source,
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
    return FailedPrecondition(fmt::format("{} gave no key, though {} were loaded, such as \"{}\"",
                                          option, loaded.keys, loaded.first));
  }
  if (missing > 0 && (!may_lack || missing * 2 > asked)) {
    return FailedPrecondition(
        fmt::format("{} of {} keys of {} are not among those that were loaded, such as \"{}\"; the "
                    "first one that was loaded is \"{}\"",
                    missing, asked, option, fmt::join(examples, "\", \""), loaded.first));
  }
  Say(arguments, fmt::format("proved by {} keys of {}", asked, option));
  return Status::Ok();
}

// Asks for keys in another way than they were loaded in.
Status Prove(const Arguments& arguments, const Loaded& loaded, bool has_mark,
             FilterRebuild* rebuild) {
  constexpr size_t kSample = 1000;
  const auto keep = [rebuild] { return rebuild->Keep(); };
  if (!arguments.query.empty()) {
    TAMIS_RETURN_IF_ERROR(ProveBy(
        arguments, "--query",
        KeySource::OpenSample(arguments.query, arguments.database, kSample, &cancelled, keep),
        loaded, has_mark, rebuild));
  }
  if (!arguments.proof.empty()) {
    KeySource::Options options;
    options.command = arguments.proof;
    options.as_is = arguments.as_is;
    TAMIS_ASSIGN_OR_RETURN(options.format, FormatOf(arguments.format));
    TAMIS_RETURN_IF_ERROR(ProveBy(arguments, "--proof", KeySource::Open(options, &cancelled, keep),
                                  loaded, has_mark, rebuild));
  }
  if (arguments.query.empty() && arguments.proof.empty() && !arguments.unproved) {
    Say(arguments, fmt::format("not proved: does the application ask with such keys as \"{}\"? "
                               "--proof has a second command print some",
                               loaded.first));
  }
  return Status::Ok();
}

Status CheckProof(const Arguments& arguments) {
  if (arguments.mark_first && arguments.command.empty() && arguments.id == kNoId) {
    return InvalidArgument("the first line of a query is a key: --mark-first goes with --command");
  }
  const bool proves = !arguments.query.empty() || !arguments.proof.empty();
  if (proves || arguments.unproved || arguments.database.empty()) return Status::Ok();
  return InvalidArgument(
      "say with --query which keys the database has, such as 'SELECT id FROM items', since a "
      "command that prints them in another form makes a filter that refuses every row; without "
      "--command the query reads them, too. Or give a second command with --proof, or --unproved");
}

Status FillAndCommit(const Arguments& arguments, FilterRebuild* rebuild, bool wait) {
  const auto begin = std::chrono::steady_clock::now();
  if (wait) TAMIS_RETURN_IF_ERROR(AwaitOthers(arguments, rebuild));
  const auto begin_reading = std::chrono::steady_clock::now();
  std::string mark = arguments.mark;
  TAMIS_ASSIGN_OR_RETURN(const Loaded loaded, ReadInto(arguments, rebuild, &mark));
  const auto end_reading = std::chrono::steady_clock::now();
  TAMIS_RETURN_IF_ERROR(Prove(arguments, loaded, !mark.empty(), rebuild));
  if (cancelled) return Cancelled("stopped");
  TAMIS_RETURN_IF_ERROR(rebuild->Commit(mark));
  const uint64_t keys = loaded.keys;
  const std::chrono::duration<double> waited = begin_reading - begin;
  const std::chrono::duration<double> read = end_reading - begin_reading;
  Say(arguments,
      fmt::format("{}: {} rows, waited {:.1f} s, read in {:.1f} s ({:.0f} rows/s)", arguments.key,
                  keys, waited.count(), read.count(), static_cast<double>(keys) / read.count()));
  return Status::Ok();
}

Status Load(const Arguments& arguments) {
  const bool started_before = arguments.id != kNoId;
  if (arguments.command.empty() && arguments.query.empty() && !started_before) {
    return InvalidArgument(
        "cannot load lines of standard input: who gives them may have read the rows before the "
        "rebuild began; say --query or --command, or begin with `tamis guard start` and say its "
        "--id");
  }
  if (!started_before) TAMIS_RETURN_IF_ERROR(CheckWaiting(arguments));
  TAMIS_RETURN_IF_ERROR(CheckProof(arguments));
  TAMIS_ASSIGN_OR_RETURN(RedisConnection connection, Open(arguments));
  auto rebuild = started_before ? FilterRebuild::Take(&connection, arguments.key, arguments.id)
                                : StartRebuild(arguments, &connection);
  if (!rebuild.ok()) return rebuild.status();
  const Status status = FillAndCommit(arguments, &*rebuild, !started_before);
  if (status.ok()) return status;
  const Status aborted = rebuild->Abort();
  if (!aborted.ok()) Say(arguments, "the rebuild could not be aborted: " + aborted.message());
  return status.WithContext("cannot load \"" + arguments.key + "\", which stays as it was");
}

Status Start(const Arguments& arguments) {
  TAMIS_RETURN_IF_ERROR(CheckWaiting(arguments));
  TAMIS_ASSIGN_OR_RETURN(RedisConnection connection, Open(arguments));
  TAMIS_ASSIGN_OR_RETURN(FilterRebuild rebuild, StartRebuild(arguments, &connection));
  Status status = AwaitOthers(arguments, &rebuild);
  if (status.ok()) status = rebuild.KeepFor(arguments.hold_s);
  if (status.ok()) status = WriteOutput(fmt::format("{}\n", rebuild.id()));
  if (!status.ok()) (void)rebuild.Abort().ok();
  return status;
}

Status Abort(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(RedisConnection connection, Open(arguments));
  if (arguments.id != kNoId) {
    return FilterRebuild::Take(&connection, arguments.key, arguments.id).Abort();
  }
  return connection.Demand({"TAMIS.REBUILD", arguments.key, "ABORT"}).status();
}

// --- verify ------------------------------------------------------------------------------------

struct Verdict {
  uint64_t keys = 0;
  uint64_t unknown = 0;
  std::unordered_set<std::string> refused;
};

// Asks for every key, or for those of `only`.
Result<Verdict> CheckAll(const Arguments& arguments, RedisConnection* connection,
                         const std::unordered_set<std::string>* only) {
  constexpr size_t kGroup = 500;
  TAMIS_ASSIGN_OR_RETURN(const KeySource::Options options, SourceOf(arguments));
  TAMIS_ASSIGN_OR_RETURN(KeySource source, KeySource::Open(options, &cancelled));
  Verdict verdict;
  std::vector<std::string> group;
  const auto check = [&] {
    std::vector<std::string_view> words = {"TAMIS.CHECK", arguments.key};
    words.insert(words.end(), group.begin(), group.end());
    TAMIS_ASSIGN_OR_RETURN(const RedisReply reply, connection->Ask(words));
    if (reply.is_error()) return connection->ErrorOf(reply);
    if (reply.size() != group.size()) return Internal("TAMIS.CHECK gave no answer for each key");
    for (size_t i = 0; i < group.size(); ++i) {
      verdict.unknown += reply.integer(i) < 0 ? 1 : 0;
      if (reply.integer(i) == 0) verdict.refused.insert(group[i]);
    }
    verdict.keys += group.size();
    group.clear();
    return Status::Ok();
  };
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(const std::optional<std::string_view> key, source.Next());
    if (!key) break;
    if (only != nullptr && only->count(std::string(*key)) == 0) continue;
    group.emplace_back(*key);
    if (group.size() == kGroup) TAMIS_RETURN_IF_ERROR(check());
  }
  if (!group.empty()) TAMIS_RETURN_IF_ERROR(check());
  return verdict;
}

Result<bool> Verify(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(RedisConnection connection, Open(arguments));
  TAMIS_ASSIGN_OR_RETURN(Verdict verdict, CheckAll(arguments, &connection, nullptr));
  const uint64_t keys = verdict.keys;
  const uint64_t unknown = verdict.unknown;
  const bool from_input = arguments.command.empty() && arguments.query.empty();
  if (!verdict.refused.empty() && !from_input) {
    // Rows that went meanwhile are refused by right: those that are still there are not.
    TAMIS_ASSIGN_OR_RETURN(verdict, CheckAll(arguments, &connection, &verdict.refused));
  }
  LineWriter writer('\n');
  for (const std::string& key : verdict.refused) TAMIS_RETURN_IF_ERROR(writer.Write(key));
  TAMIS_RETURN_IF_ERROR(writer.Flush());
  Say(arguments, fmt::format("{}: {} rows, {} refused, {} unknown", arguments.key, keys,
                             verdict.refused.size(), unknown));
  return verdict.refused.empty();
}

// --- follow, status ----------------------------------------------------------------------------

Status Follow(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(const RedisAddress address, RedisAddress::Parse(arguments.redis));
  FilterFollower follower(address, arguments.key, static_cast<int>(arguments.timeout_s * 1000),
                          &cancelled, [&](const std::string& text) { Say(arguments, text); });
  TAMIS_RETURN_IF_ERROR(follower.Begin(arguments.after));
  ChangeFeed feed(STDIN_FILENO, &cancelled);
  Status status;
  while (status.ok()) {
    const auto changes = feed.Next();
    status = changes.status();
    if (!changes.ok() || !*changes) break;
    status = follower.Apply(**changes);
  }
  const FilterFollower::Counters& counters = follower.counters();
  Say(arguments,
      fmt::format("{}: {} added, {} erased, {} not erased, in {} steps over {} connections",
                  arguments.key, counters.added, counters.erased, counters.not_erased,
                  counters.batches, counters.connections));
  return status;
}

Status PrintStatus(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(RedisConnection connection, Open(arguments));
  TAMIS_ASSIGN_OR_RETURN(const RedisReply info, connection.Demand({"TAMIS.INFO", arguments.key}));
  std::string text;
  for (size_t i = 0; i + 1 < info.size(); i += 2) {
    const std::string value = info.is_integer(i + 1) ? std::to_string(info.integer(i + 1))
                                                     : std::string(info.text(i + 1));
    if (!arguments.mark_only) text += fmt::format("{:<24}{}\n", info.text(i), value);
    if (arguments.mark_only && info.text(i) == "Mark") text = value + "\n";
  }
  return WriteOutput(text);
}

int Finish(const Status& status) { return Report(status); }
int Finish(const Result<bool>& all_well) {
  if (!all_well.ok()) return Report(all_well.status());
  return *all_well ? kExitOk : kExitFailure;
}

}  // namespace

void AddGuardCommand(Command app, Invocation* invocation) {
  Command guard =
      app.AddCommand("guard",
                     "Filters on a Redis or Valkey server that keep lookups of missing rows from a "
                     "database. Needs no store");
  guard.RequireCommand();
  auto arguments = std::make_shared<Arguments>();
  Arguments* a = arguments.get();
  const auto add = [&](const char* name, const char* description, auto command) {
    Command sub = guard.AddCommand(name, description);
    sub.AddOption("--redis", a->redis, "redis://[[USER]:PASSWORD@]HOST[:PORT] or unix:///SOCKET")
        .FromEnvironment("TAMIS_REDIS")
        .ShowDefault();
    sub.AddOption("--key", a->key, "The filter").Required();
    sub.AddOption("--timeout", a->timeout_s, "Seconds to wait for an answer of the server")
        .ShowDefault();
    sub.OnParsed([=] {
      invocation->run = [arguments, command] {
        // A server that is gone is an error and not the end of this program.
        std::signal(SIGPIPE, SIG_IGN);
        // A rebuild is ended by whatever ends the program, but for SIGKILL.
        const InterruptScope scope(&cancelled, {SIGINT, SIGTERM, SIGHUP});
        return Finish(command(*arguments));
      };
    });
    return sub;
  };
  const auto quiet = [&](Command sub) {
    sub.AddFlag("-q,--quiet", a->quiet, "Say nothing when all is well");
  };
  const auto keys = [&](Command sub) {
    sub.AddOption("--query", a->query,
                  "The keys in SQL, of --database, as in 'SELECT id FROM items'");
    sub.AddOption("--command", a->command,
                  "A line for bash that prints the keys, one a line, in the query's place");
    sub.AddOption("--format", a->format,
                  "plain: a backslash is refused; lines: it is one; null: keys end with a zero "
                  "byte; copy: as COPY prints one column")
        .OneOf({"plain", "lines", "null", "copy"})
        .ShowDefault();
    sub.AddFlag("--as-is", a->as_is,
                "Quotes, blanks, carriage returns around all keys belong to them");
    quiet(sub);
  };
  const auto rebuild = [&](Command sub) {
    sub.AddOption("--capacity", a->capacity, "Room for so many rows; else as the filter has now");
    sub.AddOption("--fpr", a->fpr, "False-positive rate").ShowDefault();
    sub.AddOption("--type", a->type, "As `filter size` lists them; else one that erases");
    sub.AddOption("--database", a->database,
                  "PostgreSQL, as psql takes it: wait until every transaction has ended that was "
                  "open when the rebuild began");
    sub.AddOption("--settle", a->settle_s, "Wait so many seconds instead, or besides");
    sub.AddFlag("--replace", a->replace,
                "End a rebuild that is under way, also when its program is alive");
  };

  Command load = add("load", "Fill a new filter with all rows and put it in its place", Load);
  keys(load);
  rebuild(load);
  load.AddOption("--proof", a->proof,
                 "A second line for bash: prints keys, as the application asks with them, that the "
                 "new filter must have");
  load.AddFlag("--unproved", a->unproved, "Trust the keys of --command alone");
  load.AddOption("--id", a->id,
                 "What `start` printed: keys come from standard input and end with a line \\.");
  const Option mark = load.AddOption("--mark", a->mark,
                                     "Where in the log of changes the snapshot is, for `follow`");
  load.AddFlag("--mark-first", a->mark_first, "The first line that comes says it").Excludes(mark);
  load.AddOption("--at-least", a->at_least, "Fewer rows are a failure").ShowDefault();

  Command start = add("start", "Begin a rebuild, wait for others, print its id for `load`", Start);
  rebuild(start);
  start.AddOption("--hold", a->hold_s, "Seconds until another load may begin in its place")
      .ShowDefault();
  quiet(start);
  Command abort = add("abort", "End a rebuild whose program has ended", Abort);
  abort.AddOption("--id", a->id, "That one only");

  Command follow =
      add("follow", "Apply +KEY, -KEY, =MARK of standard input, each change exactly once", Follow);
  follow.AddOption("--after", a->after,
                   "The mark behind which the input begins, which must be the filter's");
  quiet(follow);

  Command verify =
      add("verify", "Print each key that the filter refuses; then the exit status is 1", Verify);
  keys(verify);
  verify.AddOption("--database", a->database, "PostgreSQL, as psql takes it, for --query");

  Command status = add("status", "Say what the filter is and does", PrintStatus);
  status.AddFlag("--mark", a->mark_only, "Print its mark alone");
}

}  // namespace tamis
