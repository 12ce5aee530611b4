// tamis guard: filters on a Redis or Valkey server that keep lookups of rows that do not exist away
// from a database (docs/GUARD.md).
#include <fmt/core.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <unordered_set>

#include "tamis/cli/command.h"
#include "tamis/cli/guard_arguments.h"
#include "tamis/cli/guard_load.h"
#include "tamis/cli/interrupt.h"
#include "tamis/cli/line_writer.h"
#include "tamis/guard/change_feed.h"
#include "tamis/guard/filter_follower.h"

namespace tamis {
namespace {

// --- verify ------------------------------------------------------------------------------------

struct Verdict {
  uint64_t keys = 0;
  uint64_t unknown = 0;
  std::unordered_set<std::string> refused;
};

// Asks for every key, or for those of `only`.
Result<Verdict> CheckAll(const GuardArguments& arguments, RedisConnection* connection,
                         const std::unordered_set<std::string>* only) {
  constexpr size_t kGroup = 500;
  TAMIS_ASSIGN_OR_RETURN(const KeySource::Options options, arguments.Source());
  TAMIS_ASSIGN_OR_RETURN(KeySource source, KeySource::Open(options, &guard_cancelled));
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

Result<bool> PrintRefusedKeys(const GuardArguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(RedisConnection connection, arguments.Open());
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
  arguments.Say(fmt::format("{}: {} rows, {} refused, {} unknown", arguments.key, keys,
                            verdict.refused.size(), unknown));
  if (keys < arguments.at_least) {
    return FailedPrecondition(
        fmt::format("cannot verify \"{}\": {} rows were read, but at least {} were expected "
                    "(--at-least)",
                    arguments.key, keys, arguments.at_least));
  }
  return verdict.refused.empty();
}

// --- follow, status ----------------------------------------------------------------------------

Status Follow(const GuardArguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(const RedisAddress address, RedisAddress::Parse(arguments.redis));
  FilterFollower follower(address, arguments.key, static_cast<int>(arguments.timeout_s * 1000),
                          &guard_cancelled, [&](const std::string& text) { arguments.Say(text); });
  TAMIS_RETURN_IF_ERROR(follower.Begin(arguments.after));
  ChangeFeed feed(STDIN_FILENO, &guard_cancelled);
  Status status;
  while (status.ok()) {
    const auto changes = feed.Next();
    status = changes.status();
    if (!changes.ok() || !*changes) break;
    status = follower.Apply(**changes);
  }
  const FilterFollower::Counters& counters = follower.counters();
  arguments.Say(
      fmt::format("{}: {} added, {} erased, {} not erased, in {} steps over {} connections",
                  arguments.key, counters.added, counters.erased, counters.not_erased,
                  counters.batches, counters.connections));
  return status;
}

Status PrintStatus(const GuardArguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(RedisConnection connection, arguments.Open());
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

int ExitCodeOf(const Status& status) { return Report(status); }
int ExitCodeOf(const Result<bool>& all_well) {
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
  auto arguments = std::make_shared<GuardArguments>();
  GuardArguments* a = arguments.get();
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
        // A rebuild ends with the program, but for SIGKILL.
        const InterruptScope scope(&guard_cancelled, {SIGINT, SIGTERM, SIGHUP});
        return ExitCodeOf(command(*arguments));
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
                  "A line for bash that prints the keys, one on each line; instead of --query");
    sub.AddOption("--format", a->format,
                  "plain: keys with a backslash are refused; lines: a backslash is an ordinary "
                  "byte; null: keys end with a zero byte; copy: COPY's escapes")
        .OneOf({"plain", "lines", "null", "copy"})
        .ShowDefault();
    sub.AddFlag("--as-is", a->as_is,
                "Quotes, blanks and carriage returns around all keys are parts of the keys");
    quiet(sub);
  };
  const auto rebuild = [&](Command sub) {
    sub.AddOption("--capacity", a->capacity,
                  "Room for so many rows; default: as the filter has now");
    sub.AddOption("--fpr", a->fpr, "False-positive rate").ShowDefault();
    sub.AddOption("--type", a->type, "A type that `filter size` lists; default: one that erases");
    sub.AddOption("--database", a->database,
                  "PostgreSQL, as psql takes it: wait until every transaction has ended that was "
                  "open when the rebuild began");
    sub.AddOption("--settle", a->settle_s,
                  "Wait this many seconds, instead of --database or in addition");
    sub.AddFlag("--replace", a->replace,
                "End a rebuild that is under way, also when its program is alive");
  };

  Command load = add("load", "Fill a new filter with all rows and put it in its place", LoadFilter);
  keys(load);
  rebuild(load);
  load.AddOption("--proof", a->proof,
                 "A second line for bash: prints keys, as the application asks with them, that the "
                 "new filter must have");
  load.AddFlag("--unproved", a->unproved, "Trust the keys of --command alone");
  load.AddOption(
      "--id", a->id,
      "The id that `start` printed: keys come from standard input and end with a line \\.");
  const Option mark = load.AddOption("--mark", a->mark,
                                     "Where in the log of changes the snapshot is, for `follow`");
  load.AddFlag("--mark-first", a->mark_first, "The first line of the input is the mark")
      .Excludes(mark);
  const auto at_least = [&](Command sub) {
    sub.AddOption("--at-least", a->at_least, "Fail if there are fewer rows").ShowDefault();
  };
  at_least(load);

  Command start =
      add("start", "Begin a rebuild, wait for transactions that are open, print its id for `load`",
          StartRebuild);
  rebuild(start);
  start.AddOption("--hold", a->hold_s, "Seconds until another load may begin in its place")
      .ShowDefault();
  quiet(start);
  Command abort = add("abort", "End a rebuild whose program has ended", AbortRebuild);
  abort.AddOption("--id", a->id, "Only the rebuild with this id");

  Command follow =
      add("follow", "Apply +KEY, -KEY, =MARK of standard input, each change exactly once", Follow);
  follow.AddOption("--after", a->after,
                   "The mark behind which the input begins, which must be the filter's");
  quiet(follow);

  Command verify =
      add("verify", "Print each key that the filter refuses; then the exit status is 1",
          PrintRefusedKeys);
  keys(verify);
  verify.AddOption("--database", a->database, "PostgreSQL, as psql takes it, for --query");
  at_least(verify);

  Command status = add("status", "Say what the filter is and does", PrintStatus);
  status.AddFlag("--mark", a->mark_only, "Print its mark alone");
}

}  // namespace tamis
