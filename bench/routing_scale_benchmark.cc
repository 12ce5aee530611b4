// The cost of routing for a coordinator of many regions: a simulated cluster, its feeds made by
// this program, with splits and crashes under way.
//
//   routing_scale_benchmark [--json] [REGIONS...]      default 1000 10000 100000
//
// Times are medians, each of questions that were not asked before; answers are compared with what
// the bits and ranges of every region say, after every phase.
//
// Goals: `find` for one value and for two at once within four probes and, with 10,000 regions, 10
// us; IN (100) within 100 probes + 50 us; a range 20 us; a whole search without network and server
// 50 us, and a search that asks all regions costs as much for each of 100,000 as of 1,000; an event
// of a server 50 us, and no search waits longer than 1 ms while a server dies; the start within
// three copies of the bits. With regions of different sizes, absent values find no more than the
// configured rate, for 1.3 x k / ln 2 bits a value.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bench/mixed_sizes.h"
#include "bench/searching_thread.h"
#include "bench/simulated_cluster.h"
#include "tamis/base/random.h"
#include "tamis/base/thread_executor.h"
#include "tamis/query/query_context.h"
#include "tamis/query/search.h"
#include "tamis/routing/filter_matrix.h"

namespace tamis {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr std::chrono::microseconds kHeld{100};

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "routing_scale_benchmark: %s\n", what.c_str());
  std::exit(1);
}

// The processor time of this thread: what else the machine does counts less.
double Microseconds(auto&& run) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
  };
  const double begin = now();
  run();
  return now() - begin;
}

double Mean(const std::vector<double>& times) {
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

struct Figures {
  size_t regions = 0;
  double probe_us = 0, find_value_us = 0, find_and_us = 0, find_in_100_us = 0, find_range_us = 0;
  double search_cpu_us = 0, apply_opened_us = 0, apply_conflict_us = 0, start_s = 0;
  double search_all_us = 0, search_all_limit_us = 0;  // for each region
  size_t memory_bytes = 0;
  double longest_wait_us = 0;        // the longest of a search, while a server dies
  double longest_of_machine_us = 0;  // the same beside a thread that holds a lock for kHeld
  // Told to people only.
  double copy_s = 0, apply_split_us = 0, apply_closed_us = 0, apply_empty_us = 0, projection_us = 0;
};

Predicate Equals(uint32_t column, int64_t value) {
  return Predicate::Compare(column, Predicate::Op::kEq, Value::Int64(value));
}

class Bench {
 public:
  explicit Bench(size_t regions)
      : random_(regions),
        executor_(1),
        cluster_(regions),
        context_(std::make_shared<QueryContext>(
            &cluster_.cluster, &executor_,
            QueryContext::Options{.request_timeout = std::chrono::seconds(5),
                                  .write_timeout = std::chrono::seconds(30)},
            std::make_shared<GlobalIndex>(GlobalIndex::Options{.lease_margin = Duration(0)}))),
        index_(context_->global.get()),
        now_(executor_.Now()) {
    figures_.regions = regions;
  }

  Figures Run() {
    figures_.probe_us = ProbeAlone();
    Start();
    Check("the start");
    Finds();
    WholeSearches();
    figures_.search_all_us = WideSearches(/*limit=*/0);
    figures_.search_all_limit_us = WideSearches(/*limit=*/1);
    Splits();
    Check("splits");
    Crash(/*at_once=*/false);
    Crash(/*at_once=*/true);
    figures_.memory_bytes = index_->SizeBytes();
    return figures_;
  }

 private:
  double Take(const SimulatedServer& server, const pb::PollReply& reply) {
    return Microseconds([&] { index_->Apply(server.name, reply, now_, now_); });
  }
  // Gives what the coordinator wants of the server, and returns the time of taking it in.
  double GiveBits(const SimulatedServer& server, double* copying = nullptr) {
    double taken = 0;
    for (;;) {
      pb::PollRequest poll;
      taken += Microseconds([&] { poll = index_->NextPoll(server.name, seconds(1)); });
      if (poll.wanted().empty()) return taken;
      pb::PollReply reply = cluster_.ReplyOf(server, server.last);
      for (const pb::ColumnId& wanted : poll.wanted()) {
        cluster_.AddProjection(server, cluster_.regions[by_id_[wanted.region_id()]],
                               wanted.index_id() - 1, &reply);
      }
      if (copying != nullptr) *copying += Copy(reply);
      taken += Take(server, reply);
    }
  }
  // To memory that is as new as that of the matrices.
  static double Copy(const pb::PollReply& reply) {
    size_t size = 0;
    for (const auto& projection : reply.projections()) size += projection.layers(0).size();
    char* memory = static_cast<char*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED) Die("no memory");
    (void)madvise(memory, size, MADV_HUGEPAGE);
    const double time = Microseconds([&] {
      char* to = memory;
      for (const auto& projection : reply.projections()) {
        std::memcpy(to, projection.layers(0).data(), projection.layers(0).size());
        to += projection.layers(0).size();
      }
    });
    munmap(memory, size);
    return time;
  }

  // ---- Phases

  // The matrix of the first index alone, asked one value after the other.
  double ProbeAlone() {
    FilterMatrix matrix(cluster_.geometry(0));
    std::string bytes(matrix.projection_bytes(), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    std::vector<FilterMatrix::Filling> fillings;
    for (size_t i = 0; i < cluster_.regions.size(); ++i) {
      fillings.emplace_back(matrix.Allocate(), std::string_view(bytes));
    }
    matrix.Load(fillings);
    std::vector<uint64_t> answer;
    std::vector<double> times;
    for (int i = 0; i < 1000; ++i) {
      const uint64_t hash = random_();
      times.push_back(Microseconds([&] { matrix.Probe(hash, &answer); }));
    }
    return Median(std::move(times));
  }

  void Start() {
    for (size_t i = 0; i < cluster_.regions.size(); ++i) by_id_[cluster_.regions[i].id] = i;
    double taken = 0, copying = 0;
    for (SimulatedServer& server : cluster_.servers) {
      pb::PollReply full;
      for (const size_t i : server.regions) {
        *full.add_events() =
            cluster_.EventOf(pb::Event::REGION_OPENED, &server, cluster_.regions[i]);
        for (size_t index = 0; index < cluster_.schema()->indexes.size(); ++index) {
          *full.add_events() = cluster_.CompleteOf(&server, cluster_.regions[i], index);
        }
      }
      full.MergeFrom(cluster_.ReplyOf(server, server.last));
      full.set_full(true);
      taken += Take(server, full);
    }
    for (const SimulatedServer& server : cluster_.servers) taken += GiveBits(server, &copying);
    figures_.start_s = taken / 1e6;
    figures_.copy_s = copying / 1e6;
  }

  void CheckAnswer(const std::string& when, const RoutingTerm& term, Time now) {
    KeyRanges expected;
    for (const SimulatedRegion& region : cluster_.regions) {
      if (!conflicts_.contains(region.id) && !cluster_.MayHold(region, term)) {
        expected.Add(region.range);
      }
    }
    const auto route = index_->Find(cluster_.schema()->id, KeyRanges::All(), term, now);
    if (!(route.excluded == expected)) Die("a wrong route after " + when);
    if (expected.empty()) Die("nothing is excluded after " + when);
  }
  void Check(const std::string& when) {
    for (int i = 0; i < 3; ++i) {
      const SimulatedRegion& region = cluster_.regions[random_.Uniform(cluster_.regions.size())];
      CheckAnswer(when, cluster_.TermOf(0, cluster_.OwnValue(region, 0)), now_);
      CheckAnswer(when, cluster_.TermOf(0, static_cast<int64_t>(random_() >> 2)), now_);
      CheckAnswer(when,
                  Plan(Predicate::And({Equals(1, cluster_.OwnValue(region, 0)),
                                       Equals(2, cluster_.OwnValue(region, 1))})),
                  now_);
      CheckAnswer(when, Plan(NarrowRange(region)), now_);
    }
    CheckAnswer(when, Plan(InHundred()), now_);
  }

  RoutingTerm Plan(const Predicate& predicate) const {
    return MakePlan(*cluster_.schema(), predicate, {}).routing;
  }
  // A hundredth of all values.
  Predicate NarrowRange(const SimulatedRegion& region) const {
    const int64_t width =
        static_cast<int64_t>(cluster_.regions.size()) * SimulatedCluster::kNarrow / 100;
    return Predicate::Between(2, Value::Int64(region.narrow), Value::Int64(region.narrow + width));
  }
  Predicate InHundred() {
    std::vector<Value> values;
    for (int i = 0; i < 100; ++i) {
      values.push_back(Value::Int64(static_cast<int64_t>(random_() >> 2)));
    }
    return Predicate::In(1, std::move(values));
  }
  double TimeFinds(int runs, auto&& predicate_of) {
    std::vector<double> times;
    for (int i = 0; i < runs; ++i) {
      const SimulatedRegion& region = cluster_.regions[random_.Uniform(cluster_.regions.size())];
      const RoutingTerm term = Plan(predicate_of(region));
      uint64_t excluded = 0;
      times.push_back(Microseconds([&] {
        excluded = index_->Find(cluster_.schema()->id, KeyRanges::All(), term, now_)
                       .excluded.ranges()
                       .size();
      }));
      if (excluded == 0) Die("nothing is excluded");
    }
    return Median(std::move(times));
  }
  void Finds() {
    figures_.find_value_us = TimeFinds(1000, [&](const SimulatedRegion& region) {
      return Equals(1, cluster_.OwnValue(region, 0));
    });
    figures_.find_and_us = TimeFinds(1000, [&](const SimulatedRegion& region) {
      return Predicate::And(
          {Equals(1, cluster_.OwnValue(region, 0)), Equals(2, cluster_.OwnValue(region, 1))});
    });
    figures_.find_in_100_us = TimeFinds(51, [&](const SimulatedRegion&) { return InHundred(); });
    figures_.find_range_us =
        TimeFinds(500, [&](const SimulatedRegion& region) { return NarrowRange(region); });
  }

  void WholeSearches() {
    std::vector<double> times;
    for (int i = 0; i < 300; ++i) {
      const SimulatedRegion& region = cluster_.regions[random_.Uniform(cluster_.regions.size())];
      SearchOptions options;
      options.predicate = Predicate::And(
          {Equals(1, cluster_.OwnValue(region, 0)), Equals(2, cluster_.OwnValue(region, 1))});
      cluster_.cluster.server->ranges = 0;
      times.push_back(Microseconds([&] {
        Search search(context_, cluster_.schema(), std::move(options));
        auto row = search.Next();
        if (!row.ok() || row->has_value()) Die("a search without rows gave some, or failed");
      }));
      if (cluster_.cluster.server->ranges != 1 ||
          cluster_.cluster.server->last_start != region.range.start) {
        --i;  // a false positive more: not the question that is timed
        times.pop_back();
        if (++asked_more_ > 100) Die("searches ask more than one region");
      }
    }
    figures_.search_cpu_us = Median(std::move(times));
  }

  // The coordinator's cost of a search that asks every region, for each region.
  double WideSearches(uint64_t limit) {
    std::vector<double> times;
    for (int i = 0; i < 3; ++i) {
      cluster_.cluster.server->ranges = 0;
      times.push_back(Microseconds([&] {
        Search search(context_, cluster_.schema(), {.limit = limit});
        auto row = search.Next();
        if (!row.ok() || row->has_value()) Die("a search without rows gave some, or failed");
      }));
      if (cluster_.cluster.server->ranges != cluster_.regions.size()) {
        Die("a search of everything does not ask each region once");
      }
    }
    return Median(std::move(times)) / static_cast<double>(cluster_.regions.size());
  }

  // The lower half keeps the id and its filter, the upper half is a new region with its own bits.
  void Splits() {
    std::vector<double> split, bits, empty, closed;
    for (int i = 0; i < 100; ++i) {
      const size_t at = random_.Uniform(cluster_.regions.size());
      const KeyRange range = cluster_.regions[at].range;
      const std::string middle = range.start + "m";
      if (!range.end.empty() && middle >= range.end) continue;
      SimulatedServer& server = cluster_.servers[cluster_.regions[at].server];
      cluster_.regions[at].range.end = middle;
      ++cluster_.regions[at].epoch;
      SimulatedRegion upper = cluster_.regions[at];
      upper.id = cluster_.regions.size() + 1;
      upper.range = {middle, range.end};
      upper.bits = Mix(upper.id + 1'000'000);
      by_id_[upper.id] = cluster_.regions.size();
      server.regions.push_back(cluster_.regions.size());
      cluster_.regions.push_back(upper);
      const uint64_t from = server.last;
      pb::PollReply events;
      for (const SimulatedRegion* region : {&cluster_.regions[at], &cluster_.regions.back()}) {
        *events.add_events() = cluster_.EventOf(pb::Event::REGION_OPENED, &server, *region);
        for (size_t index = 0; index < cluster_.schema()->indexes.size(); ++index) {
          *events.add_events() = cluster_.CompleteOf(&server, *region, index);
        }
      }
      events.MergeFrom(cluster_.ReplyOf(server, from));
      split.push_back(Take(server, events) / events.events_size());
      bits.push_back(GiveBits(server));
      for (int again = 0; again < 5; ++again) {
        empty.push_back(Take(server, cluster_.ReplyOf(server, server.last)));
      }
    }
    // Regions that go, and come back.
    for (int i = 0; i < 50; ++i) {
      const size_t at = random_.Uniform(cluster_.regions.size());
      SimulatedServer& server = cluster_.servers[cluster_.regions[at].server];
      uint64_t from = server.last;
      pb::PollReply gone;
      *gone.add_events() =
          cluster_.EventOf(pb::Event::REGION_CLOSED, &server, cluster_.regions[at]);
      gone.MergeFrom(cluster_.ReplyOf(server, from));
      closed.push_back(Take(server, gone));
      Reopen(at, &server);
      GiveBits(server);
    }
    figures_.apply_split_us = Mean(split);
    figures_.projection_us = Mean(bits);
    figures_.apply_empty_us = Mean(empty);
    figures_.apply_closed_us = Mean(closed);
  }
  double Reopen(size_t at, SimulatedServer* server) {
    const uint64_t from = server->last;
    ++cluster_.regions[at].epoch;
    pb::PollReply reply;
    *reply.add_events() = cluster_.EventOf(pb::Event::REGION_OPENED, server, cluster_.regions[at]);
    reply.MergeFrom(cluster_.ReplyOf(*server, from));
    const double time = Take(*server, reply);
    from == server->last ? Die("nothing was opened") : void();
    pb::PollReply complete;
    const uint64_t opened = server->last;
    for (size_t index = 0; index < cluster_.schema()->indexes.size(); ++index) {
      *complete.add_events() = cluster_.CompleteOf(server, cluster_.regions[at], index);
    }
    complete.MergeFrom(cluster_.ReplyOf(*server, opened));
    Take(*server, complete);
    return time;
  }

  // A server dies: its regions open on the others, or at once on one of them, while its lease still
  // lives. For some time coordinators cannot tell which of the two openings has ended.
  void Crash(bool at_once) {
    const auto living = [&] {
      for (;;) {
        const size_t server = random_.Uniform(cluster_.servers.size());
        if (!dead_.contains(server)) return server;
      }
    };
    const size_t victim = living();
    dead_.insert(victim);
    std::vector<double> opened, conflict;
    std::vector<size_t> moved;
    std::swap(moved, cluster_.servers[victim].regions);
    const size_t heir = living();
    for (const size_t i : moved) {
      const size_t to = at_once ? heir : living();
      cluster_.regions[i].server = to;
      cluster_.servers[to].regions.push_back(i);
      conflicts_.insert({cluster_.regions[i].id, 0});
    }
    WhileSearching([&] {
      if (at_once) return OpenAll(moved, &cluster_.servers[heir]);
      for (const size_t i : moved) {
        const size_t to = cluster_.regions[i].server;
        opened.push_back(Reopen(i, &cluster_.servers[to]));
        const SimulatedServer& other = cluster_.servers[(to + 1) % cluster_.servers.size()];
        if (!other.regions.empty()) {
          conflict.push_back(Take(other, cluster_.ReplyOf(other, other.last)));
        }
      }
    });
    if (!at_once) {
      figures_.apply_opened_us = Mean(opened);
      figures_.apply_conflict_us = Mean(conflict);
    }
    Check("the crash, while nobody knows");
    // The dead server's lease ends; the others go on.
    now_ += hours(2);
    WhileSearching([&] {
      for (size_t s = 0; s < cluster_.servers.size(); ++s) {
        if (!cluster_.servers[s].regions.empty())
          Take(cluster_.servers[s],
               cluster_.ReplyOf(cluster_.servers[s], cluster_.servers[s].last));
      }
      for (const SimulatedServer& server : cluster_.servers) {
        if (!server.regions.empty()) GiveBits(server);
      }
    });
    conflicts_.clear();
    Check("the crash");
  }
  void OpenAll(const std::vector<size_t>& moved, SimulatedServer* server) {
    const uint64_t from = server->last;
    pb::PollReply reply;
    for (const size_t i : moved) {
      ++cluster_.regions[i].epoch;
      *reply.add_events() = cluster_.EventOf(pb::Event::REGION_OPENED, server, cluster_.regions[i]);
      for (size_t index = 0; index < cluster_.schema()->indexes.size(); ++index) {
        *reply.add_events() = cluster_.CompleteOf(server, cluster_.regions[i], index);
      }
    }
    reply.MergeFrom(cluster_.ReplyOf(*server, from));
    Take(*server, reply);
  }
  // Records how long searches had to wait meanwhile. Waits above kHeld beside a thread that never
  // holds a lock for longer are due to the machine, which wakes threads that slept.
  void WhileSearching(const std::function<void()>& run) {
    std::shared_mutex mutex;
    const double passed_us = LongestWait(run, &mutex, &figures_.longest_wait_us);
    (void)LongestWait([&] { HoldAndLetGo(passed_us, &mutex); }, &mutex,
                      &figures_.longest_of_machine_us);
  }
  static void HoldAndLetGo(double for_us, std::shared_mutex* mutex) {
    using Clock = std::chrono::steady_clock;
    const auto compute_until = [](Clock::time_point end) {
      while (Clock::now() < end) continue;
    };
    const auto end = Clock::now() + std::chrono::microseconds(static_cast<int64_t>(for_us));
    while (Clock::now() < end) {
      {
        const std::unique_lock held(*mutex);
        compute_until(Clock::now() + kHeld);
      }
      compute_until(Clock::now() + kHeld);
    }
  }
  // How long it ran.
  double LongestWait(const std::function<void()>& run, std::shared_mutex* mutex,
                     double* longest_us) {
    std::vector<RoutingTerm> terms;
    for (int i = 0; i < 1000; ++i) {
      terms.push_back(cluster_.TermOf(0, static_cast<int64_t>(random_() >> 2)));
    }
    const Time now = now_;
    SearchingThread searching([&, next = size_t{0}]() mutable {
      const std::shared_lock lock(*mutex);
      (void)index_->Find(cluster_.schema()->id, KeyRanges::All(), terms[next++ % terms.size()],
                         now);
    });
    const double passed_us = Microseconds(run);
    searching.End();
    *longest_us = std::max(*longest_us, searching.longest_us());
    return passed_us;
  }

  Random random_;
  ThreadExecutor executor_;
  SimulatedCluster cluster_;
  std::shared_ptr<QueryContext> context_;
  GlobalIndex* index_;
  Time now_;
  std::map<uint64_t, size_t> by_id_;
  std::map<uint64_t, int> conflicts_;  // ids of regions that two servers claim
  std::set<size_t> dead_;
  int asked_more_ = 0;
  Figures figures_;
};

void PrintJson(const std::vector<Figures>& all) {
  std::printf("[");
  for (size_t i = 0; i < all.size(); ++i) {
    const Figures& f = all[i];
    std::printf(
        "%s\n  {\"regions\": %zu, \"probe_us\": %.2f, \"find_value_us\": %.2f, \"find_and_us\": "
        "%.2f, \"find_in_100_us\": %.1f, \"find_range_us\": %.2f, \"search_cpu_us\": %.1f, "
        "\"search_all_us\": %.2f, \"search_all_limit_us\": %.2f, "
        "\"apply_opened_us\": %.1f, \"apply_conflict_us\": %.2f, \"start_s\": %.3f, "
        "\"memory_bytes\": %zu, \"longest_wait_us\": %.0f, \"longest_of_machine_us\": %.0f}",
        i > 0 ? "," : "", f.regions, f.probe_us, f.find_value_us, f.find_and_us, f.find_in_100_us,
        f.find_range_us, f.search_cpu_us, f.search_all_us, f.search_all_limit_us, f.apply_opened_us,
        f.apply_conflict_us, f.start_s, f.memory_bytes, f.longest_wait_us, f.longest_of_machine_us);
  }
  std::printf("\n]\n");
}

void PrintTable(const Figures& f) {
  const auto line = [](const char* what, double figure, const char* unit, const std::string& note) {
    std::printf("  %-44s %10.2f %-3s %s\n", what, figure, unit, note.c_str());
  };
  const auto probes = [&](double us) {
    char text[40];
    std::snprintf(text, sizeof text, "%.1f probes", us / f.probe_us);
    return std::string(text);
  };
  char text[80];
  std::printf("%zu regions on %zu servers\n", f.regions,
              f.regions / SimulatedCluster::kRegionsPerServer);
  line("probe of the matrix alone", f.probe_us, "us", "");
  line("find a value", f.find_value_us, "us", probes(f.find_value_us));
  line("find two values at once", f.find_and_us, "us", probes(f.find_and_us));
  line("find one of 100 values", f.find_in_100_us, "us", probes(f.find_in_100_us));
  line("find a range of values", f.find_range_us, "us", "");
  line("a whole search that asks one region", f.search_cpu_us, "us", "");
  line("one that asks all regions, for each", f.search_all_us, "us", "");
  line("the same with a limit, for each", f.search_all_limit_us, "us", "");
  line("region opened after a crash", f.apply_opened_us, "us", "");
  line("empty reply during a conflict", f.apply_conflict_us, "us", "");
  line("empty reply", f.apply_empty_us, "us", "");
  line("region closed", f.apply_closed_us, "us", "");
  line("an event of a split", f.apply_split_us, "us", "");
  line("bits of two regions, of all indexes", f.projection_us, "us", "");
  std::snprintf(text, sizeof text, "%.1f copies of the bits (%.3f s)", f.start_s / f.copy_s,
                f.copy_s);
  line("start", f.start_s, "s", text);
  std::snprintf(text, sizeof text, "%.0f us beside a lock held for %lld", f.longest_of_machine_us,
                static_cast<long long>(kHeld.count()));
  line("longest wait of a search, a server dying", f.longest_wait_us, "us", text);
  line("matrices", static_cast<double>(f.memory_bytes) / 1e6, "MB", "");
  const std::string of = Printed(", %zu regions", f.regions);
  const auto in_probes = [&](const char* what, double us) {
    Report({.work = what + of,
            .beside = "a probe of the matrix alone",
            .now = Printed("%.1f us; %.1f us", us, f.probe_us),
            .ratio = probes(us)});
  };
  in_probes("finding a value", f.find_value_us);
  in_probes("finding two values at once", f.find_and_us);
  in_probes("finding one of 100 values", f.find_in_100_us);
  Report({.work = "finding a range" + of, .ratio = Printed("%.1f us", f.find_range_us)});
  Report({.work = "a whole search that asks one region" + of,
          .ratio = Printed("%.1f us of the processor", f.search_cpu_us)});
  Report({.work = "start of a coordinator" + of,
          .beside = "copying the bits once",
          .now = Printed("%.2f s; %.3f s; matrices of %.0f MB", f.start_s, f.copy_s,
                         static_cast<double>(f.memory_bytes) / 1e6),
          .ratio = Printed("%.1fx", f.start_s / f.copy_s),
          .goal = f.regions == 100'000 ? "<= 3x" : ""});
  Report({.work = "longest wait of a search while a server of 100 regions dies" + of,
          .beside = Printed("a thread beside a lock that is held for %lld us",
                            static_cast<long long>(kHeld.count())),
          .now = Printed("%.0f us beside the lock", f.longest_of_machine_us),
          .ratio = Printed("%.2f ms", f.longest_wait_us / 1e3),
          .goal = f.regions == 10'000 ? "<= 1 ms" : ""});
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  bool json = false;
  std::vector<size_t> sizes;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--json") {
      json = true;
      continue;
    }
    const size_t regions = std::strtoull(argument.c_str(), nullptr, 10);
    if (regions < 200 || regions % 100 != 0) {
      std::fprintf(stderr,
                   "usage: routing_scale_benchmark [--json] [REGIONS...]   hundreds, >= 200\n");
      return 2;
    }
    sizes.push_back(regions);
  }
  if (sizes.empty()) sizes = {1000, 10'000, 100'000};
  std::vector<tamis::Figures> all;
  for (const size_t regions : sizes) {
    all.push_back(tamis::Bench(regions).Run());
    if (!json) tamis::PrintTable(all.back());
  }
  if (json) {
    tamis::PrintJson(all);
  } else {
    tamis::MeasureMixedSizes(tamis::SimulatedCluster::kFpr);
  }
  return 0;
}
