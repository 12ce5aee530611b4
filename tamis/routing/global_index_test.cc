// What a coordinator makes of answers, good and bad. That the rules are enough together is what the
// randomized cluster test and the model show.
#include "tamis/routing/global_index.h"

#include <gtest/gtest.h>

#include <limits>

namespace tamis {
namespace {

using std::chrono::seconds;

constexpr uint32_t kTable = 1, kIndex = 7;
constexpr uint64_t kRegion = 5, kEpoch = 3, kStartCode = 100;
constexpr uint32_t kSlices = 2, kSlicePositions = 64;

// One server with one region, whose index is complete and knows no value at all.
class GlobalIndexTest : public testing::Test {
 protected:
  GlobalIndexTest() {
    pb::PollReply state = Reply(/*full=*/true, 0, 2);
    pb::Event* opened = Add(&state, pb::Event::REGION_OPENED, 1);
    opened->set_table_id(kTable);
    Complete(Add(&state, pb::Event::INDEX_COMPLETE, 2), 1);
    Apply(state);
    pb::PollReply bits = Reply(/*full=*/false, 2, 2);
    pb::Projection* projection = bits.add_projections();
    projection->set_region_id(kRegion);
    projection->set_epoch(kEpoch);
    projection->set_index_id(kIndex);
    projection->set_generation(1);
    projection->set_as_of(2);
    projection->mutable_geometry()->set_slices(kSlices);
    projection->mutable_geometry()->set_slice_positions(kSlicePositions);
    projection->add_layers(std::string(kSlices * kSlicePositions / 8, '\0'));
    projection->set_has_range(true);
    projection->set_min("");
    projection->set_max("z");
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
  void Apply(const pb::PollReply& reply) { index_.Apply("rs1", reply, now_, now_); }

  bool Excludes() const {
    RoutingTerm term{
        .kind = RoutingTerm::Kind::kValue, .index_id = kIndex, .hash = 4711, .first = "m"};
    return !index_.Find(kTable, KeyRanges::All(), term, now_).excluded.ranges().empty();
  }

  Time now_ = seconds(1000);
  GlobalIndex index_{GlobalIndex::Options{}};
};

TEST_F(GlobalIndexTest, ARegionWhoseFilterDoesNotKnowTheValueIsExcludedWhileItsLeaseLives) {
  EXPECT_TRUE(Excludes());
  now_ += seconds(60);
  EXPECT_FALSE(Excludes());
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

}  // namespace
}  // namespace tamis
