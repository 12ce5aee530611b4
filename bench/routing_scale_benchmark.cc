// What routing costs a coordinator of many regions: a simulated cluster, its feeds made by this
// program, with splits and crashes under way.
//
//   routing_scale_benchmark [--json] [REGIONS...]      default 1000 10000 100000
//
// Each server has 100 regions, in no order. An index "wide" has 10,000 values a region anywhere
// between its first and its last, so that filters alone can exclude; an index "narrow" has a short
// range of values in each region. Bits are half full, as they are at the expected number of values.
// Times are medians, each of questions that were not asked before; answers are compared with what
// the bits and ranges of every region say, after every phase.
//
// Goals: `find` for one value and for two at once within four probes and, of 10,000 regions, 10 us;
// IN (100) within 100 probes + 50 us; a range 20 us; a whole search without network and server 50
// us; whatever a server tells 50 us; the start within three copies of the bits.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/base/thread_executor.h"
#include "tamis/cluster/region_server.h"
#include "tamis/query/plan.h"
#include "tamis/query/query_context.h"
#include "tamis/query/search.h"
#include "tamis/routing/filter_matrix.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr size_t kRegionsPerServer = 100;
constexpr double kFpr = 0.001;
constexpr int64_t kNarrow = 1000;  // values of the narrow index between a region's least and most

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

double Median(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}
double Mean(const std::vector<double>& times) {
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

struct Figures {
  size_t regions = 0;
  double probe_us = 0, find_value_us = 0, find_and_us = 0, find_in_100_us = 0, find_range_us = 0;
  double search_cpu_us = 0, apply_opened_us = 0, apply_conflict_us = 0, start_s = 0;
  size_t memory_bytes = 0;
  // Told to people only.
  double copy_s = 0, apply_split_us = 0, apply_closed_us = 0, apply_empty_us = 0, projection_us = 0;
};

TableSchema Definition(size_t regions) {
  TableSchema schema;
  schema.id = 1;
  schema.name = "scale";
  schema.columns = {{.id = 1, .name = "id", .type = Type::kInt64, .nullable = false},
                    {.id = 2, .name = "wide", .type = Type::kInt64},
                    {.id = 3, .name = "narrow", .type = Type::kInt64},
                    {.id = 4, .name = "third", .type = Type::kInt64}};
  schema.key = {0};
  // Where there are most regions the second index is a small one.
  schema.indexes = {
      {.id = 1, .name = "wide", .columns = {1}, .fpr = kFpr, .seed = 1},
      {.id = 2,
       .name = "narrow",
       .columns = {2},
       .fpr = kFpr,
       .expected_values = regions > 10'000 ? 1000u : 10'000u,
       .seed = 2},
  };
  if (regions <= 1000) {
    schema.indexes.push_back({.id = 3, .name = "third", .columns = {3}, .fpr = kFpr, .seed = 3});
  }
  return schema;
}

Predicate Equals(uint32_t column, int64_t value) {
  return Predicate::Compare(column, Predicate::Op::kEq, Value::Int64(value));
}

// Whoever is asked says that it has searched and found nothing, and it is counted.
class Asked : public RegionServer {
 public:
  void Mutate(const pb::MutateRequest&, Callback<pb::MutateReply> done) override {
    done(Unavailable("not here"));
  }
  void Search(const pb::SearchRequest& request, Callback<pb::SearchReply> done) override {
    pb::SearchReply reply;
    for (const pb::SearchRange& range : request.ranges()) {
      ++ranges;
      pb::RangeResult* result = reply.add_results();
      result->set_region_id(range.region_id());
      result->set_epoch(range.epoch());
      result->set_start(range.start());
      result->set_end(range.end());
      last_start = range.start();
    }
    done(std::move(reply));
  }
  void Poll(const pb::PollRequest&, Callback<pb::PollReply> done) override {
    done(Unavailable("not here"));
  }

  uint64_t ranges = 0;
  std::string last_start;
};

class StubCluster : public Cluster {
 public:
  std::shared_ptr<RegionServer> Server(const std::string&) override { return server; }
  void ListRegions(const std::string&, std::vector<KeyRange>,
                   Callback<std::vector<RegionInfo>> done) override {
    done(regions);
  }
  void ListServers(Callback<std::vector<ServerInfo>> done) override { done(NotHere()); }
  void ListTables(Callback<std::vector<TableSchema>> done) override { done(NotHere()); }
  void GetTable(const std::string&, Callback<TableSchema> done) override { done(NotHere()); }

  const std::shared_ptr<Asked> server = std::make_shared<Asked>();
  std::vector<RegionInfo> regions;

 private:
  static Status NotHere() { return Unavailable("not here"); }
};

struct Region {
  uint64_t id = 0;
  uint64_t epoch = 1;
  KeyRange range;
  size_t server = 0;
  uint64_t bits = 0;  // names what its filters hold
  int64_t narrow = 0;
};

struct Server {
  std::string name;
  uint64_t start_code = 0;
  uint64_t last = 0;  // number of its last event
  std::vector<size_t> regions;
};

class Bench {
 public:
  explicit Bench(size_t regions)
      : random_(regions),
        executor_(1),
        schema_(std::make_shared<TableSchema>(Definition(regions))),
        context_(std::make_shared<QueryContext>(
            &cluster_, &executor_,
            QueryContext::Options{.request_timeout = std::chrono::seconds(5),
                                  .write_timeout = std::chrono::seconds(30)},
            std::make_shared<GlobalIndex>(GlobalIndex::Options{.lease_margin = Duration(0)}))),
        index_(context_->global.get()),
        now_(executor_.Now()) {
    figures_.regions = regions;
    for (const IndexSpec& index : schema_->indexes) {
      geometries_.push_back(SplitGeometry::For(index.fpr, index.expected_values));
    }
    MakeCluster(regions);
  }

  Figures Run() {
    figures_.probe_us = ProbeAlone();
    Start();
    Check("the start");
    Finds();
    WholeSearches();
    Splits();
    Check("splits");
    Crash();
    figures_.memory_bytes = index_->SizeBytes();
    return figures_;
  }

 private:
  // ---- The cluster

  void MakeCluster(size_t count) {
    servers_.resize(count / kRegionsPerServer);
    for (size_t s = 0; s < servers_.size(); ++s) {
      servers_[s].name = "rs" + std::to_string(s);
      servers_[s].start_code = 1 + random_.Uniform(1'000'000);
    }
    std::vector<size_t> where(count), narrow(count);
    for (size_t i = 0; i < count; ++i) {
      where[i] = i % servers_.size();
      narrow[i] = i;
    }
    Shuffle(&where);
    Shuffle(&narrow);
    for (size_t i = 0; i < count; ++i) {
      Region region{.id = i + 1, .server = where[i], .bits = Mix(i + 1)};
      region.range = {i == 0 ? "" : KeyAt(i), i + 1 == count ? "" : KeyAt(i + 1)};
      region.narrow = static_cast<int64_t>(narrow[i]) * kNarrow;
      regions_.push_back(region);
      servers_[where[i]].regions.push_back(i);
      cluster_.regions.push_back({.id = RegionId(region.id),
                                  .epoch = region.epoch,
                                  .table_id = schema_->id,
                                  .start = region.range.start,
                                  .end = region.range.end,
                                  .server = servers_[where[i]].name});
    }
  }
  void Shuffle(std::vector<size_t>* order) {
    for (size_t i = order->size(); i > 1; --i) {
      std::swap((*order)[i - 1], (*order)[random_.Uniform(i)]);
    }
  }
  std::string KeyAt(size_t i) const {
    Row row(schema_->columns.size());
    row[0] = Value::Int64(static_cast<int64_t>(i) * 1000);
    return EncodeKey(*schema_, row);
  }

  // Half of the bits, and those of the region's own value, which is its number.
  uint64_t Word(const Region& region, size_t index, uint64_t word) const {
    return Mix(region.bits + (index << 40) + word);
  }
  static int64_t OwnValue(const Region& region, size_t index) {
    return index == 1 ? region.narrow : static_cast<int64_t>(region.bits >> 20);
  }
  uint64_t HashOf(size_t index, int64_t value) const { return TermOf(index, value).hash; }
  RoutingTerm TermOf(size_t index, int64_t value) const {
    RoutingTerm term =
        MakePlan(*schema_, Equals(static_cast<uint32_t>(index + 1), value), {}).routing;
    if (term.kind != RoutingTerm::Kind::kValue) Die("an equality is not routed as one value");
    return term;
  }
  // The encoded value, as ranges of values have it.
  std::string Encoded(size_t index, int64_t value) const { return TermOf(index, value).first; }
  std::pair<int64_t, int64_t> RangeOf(const Region& region, size_t index) const {
    if (index == 1) return {region.narrow, region.narrow + kNarrow - 1};
    return {0, std::numeric_limits<int64_t>::max()};
  }

  pb::Event EventOf(pb::Event::Kind kind, Server* server, const Region& region) {
    pb::Event event;
    event.set_kind(kind);
    event.set_sequence(++server->last);
    event.set_region_id(region.id);
    event.set_epoch(region.epoch);
    if (kind == pb::Event::REGION_OPENED) {
      event.set_table_id(schema_->id);
      event.set_start(region.range.start);
      event.set_end(region.range.end);
    }
    return event;
  }
  pb::Event CompleteOf(Server* server, const Region& region, size_t index) {
    pb::Event event = EventOf(pb::Event::INDEX_COMPLETE, server, region);
    event.set_index_id(schema_->indexes[index].id);
    event.set_generation(1);
    event.mutable_geometry()->set_slices(geometries_[index].slices);
    event.mutable_geometry()->set_slice_positions(geometries_[index].slice_positions);
    event.set_layers(1);
    const auto [min, max] = RangeOf(region, index);
    event.set_has_range(true);
    event.set_min(Encoded(index, min));
    event.set_max(Encoded(index, max));
    return event;
  }
  void AddProjection(const Server& server, const Region& region, size_t index,
                     pb::PollReply* reply) const {
    const SplitGeometry& geometry = geometries_[index];
    std::string bytes((geometry.positions() + 63) / 64 * 8, '\0');
    for (uint64_t word = 0; word < bytes.size() / 8; ++word) {
      const uint64_t bits = Word(region, index, word);
      std::memcpy(&bytes[word * 8], &bits, 8);
    }
    const uint64_t hash = HashOf(index, OwnValue(region, index));
    for (uint32_t slice = 0; slice < geometry.slices; ++slice) {
      const uint64_t position = geometry.Position(hash, slice);
      bytes[position / 8] = static_cast<char>(bytes[position / 8] | 1 << (position % 8));
    }
    pb::Projection* projection = reply->add_projections();
    projection->set_region_id(region.id);
    projection->set_epoch(region.epoch);
    projection->set_index_id(schema_->indexes[index].id);
    projection->set_generation(1);
    projection->set_as_of(server.last);
    projection->mutable_geometry()->set_slices(geometry.slices);
    projection->mutable_geometry()->set_slice_positions(geometry.slice_positions);
    projection->add_layers(std::move(bytes));
    const auto [min, max] = RangeOf(region, index);
    projection->set_has_range(true);
    projection->set_min(Encoded(index, min));
    projection->set_max(Encoded(index, max));
  }
  pb::PollReply ReplyOf(const Server& server, uint64_t from) const {
    pb::PollReply reply;
    reply.set_start_code(server.start_code);
    reply.set_from(from);
    reply.set_to(server.last);
    reply.set_lease_ns(static_cast<uint64_t>(Duration(hours(1)).count()));
    return reply;
  }
  double Take(const Server& server, const pb::PollReply& reply) {
    return Microseconds([&] { index_->Apply(server.name, reply, now_, now_); });
  }
  // Gives what the coordinator wants of the server, and returns the time of taking it in.
  double GiveBits(const Server& server, double* copying = nullptr) {
    double taken = 0;
    for (;;) {
      pb::PollRequest poll;
      taken += Microseconds([&] { poll = index_->NextPoll(server.name, seconds(1)); });
      if (poll.wanted().empty()) return taken;
      pb::PollReply reply = ReplyOf(server, server.last);
      for (const pb::ColumnId& wanted : poll.wanted()) {
        AddProjection(server, regions_[by_id_[wanted.region_id()]], wanted.index_id() - 1, &reply);
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
    FilterMatrix matrix(geometries_[0]);
    std::string bytes(matrix.projection_bytes(), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    std::vector<FilterMatrix::Filling> fillings;
    for (size_t i = 0; i < regions_.size(); ++i) {
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
    for (size_t i = 0; i < regions_.size(); ++i) by_id_[regions_[i].id] = i;
    double taken = 0, copying = 0;
    for (Server& server : servers_) {
      pb::PollReply full;
      for (const size_t i : server.regions) {
        *full.add_events() = EventOf(pb::Event::REGION_OPENED, &server, regions_[i]);
        for (size_t index = 0; index < schema_->indexes.size(); ++index) {
          *full.add_events() = CompleteOf(&server, regions_[i], index);
        }
      }
      full.MergeFrom(ReplyOf(server, server.last));
      full.set_full(true);
      taken += Take(server, full);
    }
    for (const Server& server : servers_) taken += GiveBits(server, &copying);
    figures_.start_s = taken / 1e6;
    figures_.copy_s = copying / 1e6;
  }

  // What the bits and ranges say of a region.
  bool MayHold(const Region& region, const RoutingTerm& term) const {
    switch (term.kind) {
      case RoutingTerm::Kind::kAnd:
        return std::ranges::all_of(term.children,
                                   [&](const auto& t) { return MayHold(region, t); });
      case RoutingTerm::Kind::kOr:
        return std::ranges::any_of(term.children,
                                   [&](const auto& t) { return MayHold(region, t); });
      default:
        break;
    }
    const size_t index = term.index_id - 1;
    const auto [least, most] = RangeOf(region, index);
    if (term.kind == RoutingTerm::Kind::kRange) {
      return Encoded(index, most) >= term.low &&
             (term.high.empty() || Encoded(index, least) < term.high);
    }
    const SplitGeometry& geometry = geometries_[index];
    std::optional<uint64_t> own;
    for (uint32_t slice = 0; slice < geometry.slices; ++slice) {
      const uint64_t position = geometry.Position(term.hash, slice);
      if (Word(region, index, position / 64) >> (position % 64) & 1) continue;
      if (!own) own = HashOf(index, OwnValue(region, index));
      bool set = false;
      for (uint32_t s = 0; s < geometry.slices; ++s) set |= geometry.Position(*own, s) == position;
      if (!set) return false;
    }
    return Encoded(index, least) <= term.first && term.first <= Encoded(index, most);
  }

  void CheckAnswer(const std::string& when, const RoutingTerm& term, Time now) {
    KeyRanges expected;
    for (const Region& region : regions_) {
      if (!conflicts_.contains(region.id) && !dead_.contains(region.server) &&
          !MayHold(region, term)) {
        expected.Add(region.range);
      }
    }
    const auto route = index_->Find(schema_->id, KeyRanges::All(), term, now);
    if (!(route.excluded == expected)) Die("a wrong route after " + when);
    if (expected.empty()) Die("nothing is excluded after " + when);
  }
  void Check(const std::string& when) {
    for (int i = 0; i < 3; ++i) {
      const Region& region = regions_[random_.Uniform(regions_.size())];
      CheckAnswer(when, TermOf(0, OwnValue(region, 0)), now_);
      CheckAnswer(when, TermOf(0, static_cast<int64_t>(random_() >> 2)), now_);
      CheckAnswer(
          when,
          Plan(Predicate::And({Equals(1, OwnValue(region, 0)), Equals(2, OwnValue(region, 1))})),
          now_);
      CheckAnswer(when, Plan(NarrowRange(region)), now_);
    }
    CheckAnswer(when, Plan(InHundred()), now_);
  }

  RoutingTerm Plan(const Predicate& predicate) const {
    return MakePlan(*schema_, predicate, {}).routing;
  }
  // A hundredth of all values.
  Predicate NarrowRange(const Region& region) const {
    const int64_t width = static_cast<int64_t>(regions_.size()) * kNarrow / 100;
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
      const Region& region = regions_[random_.Uniform(regions_.size())];
      const RoutingTerm term = Plan(predicate_of(region));
      uint64_t excluded = 0;
      times.push_back(Microseconds([&] {
        excluded = index_->Find(schema_->id, KeyRanges::All(), term, now_).excluded.ranges().size();
      }));
      if (excluded == 0) Die("nothing is excluded");
    }
    return Median(std::move(times));
  }
  void Finds() {
    figures_.find_value_us =
        TimeFinds(1000, [&](const Region& region) { return Equals(1, OwnValue(region, 0)); });
    figures_.find_and_us = TimeFinds(1000, [&](const Region& region) {
      return Predicate::And({Equals(1, OwnValue(region, 0)), Equals(2, OwnValue(region, 1))});
    });
    figures_.find_in_100_us = TimeFinds(51, [&](const Region&) { return InHundred(); });
    figures_.find_range_us =
        TimeFinds(500, [&](const Region& region) { return NarrowRange(region); });
  }

  void WholeSearches() {
    std::vector<double> times;
    for (int i = 0; i < 300; ++i) {
      const Region& region = regions_[random_.Uniform(regions_.size())];
      SearchOptions options;
      options.predicate =
          Predicate::And({Equals(1, OwnValue(region, 0)), Equals(2, OwnValue(region, 1))});
      cluster_.server->ranges = 0;
      times.push_back(Microseconds([&] {
        Search search(context_, schema_, std::move(options));
        auto row = search.Next();
        if (!row.ok() || row->has_value()) Die("a search without rows gave some, or failed");
      }));
      if (cluster_.server->ranges != 1 || cluster_.server->last_start != region.range.start) {
        --i;  // a false positive more: not the question that is timed
        times.pop_back();
        if (++asked_more_ > 100) Die("searches ask more than one region");
      }
    }
    figures_.search_cpu_us = Median(std::move(times));
  }

  // The lower half keeps the id and its filter, the upper half is a new region with its own bits.
  void Splits() {
    std::vector<double> split, bits, empty, closed;
    for (int i = 0; i < 100; ++i) {
      const size_t at = random_.Uniform(regions_.size());
      const KeyRange range = regions_[at].range;
      const std::string middle = range.start + "m";
      if (!range.end.empty() && middle >= range.end) continue;
      Server& server = servers_[regions_[at].server];
      regions_[at].range.end = middle;
      ++regions_[at].epoch;
      Region upper = regions_[at];
      upper.id = regions_.size() + 1;
      upper.range = {middle, range.end};
      upper.bits = Mix(upper.id + 1'000'000);
      by_id_[upper.id] = regions_.size();
      server.regions.push_back(regions_.size());
      regions_.push_back(upper);
      const uint64_t from = server.last;
      pb::PollReply events;
      for (const Region* region : {&regions_[at], &regions_.back()}) {
        *events.add_events() = EventOf(pb::Event::REGION_OPENED, &server, *region);
        for (size_t index = 0; index < schema_->indexes.size(); ++index) {
          *events.add_events() = CompleteOf(&server, *region, index);
        }
      }
      events.MergeFrom(ReplyOf(server, from));
      split.push_back(Take(server, events) / events.events_size());
      bits.push_back(GiveBits(server));
      for (int again = 0; again < 5; ++again) {
        empty.push_back(Take(server, ReplyOf(server, server.last)));
      }
    }
    // Regions that go, and come back.
    for (int i = 0; i < 50; ++i) {
      const size_t at = random_.Uniform(regions_.size());
      Server& server = servers_[regions_[at].server];
      uint64_t from = server.last;
      pb::PollReply gone;
      *gone.add_events() = EventOf(pb::Event::REGION_CLOSED, &server, regions_[at]);
      gone.MergeFrom(ReplyOf(server, from));
      closed.push_back(Take(server, gone));
      Reopen(at, &server);
      GiveBits(server);
    }
    figures_.apply_split_us = Mean(split);
    figures_.projection_us = Mean(bits);
    figures_.apply_empty_us = Mean(empty);
    figures_.apply_closed_us = Mean(closed);
  }
  double Reopen(size_t at, Server* server) {
    const uint64_t from = server->last;
    ++regions_[at].epoch;
    pb::PollReply reply;
    *reply.add_events() = EventOf(pb::Event::REGION_OPENED, server, regions_[at]);
    reply.MergeFrom(ReplyOf(*server, from));
    const double time = Take(*server, reply);
    from == server->last ? Die("nothing was opened") : void();
    pb::PollReply complete;
    const uint64_t opened = server->last;
    for (size_t index = 0; index < schema_->indexes.size(); ++index) {
      *complete.add_events() = CompleteOf(server, regions_[at], index);
    }
    complete.MergeFrom(ReplyOf(*server, opened));
    Take(*server, complete);
    return time;
  }

  // A server dies: its regions open on the others while its lease still lives, and for some time
  // nobody knows which of the two is history.
  void Crash() {
    const size_t victim = random_.Uniform(servers_.size());
    std::vector<double> opened, conflict;
    std::vector<size_t> moved;
    std::swap(moved, servers_[victim].regions);
    for (const size_t i : moved) {
      size_t to = random_.Uniform(servers_.size() - 1);
      if (to >= victim) ++to;
      regions_[i].server = to;
      servers_[to].regions.push_back(i);
      conflicts_.insert({regions_[i].id, 0});
      opened.push_back(Reopen(i, &servers_[to]));
      const Server& other = servers_[(to + 1) % servers_.size()];
      if (&other != &servers_[victim]) {
        conflict.push_back(Take(other, ReplyOf(other, other.last)));
      }
    }
    figures_.apply_opened_us = Mean(opened);
    figures_.apply_conflict_us = Mean(conflict);
    Check("the crash, while nobody knows");
    now_ += hours(2);
    for (size_t s = 0; s < servers_.size(); ++s) {
      if (s == victim) continue;
      Take(servers_[s], ReplyOf(servers_[s], servers_[s].last));
      GiveBits(servers_[s]);
    }
    conflicts_.clear();
    Check("the crash");
  }

  Random random_;
  ThreadExecutor executor_;
  SchemaPtr schema_;
  StubCluster cluster_;
  std::shared_ptr<QueryContext> context_;
  GlobalIndex* index_;
  Time now_;
  std::vector<SplitGeometry> geometries_;
  std::vector<Server> servers_;
  std::vector<Region> regions_;
  std::map<uint64_t, size_t> by_id_;
  std::map<uint64_t, int> conflicts_;  // ids of regions that two servers claim
  std::map<size_t, int> dead_;
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
        "\"apply_opened_us\": %.1f, \"apply_conflict_us\": %.2f, \"start_s\": %.3f, "
        "\"memory_bytes\": %zu}",
        i > 0 ? "," : "", f.regions, f.probe_us, f.find_value_us, f.find_and_us, f.find_in_100_us,
        f.find_range_us, f.search_cpu_us, f.apply_opened_us, f.apply_conflict_us, f.start_s,
        f.memory_bytes);
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
  std::printf("%zu regions on %zu servers\n", f.regions, f.regions / kRegionsPerServer);
  line("probe of the matrix alone", f.probe_us, "us", "");
  line("find a value", f.find_value_us, "us", probes(f.find_value_us));
  line("find two values at once", f.find_and_us, "us", probes(f.find_and_us));
  line("find one of 100 values", f.find_in_100_us, "us", probes(f.find_in_100_us));
  line("find a range of values", f.find_range_us, "us", "");
  line("a whole search that asks one region", f.search_cpu_us, "us", "");
  line("region opened after a crash", f.apply_opened_us, "us", "");
  line("empty reply during a conflict", f.apply_conflict_us, "us", "");
  line("empty reply", f.apply_empty_us, "us", "");
  line("region closed", f.apply_closed_us, "us", "");
  line("an event of a split", f.apply_split_us, "us", "");
  line("bits of two regions, of all indexes", f.projection_us, "us", "");
  std::snprintf(text, sizeof text, "%.1f copies of the bits (%.3f s)", f.start_s / f.copy_s,
                f.copy_s);
  line("start", f.start_s, "s", text);
  line("matrices", static_cast<double>(f.memory_bytes) / 1e6, "MB", "");
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
  if (json) tamis::PrintJson(all);
  return 0;
}
