// GlobalIndex against a simple slow model: servers that open, close and split regions, count
// values, begin new lives; replies that are lost, doubled, late, out of order; leases that end. The
// model keeps each server's state as of each number, and asks every rule of every region.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "tamis/base/coding.h"
#include "tamis/base/random.h"
#include "tamis/filter/scalable_split_counting_bloom_filter.h"
#include "tamis/routing/global_index.h"

namespace tamis {
namespace {

using std::chrono::seconds;

constexpr SplitGeometry kGeometries[] = {
    {2, 24}, {3, 40}, {2, 65}, {5, 8}};  // the last one soon gets layers

struct Index {
  uint64_t generation = 0;
  ScalableSplitCountingBloomFilter filter{SplitGeometry{}};
  std::multiset<std::string> values;
  bool has_range = false;
  std::string min, max;
};

struct Region {
  uint64_t id = 0, epoch = 0;
  uint32_t table = 0;
  KeyRange range;
  std::map<uint32_t, Index> indexes;
};

using Regions = std::map<uint64_t, Region>;

uint64_t HashOf(const std::string& value) { return Hash(value, 7); }

// A model of a server and its feed that keeps every state it was ever in.
class Server {
 public:
  Server(Random* random, std::string name) : name(std::move(name)), random_(random) { Restart(); }

  void Restart() {
    do {
      start_code_ = 1 + random_->Uniform(1000);
    } while (lives_.contains(start_code_));
    regions_.clear();
    events_.clear();
    lives_[start_code_] = {};
    Remember();
  }

  void Change() {
    switch (random_->Uniform(10)) {
      case 0:
        if (regions_.size() < 6) Open();
        break;
      case 1:
        if (random_->OneIn(3)) Close();
        break;
      case 2:
        if (Region* region = Any()) Complete(region);
        break;
      case 3:
        if (Region* region = Any(); region != nullptr && random_->OneIn(4)) {
          const uint32_t id = 1 + static_cast<uint32_t>(random_->Uniform(2));
          if (region->indexes.erase(id) > 0) Say(pb::Event::INDEX_DROPPED, *region, id);
        }
        break;
      default:
        if (Region* region = Any()) {
          for (int n = random_->OneIn(4) ? 20 : 1; n > 0; --n) ChangeValue(region);
        }
    }
  }

  pb::PollReply Answer(const pb::PollRequest& request) {
    pb::PollReply reply;
    reply.set_start_code(start_code_);
    for (const auto& wanted : request.wanted()) Project(wanted, &reply);
    if (random_->OneIn(3)) Change();  // between the bits and the events
    reply.set_to(events_.size());
    const bool full = request.start_code() != start_code_ || request.applied() > events_.size() ||
                      random_->OneIn(20);
    reply.set_full(full);
    reply.set_from(full ? events_.size() : request.applied());
    if (full) {
      for (const auto& [id, region] : regions_) {
        *reply.add_events() = Opened(region);
        for (const auto& [index_id, index] : region.indexes) {
          *reply.add_events() = Completed(region, index_id);
        }
      }
    } else {
      for (size_t i = request.applied(); i < events_.size(); ++i) *reply.add_events() = events_[i];
    }
    if (!random_->OneIn(4)) {
      reply.set_lease_ns(
          static_cast<uint64_t>(Duration(seconds(1 + random_->Uniform(15))).count()));
    }
    return reply;
  }

  // The state at an event number of a server's life; nullptr if that life is too old to be kept.
  const Regions& StateAsOf(uint64_t start_code, uint64_t number) const {
    return lives_.at(start_code)[number];
  }
  bool HasLife(uint64_t start_code) const { return lives_.contains(start_code); }

  const std::string name;

 private:
  Region* Any() {
    if (regions_.empty()) return nullptr;
    auto it = regions_.begin();
    std::advance(it, random_->Uniform(regions_.size()));
    return &it->second;
  }
  void Remember() { lives_[start_code_].push_back(regions_); }
  pb::Event Event(pb::Event::Kind kind, const Region& region, uint32_t index_id) const {
    pb::Event event;
    event.set_kind(kind);
    event.set_region_id(region.id);
    event.set_epoch(region.epoch);
    event.set_index_id(index_id);
    auto index = region.indexes.find(index_id);
    if (index == region.indexes.end()) return event;
    event.set_generation(index->second.generation);
    event.set_has_range(index->second.has_range);
    event.set_min(index->second.min);
    event.set_max(index->second.max);
    event.set_layers(index->second.filter.layers());
    return event;
  }
  pb::Event Opened(const Region& region) const {
    pb::Event event = Event(pb::Event::REGION_OPENED, region, 0);
    event.set_table_id(region.table);
    event.set_start(region.range.start);
    event.set_end(region.range.end);
    return event;
  }
  pb::Event Completed(const Region& region, uint32_t index_id) const {
    pb::Event event = Event(pb::Event::INDEX_COMPLETE, region, index_id);
    const SplitGeometry& geometry = region.indexes.at(index_id).filter.geometry();
    event.mutable_geometry()->set_slices(geometry.slices);
    event.mutable_geometry()->set_slice_positions(geometry.slice_positions);
    return event;
  }
  void Say(pb::Event event) {
    event.set_sequence(events_.size() + 1);
    events_.push_back(std::move(event));
    Remember();
  }
  void Say(pb::Event::Kind kind, const Region& region, uint32_t index_id) {
    Say(Event(kind, region, index_id));
  }

  void Open() {
    Region region;
    region.id = random_->Uniform(8);
    epoch_ += 1 + random_->Uniform(1000);  // on each server as it likes
    region.epoch = epoch_;
    region.table = 1 + static_cast<uint32_t>(random_->Uniform(2));
    const auto bound = [this] {
      return std::string(1, static_cast<char>('a' + random_->Uniform(6)));
    };
    do {
      region.range = {random_->OneIn(4) ? "" : bound(), random_->OneIn(4) ? "" : bound()};
    } while (region.range.empty());
    regions_[region.id] = region;
    Say(Opened(region));
  }
  void Close() {
    Region* region = Any();
    if (region == nullptr) return;
    pb::Event event = Event(pb::Event::REGION_CLOSED, *region, 0);
    regions_.erase(region->id);
    Say(event);
  }
  void Complete(Region* region) {
    const uint32_t id = 1 + static_cast<uint32_t>(random_->Uniform(2));
    Index& index = region->indexes[id];
    index.generation = ++generations_;
    index.filter =
        ScalableSplitCountingBloomFilter(kGeometries[random_->Uniform(std::size(kGeometries))]);
    for (const auto& value : index.values) index.filter.Insert(HashOf(value));
    index.has_range = !index.values.empty();
    if (index.has_range) {
      index.min = *index.values.begin();
      index.max = *index.values.rbegin();
    }
    Say(Completed(*region, id));
  }
  void ChangeValue(Region* region) {
    if (region->indexes.empty()) return;
    auto it = region->indexes.begin();
    std::advance(it, random_->Uniform(region->indexes.size()));
    auto& [id, index] = *it;
    pb::Event flips;
    const auto on_flip = [&](uint32_t layer, uint64_t position, bool set) {
      flips.add_flips((uint64_t{layer} << 33) | (position << 1) | (set ? 1 : 0));
    };
    const uint32_t layers = index.filter.layers();
    if (!index.values.empty() && random_->OneIn(3)) {
      auto value = index.values.begin();
      std::advance(value, random_->Uniform(index.values.size()));
      index.filter.Erase(HashOf(*value), on_flip);
      index.values.erase(value);
    } else {
      const std::string value = "v" + std::to_string(random_->Uniform(200));
      index.values.insert(value);
      index.filter.Insert(HashOf(value), on_flip);
    }
    // Each event of it is a number of its own; only the last one gives the state as of all.
    if (index.filter.layers() != layers) Say(pb::Event::LAYER_ADDED, *region, id);
    if (flips.flips_size() > 0) {
      pb::Event event = Event(pb::Event::FLIPS, *region, id);
      *event.mutable_flips() = flips.flips();
      Say(event);
    }
    const std::string low = index.values.empty() ? index.min : *index.values.begin();
    const std::string high = index.values.empty() ? index.max : *index.values.rbegin();
    if (!index.values.empty() && (!index.has_range || low < index.min || high > index.max)) {
      index.min = index.has_range ? std::min(index.min, low) : low;
      index.max = index.has_range ? std::max(index.max, high) : high;
      index.has_range = true;
      Say(pb::Event::RANGE_WIDENED, *region, id);
    }
  }
  void Project(const pb::ColumnId& wanted, pb::PollReply* reply) const {
    auto region = regions_.find(wanted.region_id());
    if (region == regions_.end()) return;
    auto found = region->second.indexes.find(wanted.index_id());
    if (found == region->second.indexes.end()) return;
    const Index& index = found->second;
    pb::Projection* projection = reply->add_projections();
    projection->set_region_id(wanted.region_id());
    projection->set_epoch(region->second.epoch);
    projection->set_index_id(wanted.index_id());
    projection->set_generation(index.generation);
    projection->set_as_of(events_.size());
    projection->mutable_geometry()->set_slices(index.filter.geometry().slices);
    projection->mutable_geometry()->set_slice_positions(index.filter.geometry().slice_positions);
    for (uint32_t layer = 0; layer < index.filter.layers(); ++layer) {
      std::string* bytes = projection->add_layers();
      for (const uint64_t word : index.filter.Projection(layer)) PutFixed64(bytes, word);
    }
    projection->set_has_range(index.has_range);
    projection->set_min(index.min);
    projection->set_max(index.max);
  }

  Random* const random_;
  uint64_t start_code_ = 0;
  uint64_t epoch_ = 0;
  uint64_t generations_ = 0;
  Regions regions_;
  std::vector<pb::Event> events_;
  std::map<uint64_t, std::vector<Regions>> lives_;  // by start code: the state as of each number
};

// The states of one server that a coordinator may assume.
struct Belief {
  uint64_t start_code = 0;
  uint64_t applied = 0;
  Time last_sent = Time::min();
  Time lease_until = Time::min();
  Regions regions;
  // (region, epoch, index, generation) whose bits have come.
  std::set<std::tuple<uint64_t, uint64_t, uint32_t, uint64_t>> bits;

  // False: it is left.
  bool Take(const Server& server, const pb::PollReply& reply, Time sent) {
    if (sent < last_sent) return false;
    const bool known = reply.start_code() == start_code;
    if (reply.full()) {
      if (known && reply.to() <= applied) return false;
      *this = {};
      start_code = reply.start_code();
    } else if (!known || reply.from() > applied) {
      return false;
    }
    last_sent = sent;
    if (reply.to() >= applied) {
      applied = reply.to();
      regions = server.StateAsOf(start_code, applied);
      for (const pb::Projection& p : reply.projections()) {
        if (!reply.full()) bits.insert({p.region_id(), p.epoch(), p.index_id(), p.generation()});
      }
    }
    if (reply.lease_ns() > 0) {
      lease_until = std::max(lease_until, sent + Duration(reply.lease_ns()));
    }
    return true;
  }
};

class Model {
 public:
  struct Known {
    const Region* region;
    const Belief* belief;
  };

  std::vector<Known> All(uint32_t table) const {
    std::vector<Known> all;
    for (const auto& [name, belief] : beliefs) {
      for (const auto& [id, region] : belief.regions) {
        if (region.table == table) all.push_back({&region, &belief});
      }
    }
    return all;
  }

  std::vector<Known> Placed(uint32_t table, Time now) const {
    std::vector<Known> all = All(table), placed;
    for (const Known& known : all) {
      bool alone = true, rival = false;
      for (const Known& other : all) {
        if (other.region == known.region ||
            KeyRanges::Of(known.region->range).Intersect(other.region->range).empty()) {
          continue;
        }
        alone = false;
        rival |= other.belief->lease_until > now;
      }
      if (alone || (known.belief->lease_until > now && !rival)) placed.push_back(known);
    }
    return placed;
  }

  // Whether there is a row; what the ranges say; what ranges and filters say.
  enum class By { kRows, kRanges, kFilters };
  bool MayHold(const Known& known, const RoutingTerm& term, By by) const {
    const auto& [region, belief] = known;
    switch (term.kind) {
      case RoutingTerm::Kind::kAll:
        return true;
      case RoutingTerm::Kind::kNone:
        return false;
      case RoutingTerm::Kind::kAnd:
        return std::ranges::all_of(term.children,
                                   [&](const auto& t) { return MayHold(known, t, by); });
      case RoutingTerm::Kind::kOr:
        return std::ranges::any_of(term.children,
                                   [&](const auto& t) { return MayHold(known, t, by); });
      case RoutingTerm::Kind::kRange:
      case RoutingTerm::Kind::kValue:
        break;
    }
    auto found = region->indexes.find(term.index_id);
    if (found == region->indexes.end()) return true;
    const Index& index = found->second;
    const bool value = term.kind == RoutingTerm::Kind::kValue;
    if (by != By::kRows) {
      if (!belief->bits.contains({region->id, region->epoch, term.index_id, index.generation})) {
        return true;
      }
      if (!index.has_range) return false;
      return value ? index.min <= term.first && term.first <= index.max &&
                         (by == By::kRanges || index.filter.MayContain(term.hash))
                   : index.max >= term.low && (term.high.empty() || index.min < term.high);
    }
    return std::ranges::any_of(index.values, [&](const std::string& v) {
      return value ? v == term.first : v >= term.low && (term.high.empty() || v < term.high);
    });
  }

  // The term names an index whose bits have not come.
  bool NamesUnknown(const Known& known, const RoutingTerm& term) const {
    if (term.kind != RoutingTerm::Kind::kValue && term.kind != RoutingTerm::Kind::kRange) {
      return std::ranges::any_of(term.children,
                                 [&](const auto& t) { return NamesUnknown(known, t); });
    }
    const auto& [region, belief] = known;
    auto index = region->indexes.find(term.index_id);
    return index == region->indexes.end() ||
           !belief->bits.contains(
               {region->id, region->epoch, term.index_id, index->second.generation});
  }

  std::map<std::string, Belief> beliefs;
};

KeyRanges RandomKeys(Random* random) {
  if (random->OneIn(2)) return KeyRanges::All();
  KeyRanges keys = KeyRanges::Of({"b", "d"});
  if (random->OneIn(2)) keys.Add({"da", "e"});
  if (random->OneIn(2)) keys.Add({"g", ""});
  return keys;
}

RoutingTerm RandomTerm(Random* random, int depth) {
  RoutingTerm term;
  term.index_id = 1 + static_cast<uint32_t>(random->Uniform(3));
  const auto value = [&] { return "v" + std::to_string(random->Uniform(220)); };
  switch (random->Uniform(depth > 0 ? 8 : 4)) {
    case 0:
      term.kind = RoutingTerm::Kind::kRange;
      term.low = random->OneIn(4) ? "" : value();
      term.high = random->OneIn(4) ? "" : value();
      break;
    case 4:
    case 5:
    case 6:
      term.kind = random->OneIn(2) ? RoutingTerm::Kind::kAnd : RoutingTerm::Kind::kOr;
      for (uint64_t n = random->Uniform(4); n > 0; --n) {
        term.children.push_back(RandomTerm(random, depth - 1));
      }
      break;
    case 7:  // IN
      term.kind = RoutingTerm::Kind::kOr;
      for (uint64_t n = 20 + random->Uniform(20); n > 0; --n) {
        RoutingTerm child{.kind = RoutingTerm::Kind::kValue, .index_id = term.index_id};
        child.first = value();
        child.hash = HashOf(child.first);
        term.children.push_back(child);
      }
      break;
    default:
      term.kind = RoutingTerm::Kind::kValue;
      term.first = value();
      term.hash = HashOf(term.first);
  }
  return term;
}

struct Tally {
  uint64_t excluded = 0, asked = 0, unplaced = 0, late = 0, capped = 0, coarse = 0;
  uint64_t by_layers = 0;  // excluded by a filter of several
};

void RunModel(uint64_t seed, Tally* tally) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  GlobalIndex::Options options;
  options.lease_margin = Duration(0);
  const bool capped = random.OneIn(4);
  if (capped) options.max_bytes = random.Uniform(20'000);
  GlobalIndex index(options);
  Model model;
  std::vector<std::unique_ptr<Server>> servers;
  for (uint64_t i = 0, n = 1 + random.Uniform(4); i < n; ++i) {
    servers.push_back(std::make_unique<Server>(&random, "rs" + std::to_string(i)));
  }
  struct OnItsWay {
    Server* server;
    Time sent;
    pb::PollRequest request;
    std::optional<pb::PollReply> reply;
  };
  std::vector<OnItsWay> messages;
  Time now = seconds(1000);
  Time looked = now;  // overlaps are looked at with each reply
  for (int step = 0; step < 3000; ++step) {
    Server* server = servers[random.Uniform(servers.size())].get();
    switch (random.Uniform(12)) {
      case 0:
        now += seconds(random.Uniform(6));
        break;
      case 1:
        if (random.OneIn(10)) server->Restart();
        break;
      case 2:
      case 3:
      case 4:
        server->Change();
        break;
      case 5:
      case 6:
        messages.push_back({server, now, index.NextPoll(server->name, seconds(1)), {}});
        now += Duration(1);
        break;
      default: {
        if (messages.empty()) break;
        // Mostly the oldest one.
        const size_t i = random.OneIn(3) ? random.Uniform(messages.size()) : 0;
        OnItsWay& message = messages[i];
        if (!message.reply.has_value()) {
          message.reply = message.server->Answer(message.request);
          break;
        }
        Belief& belief = model.beliefs[message.server->name];
        tally->late += message.sent < belief.last_sent;
        if (!random.OneIn(8)) {
          index.Apply(message.server->name, *message.reply, message.sent, now);
          if (belief.Take(*message.server, *message.reply, message.sent)) looked = now;
        }
        if (!random.OneIn(6)) messages.erase(messages.begin() + static_cast<ptrdiff_t>(i));
        break;
      }
    }
    if (step % 3 != 0) continue;
    const uint32_t table = 1 + static_cast<uint32_t>(random.Uniform(2));
    const RoutingTerm term = RandomTerm(&random, 2);
    const KeyRanges keys = RandomKeys(&random);
    const KeyRanges excluded = index.Find(table, keys, term, now).excluded;
    KeyRanges must;
    GlobalIndex::Reasons why;
    std::vector<std::string> candidates;
    for (const auto& known : model.Placed(table, looked)) {
      const Region& region = *known.region;
      if (!keys.Overlaps(region.range)) continue;
      ++why.regions;
      ++tally->asked;
      const bool live = known.belief->lease_until > now;
      if (!live || model.MayHold(known, term, Model::By::kRows)) {
        ASSERT_FALSE(excluded.Overlaps(region.range) && live)
            << "step " << step << ": a region that holds it was left out";
      }
      if (live && !model.MayHold(known, term, Model::By::kFilters)) {
        must.Add(region.range);
        ++tally->excluded;
        const bool by_filter = model.MayHold(known, term, Model::By::kRanges);
        ++(by_filter ? why.excluded_by_filter : why.excluded_by_range);
        tally->by_layers += by_filter && term.kind == RoutingTerm::Kind::kValue &&
                            region.indexes.at(term.index_id).filter.layers() > 1;
      } else if (!live || model.NamesUnknown(known, term)) {
        ++why.unknown;
      } else {
        candidates.push_back(region.range.start);
      }
    }
    if (!capped) {
      ASSERT_EQ(excluded, must) << "step " << step << " of table " << table;
    } else {
      KeyRanges wrongly = excluded;
      wrongly.Subtract(must);
      ASSERT_TRUE(wrongly.empty()) << "step " << step;
    }
    const auto stats = index.stats();
    ASSERT_LE(stats.matrix_bytes, options.max_bytes);
    tally->unplaced += stats.regions_unplaced;
    tally->capped += stats.indexes_left_out;
    tally->coarse += stats.filters_coarse;
    const auto reasons = index.Explain(table, keys, term, excluded, now);
    ASSERT_EQ(reasons.regions, reasons.excluded_by_filter + reasons.excluded_by_range +
                                   reasons.unknown + reasons.candidates.size());
    ASSERT_EQ(reasons.excluded_by_filter + reasons.excluded_by_range > 0, !excluded.empty());
    if (capped) continue;
    // Regions beside which nothing is placed.
    const auto placed = model.Placed(table, looked);
    for (const auto& known : model.All(table)) {
      const bool undecided = std::ranges::none_of(placed, [&](const auto& other) {
        return KeyRanges::Of(known.region->range).Overlaps(other.region->range);
      });
      if (!undecided || !keys.Overlaps(known.region->range)) continue;
      ++why.regions;
      ++why.unknown;
    }
    ASSERT_EQ(reasons.regions, why.regions);
    ASSERT_EQ(reasons.excluded_by_filter, why.excluded_by_filter);
    ASSERT_EQ(reasons.excluded_by_range, why.excluded_by_range);
    ASSERT_EQ(reasons.unknown, why.unknown);
    std::ranges::sort(candidates);
    ASSERT_EQ(reasons.candidates, candidates);
  }
}

TEST(GlobalIndexModelTest, RandomRepliesGiveWhatTheRulesSay) {
  Tally tally;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    RunModel(seed, &tally);
    if (testing::Test::HasFatalFailure()) return;
  }
  // Otherwise it would have shown nothing.
  EXPECT_GT(tally.excluded, 1000u);
  EXPECT_GT(tally.asked, tally.excluded + 1000);
  EXPECT_GT(tally.by_layers, 50u);
  EXPECT_GT(tally.unplaced, 1000u);
  EXPECT_GT(tally.late, 100u);
  EXPECT_GT(tally.capped, 100u);
  EXPECT_GT(tally.coarse, 500u);
}

}  // namespace
}  // namespace tamis
