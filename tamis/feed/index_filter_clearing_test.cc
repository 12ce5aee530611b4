// Cells are cleared, and ranges narrowed, while writes go on: every interleaving of the steps of
// two writers and of a clearer, against what coordinators know at any later moment. Without one of
// the rules (a) to (e) of IndexFilter an acknowledged row is missed in some of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/feed/index_filter.h"

namespace tamis {
namespace {

constexpr uint64_t kCoordinator = 1;
constexpr size_t kMostEntries = 2;  // that the clearer reads for a cell; then it gives up

// The region as a coordinator knows it, as of one number of the feed.
struct Copy {
  std::optional<std::pair<std::string, std::string>> range;
  std::set<uint32_t> cells;

  void Apply(const pb::Event& event) {
    if (event.kind() == pb::Event::RANGE_WIDENED) {
      range.reset();
      if (event.has_range()) range.emplace(event.min(), event.max());
    }
    for (const uint32_t flip : event.cells()) {
      if (flip % 2 == 1) {
        cells.insert(flip / 2);
      } else {
        cells.erase(flip / 2);
      }
    }
  }
};

// A region with a filter, the entries in its index, a coordinator. Entries are named by their first
// value; a '*' after the name makes another entry with the same value, '#' one of garbage.
class Scene {
 public:
  Scene(const Faults& faults, const std::vector<std::string>& entries)
      : filter_(feed_.get(), Index(), 1, 1, faults), faults_(faults) {
    const std::vector<std::string> sample = {"b", "d", "f", "h", "j", "l"};
    map_ = std::make_shared<const CellMap>(CellMap::Fit(sample, {.cells = 6, .knots = 6}));
    filter_.SetCellMap(map_);
    filter_.BeginGeneration(false);
    for (const std::string& name : entries) {
      entries_.insert(name);
      if (name.back() == '#') continue;
      const EntryKey key = Key(name);
      filter_.CountExisting(std::span(&key, 1));
    }
    Poll(0);
    filter_.Publish();
    Copy copy;
    for (const std::string& name : entries) {
      if (name.back() != '#') copy.cells.insert(map_->CellOf(First(name)));
    }
    const pb::Projection bits = *filter_.Project();
    copy.range.emplace(bits.min(), bits.max());
    copies_.assign(feed_->Last() + 1, copy);
    Poll(feed_->Last());
  }

  // ---- The steps of a write

  void Add(const std::string& name) {
    const EntryKey key = Key(name);
    filter_.Add(std::span(&key, 1), &tickets_[name]);
  }
  void Commit(const std::string& name) { entries_.insert(name); }
  void Leave(const std::string& name) { filter_.Leave(tickets_[name]); }
  // From here on the row is acknowledged as soon as the coordinator has applied the number.
  void Acknowledge(const std::string& name) {
    const EntryKey key = Key(name);
    acknowledged_[name] = filter_.WaitFor(std::span(&key, 1));
  }
  void Delete(const std::string& name) {
    acknowledged_.erase(name);
    entries_.erase(name);
  }
  // The row stays.
  void LoseEntry(const std::string& name) { entries_.erase(name); }
  void Remove(const std::string& name) {
    const EntryKey key = Key(name);
    filter_.Remove(std::span(&key, 1));
  }

  // ---- The steps of the clearer

  void TakeOldSnapshot() {
    if (faults_.clear_by_old_snapshot) snapshot_ = entries_;
  }
  void BeginClearing() { clearing_ = filter_.BeginClearing(10); }
  void TakeSnapshot() {
    if (!faults_.clear_by_old_snapshot) snapshot_ = entries_;
  }
  void EndClearing() {
    IndexFilter::Cleared cleared;
    for (const uint32_t cell : clearing_.cells) {
      if (IsEmpty(cell)) cleared.empty.push_back(cell);
    }
    cleared.range_known = true;
    for (const std::string& name : snapshot_) {
      if (name.back() == '#') continue;
      if (!cleared.range.has_value()) cleared.range.emplace(First(name), First(name));
      cleared.range->second = First(name);
    }
    filter_.EndClearing(clearing_, cleared);
  }
  bool IsEmpty(uint32_t cell) const {
    size_t seen = 0;
    for (auto at = snapshot_.lower_bound(map_->LowestOf(cell)); at != snapshot_.end(); ++at) {
      if (map_->CellOf(First(*at)) > cell) break;
      if (++seen > kMostEntries) return faults_.undecided_is_empty;
      if (map_->CellOf(First(*at)) == cell && at->back() != '#') return false;
    }
    return true;
  }

  // Counts what stands.
  void Recount() {
    filter_.BeginGeneration(true);
    for (const std::string& name : entries_) {
      const EntryKey key = Key(name);
      filter_.CountExisting(std::span(&key, 1));
    }
    filter_.Publish();
  }

  IndexFilter& filter() { return filter_; }
  const Copy& copy() { return ReadEvents(), copies_.back(); }
  uint32_t CellOf(const std::string& name) const { return map_->CellOf(First(name)); }

  // Whether a coordinator at some number that it may be at misses an acknowledged row.
  bool Misses() {
    ReadEvents();
    for (const auto& [name, number] : acknowledged_) {
      for (uint64_t n = number; n < copies_.size(); ++n) {
        const Copy& copy = copies_[n];
        const std::string first = First(name);
        if (!copy.cells.contains(map_->CellOf(first))) return true;
        if (!copy.range || first < copy.range->first || copy.range->second < first) return true;
      }
    }
    return false;
  }

 private:
  static IndexSpec Index() {
    return {.id = 1, .name = "i", .columns = {0}, .fpr = 0.01, .expected_values = 50, .seed = 9};
  }
  static std::string First(const std::string& name) {
    return name.substr(0, name.find_first_of("*#"));
  }
  static EntryKey Key(const std::string& name) {
    const std::vector<std::string> prefixes = {First(name)};
    return MakeEntryKey(Index(), prefixes);
  }

  pb::PollReply Poll(uint64_t applied) {
    pb::PollRequest request;
    request.set_coordinator(kCoordinator);
    request.set_start_code(1);
    request.set_applied(applied);
    std::optional<pb::PollReply> reply;
    feed_->Poll(
        request, [this] { return executor_.Now() + std::chrono::hours(1); },
        [&](Result<pb::PollReply> answer) { reply.emplace(std::move(*answer)); });
    return *reply;
  }
  // The coordinator applies nothing and has a lease, so every later number is one that it may be
  // at.
  void ReadEvents() {
    const pb::PollReply reply = Poll(copies_.size() - 1);
    for (const pb::Event& event : reply.events()) {
      copies_.push_back(copies_.back());
      copies_.back().Apply(event);
    }
  }

  SimExecutor executor_{1, Duration(0)};
  std::shared_ptr<FilterFeed> feed_ = std::make_shared<FilterFeed>(
      &executor_, "rs1", 1, FilterFeed::Options{.lease = std::chrono::hours(1)});
  std::shared_ptr<const CellMap> map_;
  IndexFilter filter_;
  const Faults faults_;
  std::set<std::string> entries_, snapshot_;
  std::map<std::string, IndexFilter::Ticket> tickets_;
  std::map<std::string, uint64_t> acknowledged_;
  IndexFilter::Clearing clearing_;
  std::vector<Copy> copies_;  // by number
};

using Step = std::function<void(Scene*)>;
using Process = std::vector<Step>;

Process Insert(const std::string& name) {
  return {[=](Scene* s) { s->Add(name); }, [=](Scene* s) { s->Commit(name); },
          [=](Scene* s) { s->Leave(name); }, [=](Scene* s) { s->Acknowledge(name); }};
}
Process Erase(const std::string& name) {
  return {[=](Scene* s) { s->Delete(name); }, [=](Scene* s) { s->Remove(name); }};
}
Process Clear() {
  return {[](Scene* s) { s->TakeOldSnapshot(); }, [](Scene* s) { s->BeginClearing(); },
          [](Scene* s) { s->TakeSnapshot(); }, [](Scene* s) { s->EndClearing(); }};
}
Process operator+(Process a, const Process& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Outcome {
  int interleavings = 0;
  int misses = 0;
};

// Runs every interleaving of the processes on a scene of its own.
Outcome RunAll(const Faults& faults, const std::vector<std::string>& entries,
               const std::vector<Process>& processes) {
  std::vector<size_t> order;
  for (size_t p = 0; p < processes.size(); ++p) order.insert(order.end(), processes[p].size(), p);
  Outcome outcome;
  do {
    Scene scene(faults, entries);
    std::vector<size_t> next(processes.size());
    for (const size_t p : order) processes[p][next[p]++](&scene);
    ++outcome.interleavings;
    outcome.misses += scene.Misses();
  } while (std::next_permutation(order.begin(), order.end()));
  return outcome;
}

// A writer replaces the one entry of a cell, another adds one to the same cell.
const std::vector<std::string> kOneInTheCell = {"b", "d", "l"};
const std::vector<Process> kTwoWritersAndAClearer = {Erase("d"), Insert("d*"), Clear()};
// The smallest and the largest value come and go.
const std::vector<Process> kAtTheEnds = {Erase("l") + Erase("b"), Insert("l*"), Clear()};

int MissesWithout(bool Faults::*rule, const std::vector<Process>& processes) {
  Faults faults;
  faults.*rule = true;
  return RunAll(faults, kOneInTheCell, processes).misses;
}

TEST(IndexFilterClearingTest, NoInterleavingMissesARow) {
  const Outcome cells = RunAll({}, kOneInTheCell, kTwoWritersAndAClearer);
  EXPECT_GT(cells.interleavings, 3000);
  EXPECT_EQ(cells.misses, 0);
  EXPECT_EQ(RunAll({}, kOneInTheCell, kAtTheEnds).misses, 0);
  const std::vector<Process> two_adders = {Insert("d*"), Insert("d**"), Clear()};
  EXPECT_EQ(RunAll({}, kOneInTheCell, two_adders).misses, 0);
  const std::vector<Process> goes_again = {Erase("d"), Insert("d*") + Erase("d*"), Clear()};
  EXPECT_EQ(RunAll({}, kOneInTheCell, goes_again).misses, 0);
}

TEST(IndexFilterClearingTest, EachRuleIsNeededForCells) {
  for (const auto rule : {&Faults::leave_before_commit, &Faults::clear_amid_writes,
                          &Faults::clear_by_old_snapshot, &Faults::clear_despite_writes}) {
    EXPECT_GT(MissesWithout(rule, kTwoWritersAndAClearer), 0);
  }
}

TEST(IndexFilterClearingTest, EachRuleIsNeededForTheRange) {
  for (const auto rule : {&Faults::leave_before_commit, &Faults::clear_amid_writes,
                          &Faults::clear_by_old_snapshot, &Faults::clear_despite_writes}) {
    EXPECT_GT(MissesWithout(rule, kAtTheEnds), 0);
  }
}

TEST(IndexFilterClearingTest, ACellThatWasNotFoundEmptyIsOccupied) {
  const std::vector<std::string> entries = {"b", "d", "d#", "d##", "d###", "dz"};
  for (const bool rule : {true, false}) {
    Faults faults;
    faults.undecided_is_empty = !rule;
    Scene scene(faults, entries);
    ASSERT_EQ(scene.CellOf("d"), scene.CellOf("dz"));
    scene.Acknowledge("dz");
    for (const Step& step : Erase("d") + Clear()) step(&scene);
    EXPECT_EQ(scene.Misses(), !rule);
  }
}

// Entries of rows are missing while an index is rebuilt: a search does not find them.
TEST(IndexFilterClearingTest, ClearingWaitsWhileEntriesMayBeMissing) {
  for (const bool rule : {true, false}) {
    for (const bool begins_in_a_round : {true, false}) {
      Faults faults;
      faults.clear_incomplete = !rule;
      Scene scene(faults, {"b", "d", "d*", "l"});
      scene.Acknowledge("d*");
      for (const Step& step : Erase("d")) step(&scene);
      if (begins_in_a_round) scene.BeginClearing();
      scene.filter().HoldClearing();
      scene.LoseEntry("d*");
      if (!begins_in_a_round) scene.BeginClearing();
      scene.TakeSnapshot();
      scene.EndClearing();
      EXPECT_EQ(scene.Misses(), !rule);
      scene.filter().ReleaseClearing();
    }
  }
}

TEST(IndexFilterClearingTest, ClearingGoesOnAfterAsManyReleasesAsHolds) {
  Scene scene({}, {"b", "d", "l"});
  for (const Step& step : Erase("d")) step(&scene);
  scene.filter().HoldClearing();
  scene.filter().HoldClearing();
  scene.filter().ReleaseClearing();
  EXPECT_FALSE(scene.filter().WantsClearing());
  scene.filter().ReleaseClearing();
  EXPECT_TRUE(scene.filter().WantsClearing());
  for (const Step& step : Clear()) step(&scene);
  EXPECT_FALSE(scene.copy().cells.contains(scene.CellOf("d")));
}

TEST(IndexFilterClearingTest, ClearingWaitsWhileAGenerationIsBuilt) {
  Scene scene({}, {"b", "d", "l"});
  for (const Step& step : Erase("d")) step(&scene);
  scene.BeginClearing();
  scene.filter().BeginGeneration(true);
  EXPECT_FALSE(scene.filter().WantsClearing());
  EXPECT_EQ(scene.filter().BeginClearing(10).round, 0u);
  scene.TakeSnapshot();
  scene.EndClearing();
  EXPECT_TRUE(scene.copy().cells.contains(scene.CellOf("d")));
  scene.filter().AbandonGeneration();
  ASSERT_TRUE(scene.filter().WantsClearing());
  for (const Step& step : Clear()) step(&scene);
  EXPECT_FALSE(scene.copy().cells.contains(scene.CellOf("d")));
}

TEST(IndexFilterClearingTest, AWriteOfUnknownOutcomeKeepsItsCell) {
  Scene scene({}, {"b", "d", "l"});
  scene.Add("d*");  // it never leaves
  for (const Step& step : Erase("d") + Clear() + Clear()) step(&scene);
  EXPECT_TRUE(scene.copy().cells.contains(scene.CellOf("d")));
  EXPECT_TRUE(scene.filter().WantsClearing());
}

// More writes are under way, or have an unknown outcome, than there is room for their values.
void Crowd(Scene* scene) {
  for (int i = 0; i < 1100; ++i) scene->Add("h" + std::string(1000, 'x') + "*" + std::to_string(i));
}

TEST(IndexFilterClearingTest, ClearingClearsNothingWhileWritesAreUnlisted) {
  for (const bool rule : {true, false}) {
    Faults faults;
    faults.clear_amid_writes = !rule;
    Scene scene(faults, {"b", "d", "l"});
    Crowd(&scene);
    scene.Add("d*");
    for (const Step& step : Erase("d") + Clear()) step(&scene);
    scene.Commit("d*");
    scene.Leave("d*");
    scene.Acknowledge("d*");
    EXPECT_EQ(scene.Misses(), !rule);
  }
}

TEST(IndexFilterClearingTest, ARecountForgetsTheWritesWhoseValuesAreNotKept) {
  Scene scene({}, {"b", "d", "l"});
  Crowd(&scene);
  EXPECT_FALSE(scene.filter().WantsRecount({}));
  for (int i = 0; i < 4096; ++i) {
    scene.Add("d*");
    scene.Leave("d*");
  }
  EXPECT_TRUE(scene.filter().WantsRecount({}));
  scene.Recount();
  EXPECT_FALSE(scene.filter().WantsRecount({}));
  for (const Step& step : Erase("d") + Clear()) step(&scene);
  EXPECT_EQ(scene.filter().occupied_cells(), 2u);
}

TEST(IndexFilterClearingTest, WritesWithoutAGenerationAreNotRegistered) {
  SimExecutor executor{1, Duration(0)};
  const auto feed = std::make_shared<FilterFeed>(&executor, "rs1", 1, FilterFeed::Options{});
  IndexFilter filter(feed.get(), {.id = 1, .name = "i", .columns = {0}}, 1, 1, {});
  const EntryKey key{.hashes = {1}, .first = "v"};
  IndexFilter::Ticket ticket = 7;
  filter.Add(std::span(&key, 1), &ticket);
  EXPECT_EQ(ticket, 0u);
  filter.BeginGeneration(true);
  filter.Add(std::span(&key, 1), &ticket);
  EXPECT_NE(ticket, 0u);
}

TEST(IndexFilterClearingTest, UndecidedCellsAndRangesAreNamedAgain) {
  Scene scene({}, {"b", "d", "l"});
  for (const Step& step : Erase("d") + Erase("l")) step(&scene);
  IndexFilter::Clearing clearing = scene.filter().BeginClearing(10);
  const std::vector<uint32_t> cells = {scene.CellOf("d"), scene.CellOf("l")};
  EXPECT_EQ(clearing.cells, cells);
  scene.filter().EndClearing(clearing, {.undecided = {cells[0]}});
  clearing = scene.filter().BeginClearing(10);
  EXPECT_EQ(clearing.cells, std::vector<uint32_t>{cells[0]}) << "the other one is occupied";
  EXPECT_TRUE(clearing.range);
  EXPECT_EQ(scene.filter().occupied_cells(), 3u);
}

TEST(IndexFilterClearingTest, UndecidedCellsDoNotKeepOthersWaiting) {
  Scene scene({}, {"b", "d", "f", "l"});
  for (const Step& step : Erase("d") + Erase("f") + Erase("l")) step(&scene);
  std::vector<uint32_t> named;
  for (int round = 0; round < 4; ++round) {
    const IndexFilter::Clearing clearing = scene.filter().BeginClearing(1);
    ASSERT_EQ(clearing.cells.size(), 1u);
    named.push_back(clearing.cells[0]);
    scene.filter().EndClearing(clearing, {.undecided = clearing.cells});
  }
  EXPECT_EQ(named, (std::vector<uint32_t>{scene.CellOf("d"), scene.CellOf("f"), scene.CellOf("l"),
                                          scene.CellOf("d")}));
}

// The write may be undone without a removal.
TEST(IndexFilterClearingTest, ACellThatAWriteRegisteredForIsNamedAgain) {
  Scene scene({}, {"b", "d", "l"});
  for (const Step& step : Erase("d")) step(&scene);
  scene.BeginClearing();
  scene.TakeSnapshot();
  scene.Add("d*");
  scene.EndClearing();
  scene.Leave("d*");
  EXPECT_EQ(scene.filter().occupied_cells(), 3u);
  for (const Step& step : Clear()) step(&scene);
  EXPECT_EQ(scene.filter().occupied_cells(), 2u);
}

TEST(IndexFilterClearingTest, RangesAreNarrowedToTheExistingValues) {
  Scene scene({}, {"b", "d", "f", "l"});
  for (const Step& step : Erase("l") + Erase("b") + Clear()) step(&scene);
  EXPECT_EQ(scene.copy().range, (std::pair<std::string, std::string>("d", "f")));
  for (const Step& step : Erase("d") + Erase("f") + Clear()) step(&scene);
  EXPECT_FALSE(scene.copy().range.has_value());
  EXPECT_TRUE(scene.copy().cells.empty());
  EXPECT_FALSE(scene.filter().WantsClearing());
  for (const Step& step : Insert("h")) step(&scene);
  EXPECT_EQ(scene.copy().range, (std::pair<std::string, std::string>("h", "h")));
  EXPECT_FALSE(scene.Misses());
}

TEST(IndexFilterClearingTest, SnapshotsKeepCellsAndPendingClearings) {
  Scene scene({}, {"b", "d", "f", "l"});
  for (const Step& step : Erase("d") + Erase("l")) step(&scene);
  const std::string bytes = *scene.filter().Snapshot();
  Scene other({}, {"h"});
  ASSERT_TRUE(other.filter().RestoreGeneration(bytes));
  other.filter().Publish();
  EXPECT_EQ(other.filter().occupied_cells(), 4u);
  EXPECT_EQ(*other.filter().Snapshot(), bytes);
  const IndexFilter::Clearing clearing = other.filter().BeginClearing(10);
  EXPECT_EQ(clearing.cells, (std::vector<uint32_t>{scene.CellOf("d"), scene.CellOf("l")}));
  EXPECT_TRUE(clearing.range);
  // Without cells, or with those of another map, the entries are counted again.
  EXPECT_FALSE(other.filter().WantsRecount({}));
  other.filter().SetCellMap(nullptr);
  EXPECT_TRUE(other.filter().WantsRecount({}));
  EXPECT_FALSE(other.filter().RestoreGeneration(bytes));
  other.filter().SetCellMap(std::make_shared<const CellMap>());
  EXPECT_FALSE(other.filter().RestoreGeneration(bytes));
  EXPECT_TRUE(other.filter().WantsRecount({}));
}

}  // namespace
}  // namespace tamis
