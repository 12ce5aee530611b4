#include "tamis/feed/event_log.h"

#include <gtest/gtest.h>

#include <string>

namespace tamis {
namespace {

pb::Event Event(pb::Event::Kind kind, uint64_t region, uint64_t epoch = 1) {
  pb::Event event;
  event.set_kind(kind);
  event.set_region_id(region);
  event.set_epoch(epoch);
  return event;
}

pb::Event OfIndex(pb::Event::Kind kind, uint64_t region, uint64_t generation, uint64_t epoch = 1) {
  pb::Event event = Event(kind, region, epoch);
  event.set_index_id(7);
  event.set_generation(generation);
  return event;
}

pb::Event TableChanged(uint32_t table, uint64_t version) {
  pb::Event event;
  event.set_kind(pb::Event::TABLE_CHANGED);
  event.set_table_id(table);
  event.set_schema_version(version);
  return event;
}

// The numbers of the events of a reply.
std::string NumbersOf(const pb::PollReply& reply) {
  std::string numbers;
  for (const pb::Event& event : reply.events()) numbers += std::to_string(event.sequence()) + " ";
  return numbers;
}

class EventLogTest : public testing::Test {
 protected:
  pb::PollReply State() const {
    pb::PollReply reply;
    log_.AddState(&reply);
    return reply;
  }

  EventLog log_{{.max_events = 4, .max_event_bytes = 1 << 20, .reply_bytes = 1 << 20}};
};

TEST_F(EventLogTest, ReplyHasTheEventsAfterANumber) {
  for (uint64_t i = 1; i <= 3; ++i) EXPECT_EQ(log_.Append(Event(pb::Event::FLIPS, i)), i);
  pb::PollReply reply;
  log_.AddEvents(1, &reply);
  EXPECT_EQ(NumbersOf(reply), "2 3 ");
  EXPECT_EQ(reply.from(), 1U);
  EXPECT_EQ(reply.to(), 3U);
}

TEST_F(EventLogTest, EventsBeyondTheBoundAreNotKept) {
  for (uint64_t i = 1; i <= 6; ++i) {
    log_.Append(Event(pb::Event::FLIPS, i));
    log_.ForgetUpTo(0);
  }
  EXPECT_EQ(log_.size(), 4U);
  EXPECT_FALSE(log_.KeepsAfter(1));
  EXPECT_TRUE(log_.KeepsAfter(2));
  EXPECT_TRUE(log_.KeepsAfter(6));
  EXPECT_FALSE(log_.KeepsAfter(7));
}

TEST_F(EventLogTest, ForgottenEventsTakeTheirBytes) {
  for (uint64_t i = 1; i <= 3; ++i) log_.Append(Event(pb::Event::FLIPS, i));
  log_.ForgetUpTo(2);
  EXPECT_EQ(log_.size(), 1U);
  log_.ForgetUpTo(3);
  EXPECT_EQ(log_.bytes(), 0U);
  EXPECT_EQ(log_.last(), 3U);
}

TEST_F(EventLogTest, ReplyIsCutAfterOneEventAtLeast) {
  EventLog log{{.max_events = 9, .max_event_bytes = 1 << 20, .reply_bytes = 1}};
  for (uint64_t i = 1; i <= 3; ++i) log.Append(Event(pb::Event::FLIPS, i));
  EXPECT_EQ(log.EndOfReply(1), 2U);
  EXPECT_EQ(log.EndOfReply(3), 3U);
}

TEST_F(EventLogTest, StateHoldsTheLastOfEachRegionIndexAndTable) {
  log_.Append(TableChanged(3, 1));
  log_.Append(TableChanged(3, 2));
  log_.Append(Event(pb::Event::REGION_OPENED, 5));
  log_.Append(OfIndex(pb::Event::INDEX_COMPLETE, 5, 1));
  pb::Event layer = OfIndex(pb::Event::LAYER_ADDED, 5, 1);
  layer.set_layers(2);
  log_.Append(layer);
  pb::Event range = OfIndex(pb::Event::RANGE_WIDENED, 5, 1);
  range.set_has_range(true);
  range.set_min("a");
  range.set_max("z");
  log_.Append(range);
  log_.ForgetUpTo(log_.last());
  const pb::PollReply state = State();
  EXPECT_EQ(NumbersOf(state), "2 3 4 ");
  EXPECT_EQ(state.to(), 6U);
  EXPECT_EQ(state.events(2).layers(), 2U);
  EXPECT_EQ(state.events(2).max(), "z");
  EXPECT_EQ(log_.SchemaVersion(3), 2U);
}

TEST_F(EventLogTest, EventsOfAnotherGenerationOrOpeningChangeNoState) {
  log_.Append(Event(pb::Event::REGION_OPENED, 5, 2));
  log_.Append(OfIndex(pb::Event::INDEX_COMPLETE, 5, 2, 2));
  pb::Event layer = OfIndex(pb::Event::LAYER_ADDED, 5, 1, 2);
  layer.set_layers(9);
  log_.Append(layer);
  log_.Append(OfIndex(pb::Event::INDEX_DROPPED, 5, 2, 1));
  log_.Append(Event(pb::Event::REGION_CLOSED, 5, 1));
  EXPECT_EQ(NumbersOf(State()), "1 2 ");
  EXPECT_EQ(State().events(1).layers(), 0U);
}

TEST_F(EventLogTest, ClosedRegionsDroppedIndexesAndTablesLeaveTheState) {
  log_.Append(TableChanged(3, 1));
  log_.Append(Event(pb::Event::REGION_OPENED, 5));
  log_.Append(OfIndex(pb::Event::INDEX_COMPLETE, 5, 1));
  log_.Append(OfIndex(pb::Event::INDEX_DROPPED, 5, 1));
  EXPECT_EQ(NumbersOf(State()), "1 2 ");
  log_.Append(Event(pb::Event::REGION_CLOSED, 5));
  log_.Append(TableChanged(3, 0));
  EXPECT_EQ(NumbersOf(State()), "");
  EXPECT_EQ(log_.SchemaVersion(3), 0U);
}

}  // namespace
}  // namespace tamis
