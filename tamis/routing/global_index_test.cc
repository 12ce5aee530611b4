// How a coordinator applies good and bad replies. That the rules suffice together is shown by the
// randomized cluster test and by the model.
#include "tamis/routing/global_index.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>

#include "tamis/filter/cell_set.h"
#include "tamis/filter/split_geometry.h"

namespace tamis {
namespace {

using std::chrono::seconds;

constexpr uint32_t kTable = 1, kIndex = 7;
constexpr uint64_t kRegion = 5, kEpoch = 3, kStartCode = 100;
constexpr uint32_t kSlices = 2, kSlicePositions = 64;

// One server with one region, whose index is complete and knows no value at all.
class GlobalIndexTest : public testing::Test {
 protected:
  explicit GlobalIndexTest(const GlobalIndex::Options& options = {}) : index_(options) {
    pb::PollReply state = Reply(/*full=*/true, 0, 2);
    pb::Event* opened = Add(&state, pb::Event::REGION_OPENED, 1);
    opened->set_table_id(kTable);
    Complete(Add(&state, pb::Event::INDEX_COMPLETE, 2), 1);
    Apply(state);
    pb::PollReply bits = Reply(/*full=*/false, 2, 2);
    AddBits(&bits, 1, 2);
    Apply(bits);
  }

  static pb::PollReply Reply(bool full, uint64_t from, uint64_t to) {
    pb::PollReply reply;
    reply.set_start_code(kStartCode);
    reply.set_full(full);
    reply.set_from(from);
    reply.set_to(to);
    reply.set_lease_ns(std::numeric_limits<int32_t>::max());
    return reply;
  }
  static pb::Event* Add(pb::PollReply* reply, pb::Event::Kind kind, uint64_t sequence) {
    pb::Event* event = reply->add_events();
    event->set_kind(kind);
    event->set_sequence(sequence);
    event->set_region_id(kRegion);
    event->set_epoch(kEpoch);
    event->set_index_id(kIndex);
    event->set_generation(1);
    return event;
  }
  static void Complete(pb::Event* event, uint64_t generation) {
    event->set_generation(generation);
    event->mutable_geometry()->set_slices(kSlices);
    event->mutable_geometry()->set_slice_positions(kSlicePositions);
    event->set_layers(1);
  }
  // Bits of a filter that knows no value, and a range that has them all.
  static pb::Projection* AddBits(pb::PollReply* reply, uint64_t generation, uint64_t as_of) {
    pb::Projection* projection = reply->add_projections();
    projection->set_region_id(kRegion);
    projection->set_epoch(kEpoch);
    projection->set_index_id(kIndex);
    projection->set_generation(generation);
    projection->set_as_of(as_of);
    projection->mutable_geometry()->set_slices(kSlices);
    projection->mutable_geometry()->set_slice_positions(kSlicePositions);
    projection->add_layers(std::string(kSlices * kSlicePositions / 8, '\0'));
    projection->set_has_range(true);
    projection->set_min("");
    projection->set_max("z");
    return projection;
  }
  void Apply(const pb::PollReply& reply) { index_.Apply("rs1", reply, now_, now_); }

  static RoutingTerm Term() {
    return {.kind = RoutingTerm::Kind::kValue, .index_id = kIndex, .hash = 4711, .first = "m"};
  }
  bool Excludes() const {
    return !index_.Find(kTable, KeyRanges::All(), Term(), now_).excluded.ranges().empty();
  }

  // "smallest to largest" of the region; "no entry", "nothing is known".
  std::string BoundsText() const {
    const auto smallest = index_.Bounds(kTable, KeyRanges::All(), kIndex, false, now_);
    const auto largest = index_.Bounds(kTable, KeyRanges::All(), kIndex, true, now_);
    if (smallest.empty() && largest.empty()) return "nothing is known";
    if (!smallest[0].value.has_value()) return "no entry";
    return *smallest[0].value + " to " + *largest[0].value;
  }
  void ForgetIndex() {
    pb::PollReply reply = Reply(false, 2, 3);
    Complete(Add(&reply, pb::Event::INDEX_COMPLETE, 3), 2);  // its bits have not come yet
    Apply(reply);
  }

  Time now_ = seconds(1000);
  GlobalIndex index_;
};

TEST_F(GlobalIndexTest, StatsCountEventsAndServersWithoutALease) {
  EXPECT_EQ(index_.stats(now_).servers_without_lease, 0u);
  EXPECT_EQ(index_.stats(now_ + seconds(60)).servers_without_lease, 1u);
  EXPECT_EQ(index_.stats(now_).events, 2u);
  ForgetIndex();
  EXPECT_EQ(index_.stats(now_).events, 3u);
}

TEST_F(GlobalIndexTest, ABoundHoldsWhileTheFilterDoes) {
  EXPECT_EQ(BoundsText(), " to z");
  pb::PollReply reply = Reply(false, 2, 3);
  pb::Event* widened = Add(&reply, pb::Event::RANGE_WIDENED, 3);
  widened->set_min("A");
  widened->set_max("zz");
  widened->set_has_range(true);
  Apply(reply);
  EXPECT_EQ(BoundsText(), "A to zz");
  EXPECT_TRUE(index_.Bounds(kTable, KeyRanges(), kIndex, false, now_).empty());
  EXPECT_TRUE(index_.Bounds(kTable, KeyRanges::All(), kIndex + 1, false, now_).empty());
  now_ += seconds(60);
  EXPECT_EQ(BoundsText(), "nothing is known");
}

TEST_F(GlobalIndexTest, ABoundWithoutTheBitsIsNone) {
  ForgetIndex();
  EXPECT_EQ(BoundsText(), "nothing is known");
}

class StaleBoundsTest : public GlobalIndexTest {
 protected:
  StaleBoundsTest() : GlobalIndexTest({.faults = {.stale_bounds = true}}) {}
};

TEST_F(StaleBoundsTest, FaultStaleBoundsUsesABoundWithoutALease) {
  now_ += seconds(60);
  EXPECT_EQ(BoundsText(), " to z");
}

class UnknownBoundsTest : public GlobalIndexTest {
 protected:
  UnknownBoundsTest() : GlobalIndexTest({.faults = {.unknown_bounds = true}}) {}
};

TEST_F(UnknownBoundsTest, FaultUnknownBoundsTakesARegionForEmpty) {
  ForgetIndex();
  EXPECT_EQ(BoundsText(), "no entry");
}

TEST_F(GlobalIndexTest, ARegionWhoseFilterDoesNotKnowTheValueIsExcludedWhileItsLeaseLives) {
  EXPECT_TRUE(Excludes());
  now_ += seconds(60);
  EXPECT_FALSE(Excludes());
}

TEST_F(GlobalIndexTest, TermOfNothingExcludesTheRegionAndTermOfAllDoesNot) {
  const auto excludes = [this](RoutingTerm::Kind kind) {
    return !index_.Find(kTable, KeyRanges::All(), {.kind = kind}, now_).excluded.empty();
  };
  EXPECT_TRUE(excludes(RoutingTerm::Kind::kNone));
  EXPECT_FALSE(excludes(RoutingTerm::Kind::kAll));
}

TEST_F(GlobalIndexTest, ALeaseOfAnyLengthIsOne) {
  for (const uint64_t ns : {~uint64_t{0}, ~uint64_t{0} >> 1, uint64_t{1} << 63}) {
    now_ += seconds(60);
    ASSERT_FALSE(Excludes());
    pb::PollReply reply = Reply(false, 2, 2);
    reply.set_lease_ns(ns);
    Apply(reply);
    EXPECT_TRUE(Excludes());
    now_ += seconds(24 * 3600);
    EXPECT_FALSE(Excludes());
  }
}

TEST_F(GlobalIndexTest, ARegionThatWasAskedWithoutALeaseIsExplainedAsUnknownLaterToo) {
  now_ += seconds(60);
  const KeyRanges excluded = index_.Find(kTable, KeyRanges::All(), Term(), now_).excluded;
  ASSERT_TRUE(excluded.empty());
  Apply(Reply(false, 2, 2));
  ASSERT_TRUE(Excludes()) << "the lease is there again";
  const auto reasons = index_.Explain(kTable, KeyRanges::All(), Term(), excluded, now_);
  EXPECT_EQ(reasons.unknown, 1u);
  EXPECT_TRUE(reasons.candidates.empty()) << "its filter never said yes";
}

TEST_F(GlobalIndexTest, RegionWithSeveralKeyRangesIsExplainedOnce) {
  KeyRanges keys = KeyRanges::Of({"a", "b"});
  keys.Add(KeyRange{"m", "n"});
  const KeyRanges excluded = index_.Find(kTable, keys, Term(), now_).excluded;
  const auto left_out = index_.Explain(kTable, keys, Term(), excluded, now_);
  EXPECT_EQ(left_out.regions, 1u);
  EXPECT_EQ(left_out.excluded_by_filter, 1u);
  const auto asked = index_.Explain(kTable, keys, Term(), KeyRanges(), now_);
  EXPECT_EQ(asked.regions, 1u);
  EXPECT_EQ(asked.unknown, 1u);
}

TEST_F(GlobalIndexTest, FlipsOfALayerThatTheCopyDoesNotHaveEndItsUse) {
  pb::PollReply reply = Reply(false, 2, 3);
  Add(&reply, pb::Event::FLIPS, 3)->add_flips((uint64_t{4096} << 33) + 1);
  Apply(reply);
  EXPECT_FALSE(Excludes()) << "the region may hold what the copy could not take in";
}

TEST_F(GlobalIndexTest, FlipsOfAPositionThatTheCopyDoesNotHaveEndItsUse) {
  pb::PollReply reply = Reply(false, 2, 3);
  Add(&reply, pb::Event::FLIPS, 3)->add_flips((uint64_t{kSlices * kSlicePositions} << 1) + 1);
  Apply(reply);
  EXPECT_FALSE(Excludes());
}

TEST_F(GlobalIndexTest, MoreLayersThanTheCopyCanHoldEndItsUse) {
  pb::PollReply reply = Reply(false, 2, 3);
  Add(&reply, pb::Event::LAYER_ADDED, 3)->set_layers(4097);
  Apply(reply);
  EXPECT_FALSE(Excludes());
}

TEST_F(GlobalIndexTest, ANewGenerationThatDoesNotFitEndsTheUseOfTheOldOne) {
  pb::PollReply reply = Reply(false, 2, 3);
  pb::Event* event = Add(&reply, pb::Event::INDEX_COMPLETE, 3);
  Complete(event, 2);
  event->mutable_geometry()->set_slices(0);
  Apply(reply);
  EXPECT_FALSE(Excludes());
}

TEST_F(GlobalIndexTest, ANewGenerationOfNoLayersOrTooManyIsNotAskedFor) {
  for (const uint32_t layers : {0u, 4097u}) {
    pb::PollReply reply = Reply(true, 0, 3);
    Add(&reply, pb::Event::REGION_OPENED, 1)->set_table_id(kTable);
    pb::Event* event = Add(&reply, pb::Event::INDEX_COMPLETE, 2);
    Complete(event, 2);
    event->set_layers(layers);
    reply.set_start_code(kStartCode + layers + 1);
    Apply(reply);
    EXPECT_FALSE(Excludes());
    EXPECT_TRUE(index_.NextPoll("rs1", seconds(1)).wanted().empty()) << layers;
  }
}

TEST_F(GlobalIndexTest, BitsOfASizeThatNoFilterHasAreNotAskedFor) {
  uint64_t start_code = kStartCode;
  const auto asks_for = [&](uint32_t slices, uint32_t slice_positions) {
    pb::PollReply reply = Reply(true, 0, 3);
    Add(&reply, pb::Event::REGION_OPENED, 1)->set_table_id(kTable);
    pb::Event* event = Add(&reply, pb::Event::INDEX_COMPLETE, 2);
    Complete(event, 2);
    event->mutable_geometry()->set_slices(slices);
    event->mutable_geometry()->set_slice_positions(slice_positions);
    reply.set_start_code(++start_code);
    Apply(reply);
    EXPECT_FALSE(Excludes());
    return !index_.NextPoll("rs1", seconds(1)).wanted().empty();
  };
  EXPECT_TRUE(asks_for(1, 1));
  EXPECT_TRUE(asks_for(SplitGeometry::kMaxSlices, 1 << 20));
  EXPECT_FALSE(asks_for(0, 64));
  EXPECT_FALSE(asks_for(SplitGeometry::kMaxSlices + 1, 64));
  EXPECT_FALSE(asks_for(1, 0));
  EXPECT_FALSE(asks_for(1, (1u << 26) + 1));
}

class BoundedMemoryTest : public GlobalIndexTest {
 protected:
  static constexpr size_t kMaxBytes = 4096;
  BoundedMemoryTest() : GlobalIndexTest({.max_bytes = kMaxBytes}) {}
};

TEST_F(BoundedMemoryTest, ARegionWhoseNewLayersFindNoRoomIsACandidate) {
  ASSERT_TRUE(Excludes());
  pb::PollReply reply = Reply(false, 2, 3);
  Add(&reply, pb::Event::LAYER_ADDED, 3)->set_layers(4096);
  Apply(reply);
  EXPECT_FALSE(Excludes());
  EXPECT_LE(index_.SizeBytes(), kMaxBytes);
  EXPECT_EQ(index_.stats(now_).indexes_left_out, 1u);
}

// Searches and other replies get their turn between the steps of such a load.
TEST_F(GlobalIndexTest, BitsOfThousandsOfLayersAreLoaded) {
  constexpr uint32_t kLayers = 2000;
  pb::PollReply reply = Reply(false, 2, 3);
  pb::Event* event = Add(&reply, pb::Event::INDEX_COMPLETE, 3);
  Complete(event, 2);
  event->set_layers(kLayers);
  Apply(reply);
  pb::PollReply bits = Reply(false, 3, 3);
  pb::Projection* projection = AddBits(&bits, 2, 3);
  while (projection->layers_size() < static_cast<int>(kLayers)) {
    projection->add_layers(projection->layers(0));
  }
  Apply(bits);
  EXPECT_TRUE(Excludes());
}

TEST_F(GlobalIndexTest, ARegionHasOneBoundThoughSeveralKeyRangesLieInIt) {
  KeyRanges keys = KeyRanges::Of({"b", "c"});
  keys.Add({"d", "e"});
  EXPECT_EQ(index_.Bounds(kTable, keys, kIndex, false, now_).size(), 1u);
}

// ---- Cells

class CellsTest : public GlobalIndexTest {
 protected:
  static constexpr uint64_t kMap = 77;
  static constexpr uint32_t kCells = 64, kOccupied = 9;

  // A second generation, which has cells; its filter has arrived.
  void CompleteWithCells() {
    pb::PollReply reply = Reply(false, 2, 3);
    pb::Event* event = Add(&reply, pb::Event::INDEX_COMPLETE, 3);
    Complete(event, 2);
    event->set_cell_map(kMap);
    event->set_cell_count(kCells);
    Apply(reply);
    pb::PollReply bits = Reply(false, 3, 3);
    AddBits(&bits, 2, 3);
    Apply(bits);
  }
  pb::PollReply CellsReply() {
    CellSet cells(kCells);
    cells.Insert(kOccupied);
    pb::PollReply reply = Reply(false, 3, 3);
    pb::Projection* part = reply.add_projections();
    part->set_region_id(kRegion);
    part->set_epoch(kEpoch);
    part->set_index_id(kIndex);
    part->set_generation(2);
    part->set_as_of(3);
    part->set_cell_map(kMap);
    part->set_cell_count(kCells);
    uint32_t end = 0;
    part->set_cells(cells.Encode(0, 1000, &end));
    part->set_end_cell(end);
    return reply;
  }
  bool ExcludesCells(uint32_t first, uint32_t last) const {
    const RoutingTerm term{.kind = RoutingTerm::Kind::kRange,
                           .index_id = kIndex,
                           .low = "b",
                           .high = "c",
                           .cell_map = kMap,
                           .first_cell = first,
                           .last_cell = last};
    return !index_.Find(kTable, KeyRanges::All(), term, now_).excluded.empty();
  }
};

TEST_F(CellsTest, ARegionIsExcludedFromRangesOfCellsThatItHasNoValueIn) {
  CompleteWithCells();
  EXPECT_FALSE(ExcludesCells(0, kOccupied - 1)) << "they have not arrived";
  Apply(CellsReply());
  EXPECT_TRUE(ExcludesCells(0, kOccupied - 1));
  EXPECT_TRUE(ExcludesCells(kOccupied + 1, kCells - 1));
  EXPECT_FALSE(ExcludesCells(kOccupied, kOccupied));
}

TEST_F(CellsTest, CellsThatAreNotOfTheCopyAreIgnored) {
  CompleteWithCells();
  const auto excludes_after = [this](const std::function<void(pb::Projection*)>& change) {
    pb::PollReply reply = CellsReply();
    change(reply.mutable_projections(0));
    Apply(reply);
    return ExcludesCells(0, kOccupied - 1);
  };
  EXPECT_FALSE(excludes_after([](auto* part) { part->set_region_id(kRegion + 1); }));
  EXPECT_FALSE(excludes_after([](auto* part) { part->set_epoch(kEpoch + 1); }));
  EXPECT_FALSE(excludes_after([](auto* part) { part->set_index_id(kIndex + 1); }));
  EXPECT_FALSE(excludes_after([](auto* part) { part->set_generation(1); }));
  EXPECT_FALSE(excludes_after([](auto* part) { part->set_cell_map(kMap + 1); }));
  EXPECT_FALSE(excludes_after([](auto* part) { part->set_cell_count(kCells + 1); }));
  EXPECT_FALSE(excludes_after([](auto* part) { part->set_as_of(4); }));
  EXPECT_FALSE(excludes_after([](auto* part) { part->set_as_of(2); }));
  EXPECT_TRUE(excludes_after([](auto*) {}));
}

TEST_F(CellsTest, CellsOfAnIndexThatHasNoneAreIgnored) {
  pb::PollReply reply = CellsReply();
  reply.set_from(2);
  reply.set_to(2);
  reply.mutable_projections(0)->set_as_of(2);
  reply.mutable_projections(0)->set_generation(1);
  Apply(reply);
  EXPECT_FALSE(ExcludesCells(0, kOccupied - 1));
  EXPECT_TRUE(Excludes());
}

// Events behind the cells in one reply change those of their own region alone.
TEST_F(CellsTest, FlipsOfAnotherRegionLeaveTheCells) {
  CompleteWithCells();
  pb::PollReply reply = CellsReply();
  pb::Event* flips = Add(&reply, pb::Event::FLIPS, 4);
  flips->set_region_id(kRegion + 1);
  flips->set_generation(2);
  flips->add_cells(2 * kOccupied);  // clears it
  reply.set_to(4);
  Apply(reply);
  EXPECT_TRUE(ExcludesCells(0, kOccupied - 1));
  EXPECT_FALSE(ExcludesCells(kOccupied, kOccupied));
}

// ---- Order

TEST_F(GlobalIndexTest, EventsOfAnUnknownLifeAreNotTakenIn) {
  pb::PollReply reply = Reply(false, 2, 3);
  reply.set_start_code(kStartCode + 1);
  Add(&reply, pb::Event::REGION_CLOSED, 3);
  Apply(reply);
  EXPECT_TRUE(Excludes()) << "the lease of the former life still covers its state";
  now_ += seconds(60);
  EXPECT_FALSE(Excludes());
}

TEST_F(GlobalIndexTest, EventsBehindAGapAreNotTakenIn) {
  pb::PollReply reply = Reply(false, 3, 4);
  Add(&reply, pb::Event::REGION_CLOSED, 4);
  Apply(reply);
  EXPECT_TRUE(Excludes());
  EXPECT_EQ(index_.NextPoll("rs1", seconds(1)).applied(), 2u);
}

TEST_F(GlobalIndexTest, MemoryGoesWithTheRegionsThatNeededIt) {
  EXPECT_GT(index_.SizeBytes(), 0u);
  pb::PollReply reply = Reply(false, 2, 3);
  Add(&reply, pb::Event::REGION_CLOSED, 3);
  Apply(reply);
  EXPECT_EQ(index_.SizeBytes(), 0u);
}

// ---- Who a region or a life is

// Servers with one region each, whose index is complete.
class GlobalIndexIdentityTest : public testing::Test {
 protected:
  struct Life {
    std::string server;
    uint64_t start_code = 100;
    uint32_t table = kTable;
    uint64_t epoch = 1;
    KeyRange range = {};
    uint64_t lease_s = 10;
    bool holds = false;  // every value, by its filter
  };

  static pb::PollReply FullReply(const Life& life) {
    pb::PollReply reply;
    reply.set_start_code(life.start_code);
    reply.set_full(true);
    reply.set_from(2);
    reply.set_to(2);
    reply.set_lease_ns(life.lease_s * 1'000'000'000);
    pb::Event* opened = reply.add_events();
    opened->set_kind(pb::Event::REGION_OPENED);
    opened->set_sequence(1);
    opened->set_table_id(life.table);
    opened->set_start(life.range.start);
    opened->set_end(life.range.end);
    pb::Event* complete = reply.add_events();
    complete->set_kind(pb::Event::INDEX_COMPLETE);
    complete->set_sequence(2);
    complete->set_index_id(kIndex);
    complete->set_generation(1);
    complete->mutable_geometry()->set_slices(kSlices);
    complete->mutable_geometry()->set_slice_positions(kSlicePositions);
    complete->set_layers(1);
    for (pb::Event& event : *reply.mutable_events()) {
      event.set_region_id(kRegion);
      event.set_epoch(life.epoch);
    }
    return reply;
  }
  static pb::PollReply Bits(const Life& life) {
    pb::PollReply reply;
    reply.set_start_code(life.start_code);
    reply.set_from(2);
    reply.set_to(2);
    reply.set_lease_ns(life.lease_s * 1'000'000'000);
    pb::Projection* projection = reply.add_projections();
    projection->set_region_id(kRegion);
    projection->set_epoch(life.epoch);
    projection->set_index_id(kIndex);
    projection->set_generation(1);
    projection->set_as_of(2);
    projection->mutable_geometry()->set_slices(kSlices);
    projection->mutable_geometry()->set_slice_positions(kSlicePositions);
    projection->add_layers(std::string(kSlices * kSlicePositions / 8, life.holds ? '\xff' : '\0'));
    projection->set_has_range(true);
    projection->set_max("z");
    return reply;
  }
  void Hear(const Life& life) {
    index_->Apply(life.server, FullReply(life), now_, now_);
    index_->Apply(life.server, Bits(life), now_, now_);
  }
  KeyRanges Excluded(uint32_t table = kTable) const {
    const RoutingTerm term{
        .kind = RoutingTerm::Kind::kValue, .index_id = kIndex, .hash = 4711, .first = "m"};
    return index_->Find(table, KeyRanges::All(), term, now_).excluded;
  }

  Time now_ = seconds(1000);
  std::optional<GlobalIndex> index_{GlobalIndex::Options{}};
};

// The epochs are of different servers and say nothing.
TEST_F(GlobalIndexIdentityTest, OverlappingRegionWithoutLeaseIsLeftOut) {
  for (const uint64_t epoch : {1, 99}) {
    index_.emplace(GlobalIndex::Options{});
    Hear({.server = "dies", .epoch = 50, .lease_s = 10});
    Hear({.server = "lives", .epoch = epoch, .range = {"a", "k"}, .lease_s = 100});
    EXPECT_TRUE(Excluded().empty()) << "both live: both are asked";
    now_ += seconds(20);
    index_->Apply("lives", Bits({.server = "lives", .epoch = epoch}), now_, now_);
    EXPECT_EQ(Excluded(), KeyRanges::Of({"a", "k"}));
    // The other one lives after all; nothing of it needs to be reported again.
    index_->Apply("dies", Bits({.server = "dies", .epoch = 50}), now_, now_);
    EXPECT_TRUE(Excluded().empty());
    EXPECT_TRUE(index_->NextPoll("dies", seconds(1)).wanted().empty());
    now_ += seconds(5);
    pb::PollReply closed = Bits({.server = "lives", .epoch = epoch});
    closed.clear_projections();
    closed.set_to(3);
    closed.add_events()->set_kind(pb::Event::REGION_CLOSED);
    closed.mutable_events(0)->set_region_id(kRegion);
    closed.mutable_events(0)->set_epoch(epoch);
    closed.mutable_events(0)->set_sequence(3);
    index_->Apply("lives", closed, now_, now_);
    EXPECT_EQ(Excluded(), KeyRanges::All()) << "with the bits that were there all the time";
    now_ += seconds(200);
  }
}

TEST_F(GlobalIndexIdentityTest, OverlappingRegionsAreBothAskedWhileNeitherHasALease) {
  Hear({.server = "a", .lease_s = 10});
  Hear({.server = "b", .lease_s = 10});
  now_ += seconds(20);
  pb::PollReply nothing = Bits({.server = "a", .lease_s = 0});
  index_->Apply("a", nothing, now_, now_);
  EXPECT_TRUE(Excluded().empty());
}

// The answer of x waits while that of y is taken in, by which the lease of x is over.
TEST_F(GlobalIndexIdentityTest, ExpiredLeaseStaysExpiredForAnEarlierClockReading) {
  Hear({.server = "x", .lease_s = 10});
  const Time begin = now_;
  now_ = begin + seconds(11);
  Hear({.server = "y", .range = {"a", "k"}, .lease_s = 100});
  EXPECT_EQ(Excluded(), KeyRanges::Of({"a", "k"}));
  index_->Apply("x", Bits({.server = "x", .lease_s = 10}), begin + seconds(8), begin + seconds(9));
  EXPECT_TRUE(Excluded().empty()) << "both live: both are asked";
}

TEST_F(GlobalIndexIdentityTest, IndexesOfTwoTablesAreDistinctDespiteEqualIds) {
  Hear({.server = "a", .table = 1});
  Hear({.server = "b", .table = 2, .holds = true});
  EXPECT_EQ(Excluded(1), KeyRanges::All());
  EXPECT_TRUE(Excluded(2).empty());
}

TEST_F(GlobalIndexIdentityTest, NewLifeIsAcceptedWhateverItsStartCode) {
  Hear({.server = "a", .start_code = 100, .holds = true});
  EXPECT_TRUE(Excluded().empty());
  now_ += seconds(1);
  Hear({.server = "a", .start_code = 99});
  EXPECT_EQ(Excluded(), KeyRanges::All());
}

TEST_F(GlobalIndexIdentityTest, LateReplyOfAFormerLifeIsIgnored) {
  const Life former{.server = "a", .start_code = 100};
  Hear(former);
  const Time before = now_;
  now_ += seconds(1);
  Hear({.server = "a", .start_code = 99, .holds = true});
  index_->Apply("a", FullReply(former), before, now_);
  EXPECT_EQ(index_->NextPoll("a", seconds(1)).start_code(), 99u);
  EXPECT_TRUE(Excluded().empty());
}

// A filter without bits would say no to everything.
TEST_F(GlobalIndexIdentityTest, BitsOfNoLayerExcludeNothing) {
  const Life life{.server = "a"};
  index_->Apply("a", FullReply(life), now_, now_);
  pb::PollReply bits = Bits(life);
  bits.mutable_projections(0)->clear_layers();
  index_->Apply("a", bits, now_, now_);
  EXPECT_TRUE(Excluded().empty());
  index_->Apply("a", Bits(life), now_, now_);
  EXPECT_EQ(Excluded(), KeyRanges::All());
}

TEST_F(GlobalIndexIdentityTest, BitsOfAnotherGenerationAreNotTaken) {
  const Life life{.server = "a"};
  for (const uint64_t generation : {0, 2}) {
    index_.emplace(GlobalIndex::Options{});
    index_->Apply("a", FullReply(life), now_, now_);
    pb::PollReply bits = Bits(life);
    bits.mutable_projections(0)->set_generation(generation);
    index_->Apply("a", bits, now_, now_);
    EXPECT_TRUE(Excluded().empty()) << generation;
    index_->Apply("a", Bits(life), now_, now_);
    EXPECT_EQ(Excluded(), KeyRanges::All());
  }
}

// The first of two layers may come alone. The value stands in the other one.
TEST_F(GlobalIndexIdentityTest, BitsOfTheFirstLayerAloneExcludeNothing) {
  const Life life{.server = "a"};
  pb::PollReply full = FullReply(life);
  full.mutable_events(1)->set_layers(2);
  index_->Apply("a", full, now_, now_);
  pb::PollReply bits = Bits(life);
  bits.mutable_projections(0)->set_layer_count(2);
  index_->Apply("a", bits, now_, now_);
  EXPECT_TRUE(Excluded().empty());
  pb::PollReply rest = Bits({.server = "a", .holds = true});
  rest.mutable_projections(0)->set_layer_count(2);
  rest.mutable_projections(0)->set_first_layer(1);
  index_->Apply("a", rest, now_, now_);
  EXPECT_TRUE(Excluded().empty()) << "its second layer says yes";
  EXPECT_TRUE(index_->NextPoll("a", seconds(1)).wanted().empty()) << "all of it is here";
}

TEST_F(GlobalIndexIdentityTest, BitsWithoutTheirBeginExcludeNothing) {
  const Life life{.server = "a"};
  for (const auto& [first_layer, first_word] : {std::pair(1u, 0u), std::pair(0u, 1u)}) {
    index_.emplace(GlobalIndex::Options{});
    pb::PollReply full = FullReply(life);
    full.mutable_events(1)->set_layers(2);
    index_->Apply("a", full, now_, now_);
    pb::PollReply end = Bits(life);
    end.mutable_projections(0)->set_first_layer(first_layer);
    end.mutable_projections(0)->set_first_word(first_word);
    index_->Apply("a", end, now_, now_);
    EXPECT_TRUE(Excluded().empty());
  }
}

TEST_F(GlobalIndexIdentityTest, ReplyToAnEarlierPollIsIgnored) {
  const Life life{.server = "a", .lease_s = 1};
  Hear(life);
  pb::PollReply late = Bits(life);
  late.set_lease_ns(1'000'000'000'000);
  index_->Apply("a", late, now_ - seconds(1), now_);
  now_ += seconds(20);
  EXPECT_TRUE(Excluded().empty()) << "its lease was taken";
}

TEST_F(GlobalIndexIdentityTest, BitsThatDoNotFitAreNotRequestedAndTheirRegionStaysACandidate) {
  const Life life{.server = "a"};
  GlobalIndex index{GlobalIndex::Options{.max_bytes = 100}};
  index.Apply("a", FullReply(life), now_, now_);
  EXPECT_TRUE(index.NextPoll("a", seconds(1)).wanted().empty());
  EXPECT_EQ(index.stats().indexes_left_out, 1u);
  EXPECT_EQ(index.stats().max_bytes, 100u);
  index.Apply("a", Bits(life), now_, now_);  // asked for or not
  EXPECT_EQ(index.SizeBytes(), 0u);
  const RoutingTerm term{
      .kind = RoutingTerm::Kind::kValue, .index_id = kIndex, .hash = 4711, .first = "m"};
  EXPECT_TRUE(index.Find(kTable, KeyRanges::All(), term, now_).excluded.empty());
}

// Columns are reserved for all regions that lack bits, where there is room for all of them.
TEST_F(GlobalIndexIdentityTest, MemoryForBitsIsBoundedForAnyRegions) {
  constexpr uint64_t kRegions = 200;
  for (const size_t max_bytes : {500u, 1500u, 2500u, 3500u, 100'000u}) {
    GlobalIndex index{GlobalIndex::Options{.max_bytes = max_bytes}};
    pb::PollReply full, bits = Bits({.server = "a"});
    full.CopyFrom(FullReply({.server = "a"}));
    const pb::PollReply one = full;
    const pb::Projection projection = bits.projections(0);
    full.clear_events();
    bits.clear_projections();
    for (uint64_t region = 1; region <= kRegions; ++region) {
      for (pb::Event event : one.events()) {
        event.set_region_id(region);
        event.set_start(std::to_string(999 + region));
        event.set_end(std::to_string(1000 + region));
        *full.add_events() = event;
      }
      *bits.add_projections() = projection;
      bits.mutable_projections()->rbegin()->set_region_id(region);
    }
    index.Apply("a", full, now_, now_);
    index.Apply("a", bits, now_, now_);
    EXPECT_LE(index.SizeBytes(), max_bytes);
    // A word of each position for 64 regions; where that is too much, of one slice.
    const uint64_t whole = max_bytes / (kSlices * kSlicePositions * 8) * 64;
    const uint64_t fit = std::min(kRegions, max_bytes / (kSlicePositions * 8) * 64);
    EXPECT_EQ(index.stats().indexes_left_out, kRegions - fit);
    EXPECT_EQ(index.stats().filters_coarse, whole < kRegions ? fit : 0);
  }
}

// Room for one slice of two.
TEST_F(GlobalIndexIdentityTest, FilterOfWhichOneSliceIsKeptExcludesByThisSlice) {
  const SplitGeometry geometry{kSlices, kSlicePositions};
  index_.emplace(GlobalIndex::Options{.max_bytes = kSlicePositions * 8});
  Hear({.server = "a"});
  EXPECT_EQ(index_->stats().filters_coarse, 1u);
  EXPECT_EQ(index_->stats().indexes_left_out, 0u);
  EXPECT_TRUE(index_->IsComplete(kTable, {kIndex}, now_));
  EXPECT_EQ(Excluded(), KeyRanges::All()) << "neither bit is set";
  uint64_t sequence = 2;
  const auto flip = [&](uint32_t slice, bool set) {
    pb::PollReply reply = Bits({.server = "a"});
    reply.clear_projections();
    pb::Event* flips = reply.add_events();
    flips->set_kind(pb::Event::FLIPS);
    flips->set_sequence(++sequence);
    flips->set_region_id(kRegion);
    flips->set_epoch(Life{.server = "a"}.epoch);
    flips->set_index_id(kIndex);
    flips->set_generation(1);
    const uint64_t position = slice * kSlicePositions + geometry.Offset(4711, 0);
    flips->add_flips(position << 1 | (set ? 1 : 0));
    reply.set_from(sequence - 1);
    reply.set_to(sequence);
    index_->Apply("a", reply, now_, now_);
  };
  flip(1, true);
  EXPECT_EQ(Excluded(), KeyRanges::All()) << "a bit of the slice that is not kept";
  flip(0, true);
  EXPECT_TRUE(Excluded().empty()) << "the bit of the value";
  flip(1, false);
  EXPECT_TRUE(Excluded().empty()) << "a flip of a slice that is not kept changes nothing";
  flip(0, false);
  EXPECT_EQ(Excluded(), KeyRanges::All());
}

TEST_F(GlobalIndexIdentityTest, WaitForCompletenessIgnoresBitsThatDoNotFit) {
  const Life life{.server = "a"};
  GlobalIndex small{GlobalIndex::Options{.max_bytes = 100}};
  GlobalIndex large{GlobalIndex::Options{}};
  EXPECT_FALSE(small.IsComplete(kTable, {kIndex}, now_));
  for (GlobalIndex* index : {&small, &large}) index->Apply("a", FullReply(life), now_, now_);
  EXPECT_TRUE(small.IsComplete(kTable, {kIndex}, now_));
  EXPECT_FALSE(large.IsComplete(kTable, {kIndex}, now_)) << "its bits are to come";
  EXPECT_FALSE(small.IsComplete(kTable, {kIndex, kIndex + 1}, now_)) << "nothing is known of it";
  now_ += seconds(3600);
  EXPECT_FALSE(small.IsComplete(kTable, {kIndex}, now_)) << "its lease is over";
}

// The other table has more regions, and an index of the same number.
TEST_F(GlobalIndexIdentityTest, BitsOfAnotherTableThatDoNotFitDoNotDelayThisTable) {
  GlobalIndex small{GlobalIndex::Options{.max_bytes = 100}};
  const Life others[] = {{.server = "b", .table = kTable + 1, .range = {"", "m"}},
                         {.server = "c", .table = kTable + 1, .range = {"m", ""}}};
  small.Apply("a", FullReply({.server = "a"}), now_, now_);
  for (const Life& life : others) small.Apply(life.server, FullReply(life), now_, now_);
  EXPECT_TRUE(small.IsComplete(kTable, {kIndex}, now_));
  EXPECT_TRUE(small.IsComplete(kTable + 1, {kIndex}, now_));
}

}  // namespace
}  // namespace tamis
