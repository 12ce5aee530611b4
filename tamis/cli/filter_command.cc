// tamis filter: filters in files, for lists of lines.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <memory>
#include <new>

#include "tamis/base/random.h"
#include "tamis/cli/command.h"
#include "tamis/cli/dedupe_window.h"
#include "tamis/cli/filter_advisor.h"
#include "tamis/cli/line_reader.h"
#include "tamis/cli/line_writer.h"
#include "tamis/filter/any_filter.h"
#include "tamis/filter/filter_file.h"

namespace tamis {
namespace {

// The exit codes of grep: selected, nothing selected, trouble.
constexpr int kSelected = 0;
constexpr int kNothingSelected = 1;
constexpr int kTrouble = 2;

struct Arguments {
  std::string filter;              // the filter's file
  std::vector<std::string> files;  // files of lines, or of filters to merge
  std::string output;
  std::string type = "auto";
  std::string seed = "0";
  std::string against;
  uint64_t capacity = 0;
  uint64_t window = 0;
  double fpr = 0.01;
  bool zero = false;
  bool invert = false;
  bool count = false;
  bool quiet = false;
  bool trust = false;
  bool erase = false;
  bool fixed = false;

  char delimiter() const { return zero ? '\0' : '\n'; }
};

int ReportTrouble(const Status& status) {
  Report(status);
  return kTrouble;
}

// Calls visit(reader) for every batch of every file; no files: the standard input.
template <class Visit>
Status ForEachBatch(const Arguments& arguments, const std::vector<std::string>& files,
                    uint64_t seed, Visit&& visit) {
  const std::vector<std::string> input = files.empty() ? std::vector<std::string>{"-"} : files;
  for (const std::string& path : input) {
    TAMIS_ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path, arguments.delimiter(), seed));
    while (true) {
      TAMIS_ASSIGN_OR_RETURN(const bool more, reader.Next());
      if (!more) break;
      TAMIS_RETURN_IF_ERROR(visit(reader));
    }
  }
  return Status::Ok();
}

// A filter that is read where its file is mapped.
struct OpenFile {
  MappedFile file;
  AnyFilter filter;
};

Result<OpenFile> OpenMapped(const std::string& path, bool trust) {
  TAMIS_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  auto filter = AnyFilter::Deserialize(file.bytes(), OpenMode::kBorrow);
  Status status = filter.status();
  if (status.ok() && !trust) status = VerifyFilterBytes(file.bytes());
  if (!status.ok()) return status.WithContext("\"" + path + "\"");
  return OpenFile{std::move(file), *std::move(filter)};
}

// A copy that can be changed.
Result<AnyFilter> Load(const std::string& path) {
  TAMIS_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  auto filter = AnyFilter::Deserialize(bytes);
  if (!filter.ok()) return filter.status().WithContext("\"" + path + "\"");
  return filter;
}

// Into a file, or for "-" to the standard output.
Status Save(const AnyFilter& filter, const std::string& path) {
  return path == "-" ? WriteOutput(filter.Serialize()) : ReplaceFile(path, filter.Serialize());
}

Result<uint64_t> ParseSeed(const std::string& text) {
  if (text == "random") return SeedFromSystem();
  try {
    size_t used = 0;
    const uint64_t seed = std::stoull(text, &used, 0);
    if (used == text.size() && text[0] != '-') return seed;
  } catch (const std::exception&) {
  }
  return InvalidArgument("cannot use \"" + text + "\" as a seed: it is a number or \"random\"");
}

// --- the commands ------------------------------------------------------------------------------

Result<std::string> TypeToBuild(const Arguments& arguments) {
  if (arguments.type == "auto") {
    TAMIS_ASSIGN_OR_RETURN(
        const FilterType* type,
        Recommended(arguments.fpr, {.erases = arguments.erase, .fixed = arguments.fixed}));
    return std::string(type->name);
  }
  const FilterType* type = AnyFilter::FindType(arguments.type);
  if (type != nullptr && arguments.erase && !type->erases) {
    return InvalidArgument("cannot build a filter of type \"" + arguments.type +
                           "\" with --erase: it does not erase");
  }
  if (type != nullptr && arguments.fixed && !type->fixed) {
    return InvalidArgument("cannot build a filter of type \"" + arguments.type +
                           "\" with --static: leave one of them out");
  }
  return arguments.type;
}

// The hashes of distinct lines, 8 bytes a line, and more than `limit` are an error as soon as they
// are seen.
class DistinctLines {
 public:
  DistinctLines(std::string output, uint64_t limit, bool is_wanted)
      : output_(std::move(output)),
        limit_(limit),
        is_wanted_(is_wanted),
        compacted_at_(std::max(limit + 1, kFirstCompacted)) {}

  Status Add(std::span<const uint64_t> hashes) {
    lines_ += hashes.size();
    hashes_.insert(hashes_.end(), hashes.begin(), hashes.end());
    if (hashes_.size() < compacted_at_) return Status::Ok();
    TAMIS_RETURN_IF_ERROR(Compact());
    compacted_at_ = std::max(compacted_at_, 2 * hashes_.size());
    return Status::Ok();
  }
  // Removes what is there twice.
  Status Compact() {
    std::sort(hashes_.begin(), hashes_.end());
    hashes_.erase(std::unique(hashes_.begin(), hashes_.end()), hashes_.end());
    if (hashes_.size() <= limit_) return Status::Ok();
    return InvalidArgument(fmt::format(
        "cannot build \"{}\": {} distinct lines are more than {}", output_, hashes_.size(),
        is_wanted_ ? fmt::format("the capacity {}; leave --capacity out or raise it", limit_)
                   : fmt::format("the {} (2^31) of the largest filter; divide the lines among "
                                 "several files",
                                 limit_)));
  }

  uint64_t lines() const { return lines_; }
  const std::vector<uint64_t>& hashes() const { return hashes_; }

 private:
  static constexpr uint64_t kFirstCompacted = 1 << 20;

  const std::string output_;
  const uint64_t limit_;
  const bool is_wanted_;  // by --capacity
  uint64_t compacted_at_;
  uint64_t lines_ = 0;
  std::vector<uint64_t> hashes_;
};

// The hashes of all lines are kept (8 bytes a line), so that the filter fits the distinct ones.
Status Build(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(const uint64_t seed, ParseSeed(arguments.seed));
  const FilterOptions wanted{std::max<uint64_t>(1, arguments.capacity), arguments.fpr, seed};
  TAMIS_RETURN_IF_ERROR(wanted.Validate());
  TAMIS_ASSIGN_OR_RETURN(const std::string type, TypeToBuild(arguments));
  const bool is_wanted = arguments.capacity != 0;
  DistinctLines distinct(arguments.output,
                         is_wanted ? arguments.capacity : FilterOptions::kMaxCapacity, is_wanted);
  uint64_t next_report = 10'000'000;
  TAMIS_RETURN_IF_ERROR(
      ForEachBatch(arguments, arguments.files, seed, [&](const LineReader& batch) {
        TAMIS_RETURN_IF_ERROR(distinct.Add(batch.hashes()));
        if (!arguments.quiet && distinct.lines() >= next_report) {
          fmt::print(stderr, "{} lines read\n", distinct.lines());
          next_report += 10'000'000;
        }
        return Status::Ok();
      }));
  TAMIS_RETURN_IF_ERROR(distinct.Compact());
  const std::vector<uint64_t>& hashes = distinct.hashes();
  TAMIS_ASSIGN_OR_RETURN(const AnyFilter filter,
                         AnyFilter::Build(type, {arguments.capacity, arguments.fpr, seed}, hashes));
  TAMIS_RETURN_IF_ERROR(Save(filter, arguments.output));
  if (!arguments.quiet) {
    fmt::print(stderr,
               "{}: {} lines, {} distinct, {} filter of {}, {:.2f} bits a key, fpr {:.3g}\n",
               arguments.output, distinct.lines(), hashes.size(), type,
               SizeText(static_cast<double>(filter.SizeBytes())),
               8.0 * static_cast<double>(filter.SizeBytes()) /
                   static_cast<double>(std::max<size_t>(1, hashes.size())),
               filter.ExpectedFpr());
  }
  return Status::Ok();
}

Result<bool> Query(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(const OpenFile open, OpenMapped(arguments.filter, arguments.trust));
  LineWriter writer(arguments.delimiter());
  uint64_t selected = 0;
  TAMIS_RETURN_IF_ERROR(
      ForEachBatch(arguments, arguments.files, open.filter.seed(), [&](const LineReader& batch) {
        Bitmap answers = open.filter.MayContain(batch.hashes());
        if (arguments.invert) {
          for (uint64_t& word : answers) word = ~word;
          if (batch.size() % 64 != 0) answers.back() &= (uint64_t{1} << (batch.size() % 64)) - 1;
        }
        for (size_t w = 0; w < answers.size(); ++w) {
          selected += std::popcount(answers[w]);
          for (uint64_t bits = arguments.count ? 0 : answers[w]; bits != 0; bits &= bits - 1) {
            TAMIS_RETURN_IF_ERROR(writer.Write(batch.line(w * 64 + std::countr_zero(bits))));
          }
        }
        return Status::Ok();
      }));
  if (arguments.count) TAMIS_RETURN_IF_ERROR(writer.Write(std::to_string(selected)));
  TAMIS_RETURN_IF_ERROR(writer.Flush());
  return selected > 0;
}

template <class Set>
Status PrintFirsts(const Arguments& arguments, uint64_t seed, Result<Set> made) {
  if (!made.ok()) return made.status();
  Set& seen = *made;
  LineWriter writer(arguments.delimiter());
  TAMIS_RETURN_IF_ERROR(
      ForEachBatch(arguments, arguments.files, seed, [&](const LineReader& batch) {
        for (size_t i = 0; i < batch.size(); ++i) {
          if (seen.MayContain(batch.hashes()[i])) continue;
          seen.Insert(batch.hashes()[i]);
          TAMIS_RETURN_IF_ERROR(writer.Write(batch.line(i)));
        }
        return Status::Ok();
      }));
  return writer.Flush();
}

Status Dedupe(const Arguments& arguments) {
  FilterOptions options{.fpr = arguments.fpr, .seed = SeedFromSystem()};
  if (arguments.window == 0) {
    options.capacity = uint64_t{1} << 20;
    return PrintFirsts(arguments, options.seed, ScalableBloomFilter::Create(options));
  }
  options.capacity = arguments.window;
  TAMIS_RETURN_IF_ERROR(options.Validate());
  options.fpr = std::max(options.fpr / 2, FilterOptions::kMinFpr);  // two sets are asked
  return PrintFirsts(arguments, options.seed, DedupeWindow::Create(options));
}

// A Bloom filter takes any number of lines, and then says "perhaps" to nearly all.
void NoteIfOverfull(const AnyFilter& filter, const std::string& path) {
  constexpr double kUseful = 0.1;
  const double fpr = filter.ExpectedFpr();
  if (fpr < kUseful) return;
  fmt::print(
      stderr,
      "note: \"{}\" holds more lines than it was made for and says \"perhaps\" to {:.0f} % of "
      "all other lines; build a larger one (--capacity)\n",
      path, 100 * fpr);
}

Status Add(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(AnyFilter filter, Load(arguments.filter));
  if (filter.type().fixed) {
    return FailedPrecondition("cannot add lines to \"" + arguments.filter + "\": a " +
                              std::string(FilterKindName(filter.type().kind)) +
                              " is never changed; build it again, or build it without --static");
  }
  uint64_t lines = 0;
  TAMIS_RETURN_IF_ERROR(
      ForEachBatch(arguments, arguments.files, filter.seed(), [&](const LineReader& batch) {
        const size_t inserted = filter.Insert(batch.hashes());
        lines += inserted;
        if (inserted == batch.size()) return Status::Ok();
        return ResourceExhausted(
            fmt::format("cannot add line {} to \"{}\": the filter is full; nothing was added; "
                        "build a larger one",
                        lines + 1, arguments.filter));
      }));
  TAMIS_RETURN_IF_ERROR(ReplaceFile(arguments.filter, filter.Serialize()));
  if (!arguments.quiet) {
    fmt::print(stderr, "{}: {} lines added, {} in all, fpr {:.3g}\n", arguments.filter, lines,
               filter.Count(), filter.ExpectedFpr());
  }
  NoteIfOverfull(filter, arguments.filter);
  return Status::Ok();
}

Status Remove(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(AnyFilter filter, Load(arguments.filter));
  if (!filter.type().erases) {
    return FailedPrecondition("cannot remove lines from \"" + arguments.filter + "\": a " +
                              std::string(FilterKindName(filter.type().kind)) +
                              " does not erase; build it with --erase");
  }
  const uint64_t stuck_before = filter.StuckErases();
  uint64_t lines = 0;
  uint64_t removed = 0;
  TAMIS_RETURN_IF_ERROR(
      ForEachBatch(arguments, arguments.files, filter.seed(), [&](const LineReader& batch) {
        lines += batch.size();
        for (const uint64_t word : filter.Erase(batch.hashes())) removed += std::popcount(word);
        return Status::Ok();
      }));
  TAMIS_RETURN_IF_ERROR(ReplaceFile(arguments.filter, filter.Serialize()));
  if (arguments.quiet) return Status::Ok();
  const uint64_t stuck = filter.StuckErases() - stuck_before;
  fmt::print(stderr, "{}: {} lines removed, {} were not in it\n", arguments.filter, removed,
             lines - removed - stuck);
  if (stuck > 0) {
    fmt::print(stderr,
               "{}: {} lines stay in it: they cannot be told from those of another layer; build it "
               "again from the lines that it must hold\n",
               arguments.filter, stuck);
  }
  return Status::Ok();
}

Status Merge(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(AnyFilter merged, Load(arguments.files[0]));
  for (size_t i = 1; i < arguments.files.size(); ++i) {
    TAMIS_ASSIGN_OR_RETURN(const OpenFile other, OpenMapped(arguments.files[i], false));
    TAMIS_RETURN_IF_ERROR(merged.Merge(other.filter).WithContext("\"" + arguments.files[i] + "\""));
  }
  TAMIS_RETURN_IF_ERROR(Save(merged, arguments.output));
  NoteIfOverfull(merged, arguments.output);
  return Status::Ok();
}

Status Info(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(const OpenFile open, OpenMapped(arguments.filter, false));
  const AnyFilter& filter = open.filter;
  return WriteOutput(fmt::format(
      "type          {}\nsize          {}\nkeys          {}\nbits a key    {:.2f}\n"
      "fill          {:.1f} %\nfpr           {:.3g}\nerases        {}\nseed          {}\n",
      FilterKindName(filter.type().kind), SizeText(static_cast<double>(filter.SizeBytes())),
      filter.Count(),
      8.0 * static_cast<double>(filter.SizeBytes()) /
          static_cast<double>(std::max<uint64_t>(1, filter.Count())),
      100 * filter.Fill(), filter.ExpectedFpr(), filter.type().erases ? "yes" : "no",
      filter.seed()));
}

Result<bool> Verify(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(const OpenFile open, OpenMapped(arguments.filter, false));
  LineWriter writer(arguments.delimiter());
  uint64_t lines = 0;
  uint64_t missing = 0;
  TAMIS_RETURN_IF_ERROR(ForEachBatch(
      arguments, {arguments.against}, open.filter.seed(), [&](const LineReader& batch) {
        const Bitmap answers = open.filter.MayContain(batch.hashes());
        lines += batch.size();
        for (size_t i = 0; i < batch.size(); ++i) {
          if (TestBit(answers, i)) continue;
          ++missing;
          TAMIS_RETURN_IF_ERROR(writer.Write(batch.line(i)));
        }
        return Status::Ok();
      }));
  TAMIS_RETURN_IF_ERROR(writer.Flush());
  fmt::print(stderr, "{}: checksums are right; {} of {} lines are missing\n", arguments.filter,
             missing, lines);
  return missing == 0;
}

Status Size(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(
      const std::string advice,
      FilterAdvice(
          {arguments.capacity, arguments.fpr, 0},
          {.erases = arguments.erase, .counts = arguments.count, .fixed = arguments.fixed}));
  return WriteOutput(advice);
}

int Finish(const Status& status) { return status.ok() ? kSelected : ReportTrouble(status); }
int Finish(const Result<bool>& selected) {
  if (!selected.ok()) return ReportTrouble(selected.status());
  return *selected ? kSelected : kNothingSelected;
}

// 1 means that nothing was selected: whatever goes wrong is trouble.
int RunOrTrouble(const std::function<int()>& run) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return ReportTrouble(ResourceExhausted("cannot do this: there is not enough memory"));
  } catch (const std::exception& error) {
    return ReportTrouble(Internal(std::string("an error that was not foreseen: ") + error.what()));
  }
}

}  // namespace

void AddFilterCommand(Command app, Invocation* invocation) {
  Command filter = app.AddCommand(
      "filter",
      "Sets of lines in files that answer \"certainly not\" or \"perhaps\". Needs no store");
  filter.RequireCommand();
  // After that of the subcommand.
  filter.OnParsed([invocation] {
    invocation->run = [run = std::move(invocation->run)] { return RunOrTrouble(run); };
  });
  auto arguments = std::make_shared<Arguments>();
  Arguments* a = arguments.get();

  const auto add = [&](const char* name, const char* description, auto command) {
    Command sub = filter.AddCommand(name, description);
    sub.OnParsed(
        [=] { invocation->run = [arguments, command] { return Finish(command(*arguments)); }; });
    return sub;
  };
  const auto lines = [a](Command sub) {
    sub.AddOption("FILE", a->files, "Files of lines; none or -: the standard input");
    sub.AddFlag("-0,--null", a->zero, "Lines end with a zero byte, as find -print0 writes them");
    sub.AddFlag("-q,--quiet", a->quiet, "Say nothing when all is well");
  };
  const auto file = [a](Command sub) {
    sub.AddOption("FILTER", a->filter, "The filter's file").Required();
  };
  const auto fpr = [a](Command sub) {
    sub.AddOption("--fpr", a->fpr, "False-positive rate").ShowDefault();
  };

  Command build =
      add("build", "Make a filter of the distinct lines (8 bytes of memory a line)", Build);
  build
      .AddOption("-o,--output", a->output,
                 "The filter's file, replaced as a whole; -: the standard output")
      .Required();
  build.AddOption("--type", a->type, "auto, or as `size` lists them").ShowDefault();
  fpr(build);
  build.AddOption("--capacity", a->capacity, "Leave room for this many keys in all");
  build.AddOption("--seed", a->seed, "A number, or random where strangers choose the lines")
      .ShowDefault();
  Option erase = build.AddFlag("--erase", a->erase, "Lines can be removed later");
  build.AddFlag("--static", a->fixed, "Nothing will be added or removed: the smallest")
      .Excludes(erase);
  lines(build);

  Command query =
      add("query", "Print the lines that may be in the filter; exit status as grep's", Query);
  file(query);
  query.AddFlag("-v,--invert", a->invert, "Print those that are certainly not in it");
  query.AddFlag("-c,--count", a->count, "Print only how many");
  query.AddFlag("--trust", a->trust, "Open at once: do not check the payload's checksum");
  lines(query);

  Command dedupe = add("dedupe",
                       "Print each line the first time it is seen; leaves some new lines out, at "
                       "the false-positive rate",
                       Dedupe);
  fpr(dedupe);
  dedupe.AddOption("--window", a->window, "Remember only about the last N to 2 N distinct lines");
  lines(dedupe);

  Command insert = add("add", "Add lines to a filter", Add);
  file(insert);
  lines(insert);
  Command remove = add("remove", "Remove lines that were added", Remove);
  file(remove);
  lines(remove);

  Command merge =
      add("merge", "Make a filter of the lines of all; same type, capacity, rate, seed", Merge);
  merge.AddOption("FILTER", a->files, "Filters").Required().Expected(2, 1000);
  merge.AddOption("-o,--output", a->output, "The result's file; -: the standard output").Required();

  file(add("info", "Say what a filter is", Info));

  Command verify = add("verify", "Check a filter's bytes, and print the lines it lacks", Verify);
  file(verify);
  verify.AddOption("--against", a->against, "A file of lines that must be in it").Required();
  verify.AddFlag("-0,--null", a->zero, "Lines end with a zero byte");

  Command size = add("size", "Compare the types for a number of keys", Size);
  size.AddOption("--capacity", a->capacity, "Number of keys").Required();
  fpr(size);
  Option leaves = size.AddFlag("--erase", a->erase, "Keys leave the set");
  size.AddFlag("--static", a->fixed, "The set never changes").Excludes(leaves);
  size.AddFlag("--count", a->count, "A key may be in it more than 8 times");
}

}  // namespace tamis
