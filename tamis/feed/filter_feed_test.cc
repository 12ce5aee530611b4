// The rules of the feed one by one; that they are enough together is what the randomized cluster
// test and the model show.
#include "tamis/feed/filter_feed.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <optional>
#include <thread>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/base/thread_executor.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kStartCode = 77;

class FilterFeedTest : public testing::Test {
 protected:
  std::shared_ptr<FilterFeed> MakeFeed(FilterFeed::Options options = {}) {
    return std::make_shared<FilterFeed>(&executor_, "rs1", kStartCode, options);
  }

  static pb::Event Opened(uint64_t region) {
    pb::Event event;
    event.set_kind(pb::Event::REGION_OPENED);
    event.set_region_id(region);
    return event;
  }
  static pb::Event Flips(uint64_t region, uint64_t flip) {
    pb::Event event;
    event.set_kind(pb::Event::FLIPS);
    event.set_region_id(region);
    event.add_flips(flip);
    return event;
  }

  static pb::Event TableChanged(uint32_t table, uint64_t version) {
    pb::Event event;
    event.set_kind(pb::Event::TABLE_CHANGED);
    event.set_table_id(table);
    event.set_schema_version(version);
    return event;
  }

  // The bits of every column that is asked for are `words` words, as of the last event.
  static void GiveBits(FilterFeed* feed, uint64_t words) {
    feed->SetProjectionSource([feed, words](const pb::ColumnId& from, size_t max_bytes) {
      pb::Projection projection;
      projection.set_region_id(from.region_id());
      projection.set_as_of(feed->Last());
      projection.set_first_word(from.first_word());
      projection.add_layers(std::string(std::min(max_bytes, (words - from.first_word()) * 8), ' '));
      return std::optional(projection);
    });
  }
  // Asks for the bits of regions, having applied everything up to `applied`.
  pb::PollReply PollFor(FilterFeed* feed, uint64_t applied, std::vector<uint64_t> regions) {
    pb::PollRequest request;
    request.set_coordinator(1);
    request.set_start_code(kStartCode);
    request.set_applied(applied);
    for (const uint64_t region : regions) request.add_wanted()->set_region_id(region);
    std::optional<pb::PollReply> reply;
    feed->Poll(
        request, [this] { return verified_until_; },
        [&reply](Result<pb::PollReply> r) { reply.emplace(std::move(*r)); });
    executor_.RunFor(milliseconds(2));
    return std::move(*reply);
  }

  // A coordinator that has applied everything up to `applied`.
  std::optional<Result<pb::PollReply>>& Poll(FilterFeed* feed, uint64_t applied,
                                             Duration wait = Duration(0), uint64_t coordinator = 1,
                                             uint64_t start_code = kStartCode) {
    pb::PollRequest request;
    request.set_coordinator(coordinator);
    request.set_start_code(start_code);
    request.set_applied(applied);
    request.set_wait_ns(static_cast<uint64_t>(wait.count()));
    auto& reply = replies_.emplace_back();
    feed->Poll(
        request, [this] { return verified_until_; },
        [&reply](Result<pb::PollReply> r) { reply.emplace(std::move(r)); });
    return reply;
  }

  std::optional<Status>& Wait(FilterFeed* feed, uint64_t sequence, Duration timeout = seconds(10)) {
    auto& status = waits_.emplace_back();
    feed->WaitAcknowledged(sequence, Time{}, executor_.Now() + timeout,
                           [&status](Status s) { status.emplace(std::move(s)); });
    return status;
  }

  SimExecutor executor_{1, milliseconds(1)};
  Time verified_until_ = Time::max() / 2;
  std::deque<std::optional<Result<pb::PollReply>>> replies_;
  std::deque<std::optional<Status>> waits_;
};

TEST_F(FilterFeedTest, WithoutCoordinatorsAPutIsAcknowledgedAtOnce) {
  auto feed = MakeFeed();
  const uint64_t sequence = feed->Append(Flips(1, 2));
  EXPECT_EQ(Wait(feed.get(), sequence), Status::Ok());
}

TEST_F(FilterFeedTest, APutWaitsUntilTheLeasedCoordinatorHasAppliedItsEvents) {
  auto feed = MakeFeed();
  ASSERT_GT((*Poll(feed.get(), 0))->lease_ns(), 0u);
  const uint64_t sequence = feed->Append(Flips(1, 2));
  auto& wait = Wait(feed.get(), sequence);
  auto& reply = Poll(feed.get(), 0);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ((*reply)->events_size(), 1);
  EXPECT_FALSE(wait.has_value()) << "sent is not applied";
  Poll(feed.get(), sequence);
  EXPECT_EQ(wait, Status::Ok());
}

TEST_F(FilterFeedTest, APutWaitsForACoordinatorThatIsSilentUntilItsLeaseAndTheMarginAreOver) {
  auto feed = MakeFeed({.lease = seconds(1), .lease_margin = milliseconds(10)});
  Poll(feed.get(), 0);
  auto& wait = Wait(feed.get(), feed->Append(Flips(1, 2)));
  executor_.RunFor(milliseconds(1009));
  EXPECT_FALSE(wait.has_value());
  executor_.RunFor(milliseconds(2));
  EXPECT_EQ(wait, Status::Ok());
}

TEST_F(FilterFeedTest, NoPutWaitsForACoordinatorThatHasLeft) {
  auto feed = MakeFeed();
  Poll(feed.get(), 0, Duration(0), 1);
  Poll(feed.get(), 0, Duration(0), 2);
  auto& parked = Poll(feed.get(), 0, seconds(5), 1);
  const uint64_t sequence = feed->Append(Flips(1, 2));
  auto& wait = Wait(feed.get(), sequence);
  pb::PollRequest leaving;
  leaving.set_coordinator(1);
  leaving.set_leaves(true);
  std::optional<pb::PollReply> reply;
  const auto leave = [&] {
    reply.reset();
    feed->Poll(
        leaving, [] { return Time::max() / 2; },
        [&](Result<pb::PollReply> r) { reply.emplace(*std::move(r)); });
  };
  leave();
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->lease_ns(), 0u);
  EXPECT_EQ(reply->events_size(), 0);
  ASSERT_TRUE(parked.has_value()) << "its poll is over";
  EXPECT_FALSE(wait.has_value()) << "the other one has not applied the event";
  leaving.set_coordinator(3);  // one that the server has never heard
  leave();
  EXPECT_FALSE(wait.has_value());
  leaving.set_coordinator(2);
  leave();
  EXPECT_EQ(wait, Status::Ok());
  EXPECT_TRUE(feed->Followers().empty());
}

TEST_F(FilterFeedTest, AnAcknowledgementOfAnotherLifeCountsForNothing) {
  auto feed = MakeFeed();
  Poll(feed.get(), 0);
  const uint64_t sequence = feed->Append(Flips(1, 2));
  auto& wait = Wait(feed.get(), sequence);
  auto& reply = Poll(feed.get(), 1000, Duration(0), 1, kStartCode - 1);
  EXPECT_TRUE((*reply)->full());
  EXPECT_FALSE(wait.has_value());
}

TEST_F(FilterFeedTest, ALeaseDoesNotReachBeyondTheServersOwnMembership) {
  auto feed = MakeFeed({.lease = seconds(1)});
  verified_until_ = executor_.Now() + milliseconds(300);
  EXPECT_EQ((*Poll(feed.get(), 0))->lease_ns(), 300'000'000u);
  verified_until_ = executor_.Now() - milliseconds(1);
  EXPECT_EQ((*Poll(feed.get(), 0, Duration(0), 2))->lease_ns(), 0u);
}

TEST_F(FilterFeedTest, ACoordinatorThatPollsButDoesNotApplyLosesItsLease) {
  auto feed = MakeFeed({.lease = seconds(1), .lease_margin = milliseconds(10)});
  Poll(feed.get(), 0);
  const uint64_t sequence = feed->Append(Flips(1, 2));
  auto& wait = Wait(feed.get(), sequence);
  for (int i = 0; i < 30; ++i) {
    Poll(feed.get(), 0);
    executor_.RunFor(milliseconds(100));
  }
  EXPECT_EQ(wait, Status::Ok());
  EXPECT_EQ((*Poll(feed.get(), 0))->lease_ns(), 0u);
  EXPECT_GT((*Poll(feed.get(), sequence))->lease_ns(), 0u) << "one that has caught up is trusted";
}

TEST_F(FilterFeedTest, CoordinatorBehindTheKeptEventsGetsTheWholeState) {
  auto feed = MakeFeed({.max_events = 4});
  Poll(feed.get(), 0);
  feed->Append(Opened(1));
  feed->Append(Opened(2));
  pb::Event closed;
  closed.set_kind(pb::Event::REGION_CLOSED);
  closed.set_region_id(1);
  feed->Append(closed);
  for (uint64_t i = 0; i < 4; ++i) feed->Append(Flips(2, i));
  auto& lagging = Poll(feed.get(), 2);
  EXPECT_TRUE((*lagging)->full());
  ASSERT_EQ((*lagging)->events_size(), 1);
  EXPECT_EQ((*lagging)->events(0).region_id(), 2u);
  auto& close_by = Poll(feed.get(), 3);
  EXPECT_FALSE((*close_by)->full());
  EXPECT_EQ((*close_by)->events_size(), 4);
}

// A coordinator that needs the whole state hears of region 1, epoch 2: its index 5, whose
// generation 4 has the range b to y.
class WholeStateTest : public FilterFeedTest {
 protected:
  WholeStateTest() {
    feed_->Append(Of(pb::Event::REGION_OPENED, 2));
    pb::Event complete = Range(pb::Event::INDEX_COMPLETE, 2, 4, "b", "y");
    complete.set_layers(1);
    feed_->Append(complete);
  }

  static pb::Event Of(pb::Event::Kind kind, uint64_t epoch) {
    pb::Event event = Opened(1);
    event.set_kind(kind);
    event.set_epoch(epoch);
    return event;
  }
  static pb::Event Range(pb::Event::Kind kind, uint64_t epoch, uint64_t generation,
                         const std::string& min, const std::string& max) {
    pb::Event event = Of(kind, epoch);
    event.set_index_id(5);
    event.set_generation(generation);
    event.set_has_range(true);
    event.set_min(min);
    event.set_max(max);
    return event;
  }
  static pb::Event Layers(uint64_t epoch, uint64_t generation) {
    pb::Event event = Range(pb::Event::LAYER_ADDED, epoch, generation, "", "");
    event.set_layers(2);
    return event;
  }

  std::string State() {
    auto& reply = Poll(feed_.get(), 0, Duration(0), 1, 0);
    if (!(*reply)->full()) return "not the whole state";
    std::string state;
    for (const pb::Event& event : (*reply)->events()) {
      if (event.kind() == pb::Event::REGION_OPENED) state += "open";
      if (event.kind() != pb::Event::INDEX_COMPLETE) continue;
      state += ", " + event.min() + " to " + event.max() + ", " + std::to_string(event.layers());
    }
    return state;
  }

  std::shared_ptr<FilterFeed> feed_ = MakeFeed();
};

TEST_F(WholeStateTest, FollowsTheEventsOfTheOpeningAndGeneration) {
  EXPECT_EQ(State(), "open, b to y, 1");
  feed_->Append(Range(pb::Event::RANGE_WIDENED, 2, 4, "a", "z"));
  feed_->Append(Layers(2, 4));
  EXPECT_EQ(State(), "open, a to z, 2");
}

// Otherwise a range of other values could exclude the region.
TEST_F(WholeStateTest, KeepsNothingOfAnotherGeneration) {
  for (const uint64_t generation : {3, 5}) {
    feed_->Append(Range(pb::Event::RANGE_WIDENED, 2, generation, "m", "m"));
    feed_->Append(Layers(2, generation));
  }
  EXPECT_EQ(State(), "open, b to y, 1");
}

TEST_F(WholeStateTest, KeepsNothingOfAnotherOpening) {
  for (const uint64_t epoch : {1, 3}) {
    feed_->Append(Range(pb::Event::RANGE_WIDENED, epoch, 4, "m", "m"));
    feed_->Append(Layers(epoch, 4));
    feed_->Append(Range(pb::Event::INDEX_COMPLETE, epoch, 6, "m", "m"));
    feed_->Append(Range(pb::Event::INDEX_DROPPED, epoch, 4, "", ""));
    feed_->Append(Of(pb::Event::REGION_CLOSED, epoch));
  }
  EXPECT_EQ(State(), "open, b to y, 1");
  feed_->Append(Range(pb::Event::INDEX_DROPPED, 2, 4, "", ""));
  EXPECT_EQ(State(), "open");
  feed_->Append(Of(pb::Event::REGION_CLOSED, 2));
  EXPECT_EQ(State(), "");
}

TEST_F(FilterFeedTest, NoEventIsKeptWithoutACoordinator) {
  auto feed = MakeFeed({.lease = seconds(1), .silence = seconds(4)});
  feed->Append(Opened(1));
  for (uint64_t i = 0; i < 100; ++i) feed->Append(Flips(1, i));
  EXPECT_EQ(feed->EventBytes(), 0u);
  Poll(feed.get(), 101);
  feed->Append(Flips(1, 2));
  EXPECT_GT(feed->EventBytes(), 0u);
  executor_.RunFor(seconds(3));
  feed->Append(Flips(1, 3));
  EXPECT_EQ((*Poll(feed.get(), 101))->events_size(), 2)
      << "its lease is over, but it may come back";
  executor_.RunFor(seconds(4));
  feed->Append(Flips(1, 4));
  EXPECT_EQ(feed->EventBytes(), 0u);
  EXPECT_TRUE((*Poll(feed.get(), 103))->full());
}

TEST_F(FilterFeedTest, EventsThatEveryListenerHasAppliedAreDropped) {
  auto feed = MakeFeed();
  Poll(feed.get(), 0, Duration(0), 1);
  Poll(feed.get(), 0, Duration(0), 2);
  const uint64_t last = feed->Append(Flips(1, 2));
  Poll(feed.get(), last, Duration(0), 1);
  EXPECT_GT(feed->EventBytes(), 0u);
  Poll(feed.get(), last, Duration(0), 2);
  EXPECT_EQ(feed->EventBytes(), 0u);
}

TEST_F(FilterFeedTest, TheEventsThatAreKeptAreBoundedInBytes) {
  auto feed = MakeFeed({.max_event_bytes = 1000});
  Poll(feed.get(), 0);
  for (uint64_t i = 0; i < 1000; ++i) feed->Append(Flips(1, i));
  EXPECT_LE(feed->EventBytes(), 1000u);
  EXPECT_TRUE((*Poll(feed.get(), 1))->full());
  EXPECT_FALSE((*Poll(feed.get(), 999))->full());
}

// Puts that wait for the events that are missing may have been acknowledged without it.
TEST_F(FilterFeedTest, AReplyThatIsCutGrantsNoLease) {
  for (const bool fault : {false, true}) {
    auto feed = MakeFeed({.reply_bytes = 100, .faults = {.lease_for_cut_reply = fault}});
    Poll(feed.get(), 0);
    uint64_t last = 0;
    for (uint64_t i = 0; i < 100; ++i) last = feed->Append(Flips(1, i));
    auto& cut = Poll(feed.get(), 0);
    EXPECT_FALSE((*cut)->full());
    EXPECT_EQ((*cut)->from(), 0u);
    ASSERT_GT((*cut)->to(), 0u);
    ASSERT_LT((*cut)->to(), last);
    EXPECT_EQ((*cut)->events((*cut)->events_size() - 1).sequence(), (*cut)->to());
    EXPECT_EQ((*cut)->lease_ns() > 0, fault);
    uint64_t applied = (*cut)->to();
    while (applied < last) {
      auto& next = Poll(feed.get(), applied);
      ASSERT_GT((*next)->to(), applied);
      applied = (*next)->to();
      EXPECT_EQ((*next)->lease_ns() > 0, fault || applied == last);
    }
  }
}

TEST_F(FilterFeedTest, AReplyHoldsAtLeastOneEvent) {
  auto feed = MakeFeed({.reply_bytes = 1});
  Poll(feed.get(), 0);
  feed->Append(Flips(1, 1));
  feed->Append(Flips(1, 2));
  EXPECT_EQ((*Poll(feed.get(), 0))->to(), 1u);
  EXPECT_EQ((*Poll(feed.get(), 1))->to(), 2u);
}

TEST_F(FilterFeedTest, TheWholeStateIsNeverCut) {
  auto feed = MakeFeed({.reply_bytes = 100});
  for (uint64_t region = 1; region <= 200; ++region) feed->Append(Opened(region));
  auto& reply = Poll(feed.get(), 0, Duration(0), 1, 0);
  EXPECT_TRUE((*reply)->full());
  EXPECT_EQ((*reply)->events_size(), 200);
  EXPECT_GT((*reply)->lease_ns(), 0u);
}

TEST_F(FilterFeedTest, AReplyThatIsCutCarriesNoBitsYoungerThanItsEvents) {
  for (const bool fault : {false, true}) {
    auto feed = MakeFeed({.reply_bytes = 100, .faults = {.newer_projections = fault}});
    GiveBits(feed.get(), 4);
    Poll(feed.get(), 0);
    for (uint64_t i = 0; i < 100; ++i) feed->Append(Flips(1, i));
    const pb::PollReply cut = PollFor(feed.get(), 0, {1});
    ASSERT_LT(cut.to(), feed->Last());
    EXPECT_EQ(cut.projections_size() > 0, fault);
    EXPECT_EQ(PollFor(feed.get(), feed->Last(), {1}).projections_size(), 1);
  }
}

// Nor one that is cut by what came while the bits were taken.
TEST_F(FilterFeedTest, BitsYoungerThanTheEventsAreLeftOut) {
  auto feed = MakeFeed({.reply_bytes = 100});
  Poll(feed.get(), 0);
  feed->SetProjectionSource([&feed](const pb::ColumnId&, size_t) {
    for (uint64_t i = 0; i < 100; ++i) feed->Append(Flips(1, i));
    pb::Projection projection;
    projection.set_as_of(feed->Last());
    projection.add_layers("12345678");
    return std::optional(projection);
  });
  const pb::PollReply cut = PollFor(feed.get(), 0, {1});
  EXPECT_LT(cut.to(), feed->Last());
  EXPECT_EQ(cut.projections_size(), 0);
  EXPECT_EQ(cut.lease_ns(), 0u);
}

TEST_F(FilterFeedTest, BitsThatDoNotFitComeInParts) {
  auto feed = MakeFeed({.projection_bytes = 100});
  GiveBits(feed.get(), 8);  // 64 bytes each
  const pb::PollReply reply = PollFor(feed.get(), 0, {1, 2, 3});
  ASSERT_EQ(reply.projections_size(), 2);
  EXPECT_EQ(reply.projections(0).layers(0).size(), 64u);
  EXPECT_EQ(reply.projections(1).layers(0).size(), 36u);
}

TEST_F(FilterFeedTest, PollThatCannotBeParkedGetsATimeToRetry) {
  auto feed = MakeFeed({.max_parked = 1, .next_poll = milliseconds(20)});
  auto& parked = Poll(feed.get(), 0, milliseconds(300), 1);
  EXPECT_FALSE(parked.has_value());
  auto& crowded = Poll(feed.get(), 0, milliseconds(300), 2);
  ASSERT_TRUE(crowded.has_value());
  EXPECT_EQ((*crowded)->next_poll_ns(), 20'000'000u);
  EXPECT_GT((*crowded)->lease_ns(), 0u);
  auto& instead = Poll(feed.get(), 0, milliseconds(300), 1);
  EXPECT_TRUE(parked.has_value());
  EXPECT_FALSE(instead.has_value()) << "it takes the place of its own earlier one";
  feed->Append(Opened(1));
  EXPECT_EQ((*Poll(feed.get(), 0, milliseconds(300), 2))->next_poll_ns(), 0u) << "there is news";
}

TEST_F(FilterFeedTest, VersionOfATableIsAnnouncedOnce) {
  auto feed = MakeFeed();
  feed->TellTable(1, 3);
  feed->TellTable(1, 3);
  feed->TellTable(1, 2);
  EXPECT_EQ(feed->Last(), 1u);
  feed->TellTable(1, 4);
  feed->TellTable(1, 0);
  feed->TellTable(1, 0);
  EXPECT_EQ(feed->Last(), 3u);
}

TEST_F(FilterFeedTest, TheWholeStateTellsTheVersionsOfTables) {
  auto feed = MakeFeed();
  feed->Append(TableChanged(1, 3));
  feed->Append(TableChanged(1, 4));
  feed->Append(TableChanged(2, 7));
  feed->Append(TableChanged(2, 0));  // dropped
  auto& reply = Poll(feed.get(), 0, Duration(0), 1, 0);
  ASSERT_EQ((*reply)->events_size(), 1);
  EXPECT_EQ((*reply)->events(0).schema_version(), 4u);
}

TEST_F(FilterFeedTest, TheWholeStateHasLayersAndRangesAsTheyAreNow) {
  auto feed = MakeFeed();
  const auto of_index = [](pb::Event::Kind kind) {
    pb::Event event;
    event.set_kind(kind);
    event.set_region_id(1);
    event.set_index_id(4);
    return event;
  };
  feed->Append(Opened(1));
  pb::Event complete = of_index(pb::Event::INDEX_COMPLETE);
  complete.set_layers(1);
  feed->Append(complete);
  pb::Event layer = of_index(pb::Event::LAYER_ADDED);
  layer.set_layers(2);
  feed->Append(layer);
  pb::Event widened = of_index(pb::Event::RANGE_WIDENED);
  widened.set_min("b");
  widened.set_max("y");
  widened.set_has_range(true);
  feed->Append(widened);
  auto& whole = Poll(feed.get(), 0, Duration(0), 1, 0);
  ASSERT_EQ((*whole)->events_size(), 2);
  const pb::Event& index = (*whole)->events(1);
  EXPECT_EQ(index.kind(), pb::Event::INDEX_COMPLETE);
  EXPECT_EQ(index.layers(), 2u);
  EXPECT_TRUE(index.has_range());
  EXPECT_EQ(index.min() + index.max(), "by");
  feed->Append(of_index(pb::Event::INDEX_DROPPED));
  EXPECT_EQ((*Poll(feed.get(), 0, Duration(0), 1, 0))->events_size(), 1);
}

TEST_F(FilterFeedTest, NoMoreCoordinatorsThanAllowedHaveALease) {
  auto feed =
      MakeFeed({.lease = seconds(1), .lease_margin = milliseconds(10), .max_coordinators = 2});
  const auto leased = [&](uint64_t coordinator) {
    return (*Poll(feed.get(), 0, Duration(0), coordinator))->lease_ns() > 0;
  };
  EXPECT_TRUE(leased(1));
  EXPECT_TRUE(leased(2));
  EXPECT_FALSE(leased(3));
  EXPECT_TRUE(leased(2)) << "it has one already";
  executor_.RunFor(milliseconds(1009));
  EXPECT_FALSE(leased(3)) << "the margin is not over";
  executor_.RunFor(milliseconds(1));
  EXPECT_TRUE(leased(3));
}

TEST_F(FilterFeedTest, ListenersAreBoundedAndSilentOnesMakeRoom) {
  auto feed = MakeFeed({.lease = seconds(1), .lease_margin = milliseconds(10), .max_listeners = 2});
  const auto listeners = [&] {
    std::vector<uint64_t> numbers;
    for (const auto& follower : feed->Followers()) numbers.push_back(follower.coordinator);
    return numbers;
  };
  Poll(feed.get(), 0, Duration(0), 1);
  EXPECT_EQ(listeners(), (std::vector<uint64_t>{1}));
  Poll(feed.get(), 0, Duration(0), 2);
  EXPECT_EQ((*Poll(feed.get(), 0, Duration(0), 3))->lease_ns(), 0u);
  EXPECT_EQ(listeners(), (std::vector<uint64_t>{1, 2}));
  executor_.RunFor(milliseconds(600));
  Poll(feed.get(), 0, Duration(0), 2);
  executor_.RunFor(milliseconds(410));
  EXPECT_GT((*Poll(feed.get(), 0, Duration(0), 3))->lease_ns(), 0u);
  EXPECT_EQ(listeners(), (std::vector<uint64_t>{2, 3}));
}

TEST_F(FilterFeedTest, FollowersTellHowFarTheyAreBehindAndTheirLease) {
  auto feed = MakeFeed({.lease = seconds(1), .lease_margin = milliseconds(10)});
  Poll(feed.get(), 0);
  feed->Append(Flips(1, 1));
  feed->Append(Flips(1, 2));
  executor_.RunFor(milliseconds(200));
  auto followers = feed->Followers();
  ASSERT_EQ(followers.size(), 1u);
  EXPECT_EQ(followers[0].behind, 2u);
  EXPECT_EQ(followers[0].lease_left, milliseconds(810));
  executor_.RunFor(seconds(5));
  EXPECT_EQ(feed->Followers()[0].lease_left, Duration(0));
}

TEST_F(FilterFeedTest, AWaitDoesNotEndBeforeItsMoment) {
  auto feed = MakeFeed();
  std::optional<Status> status;
  feed->WaitAcknowledged(0, executor_.Now() + milliseconds(500), executor_.Now() + seconds(10),
                         [&status](Status s) { status.emplace(std::move(s)); });
  executor_.RunFor(milliseconds(499));
  EXPECT_FALSE(status.has_value());
  executor_.RunFor(milliseconds(2));
  EXPECT_EQ(status, Status::Ok());
}

TEST_F(FilterFeedTest, IsCrowdedWhileTheMaximumOfPutsWaits) {
  auto feed = MakeFeed({.max_waiting = 2});
  Poll(feed.get(), 0);
  const uint64_t sequence = feed->Append(Flips(1, 2));
  Wait(feed.get(), sequence);
  EXPECT_FALSE(feed->Crowded());
  Wait(feed.get(), sequence);
  EXPECT_TRUE(feed->Crowded());
  Poll(feed.get(), sequence);
  EXPECT_FALSE(feed->Crowded());
}

TEST_F(FilterFeedTest, AParkedPollIsAnsweredWhenThereIsNewsOrItsTimeIsOver) {
  auto feed = MakeFeed();
  auto& reply = Poll(feed.get(), 0, milliseconds(300));
  EXPECT_FALSE(reply.has_value());
  feed->Append(Opened(1));
  executor_.RunFor(milliseconds(1));
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ((*reply)->to(), 1u);
  auto& idle = Poll(feed.get(), 1, milliseconds(300));
  executor_.RunFor(milliseconds(301));
  ASSERT_TRUE(idle.has_value());
  EXPECT_EQ((*idle)->events_size(), 0);
}

TEST_F(FilterFeedTest, PollThatRequestsBitsIsAnsweredAtOnce) {
  auto feed = MakeFeed();
  GiveBits(feed.get(), 4);
  pb::PollRequest request;
  request.set_coordinator(1);
  request.set_start_code(kStartCode);
  request.set_wait_ns(1'000'000'000);
  request.add_wanted()->set_region_id(1);
  std::optional<pb::PollReply> reply;
  feed->Poll(
      request, [this] { return verified_until_; },
      [&reply](Result<pb::PollReply> r) { reply.emplace(std::move(*r)); });
  executor_.RunFor(milliseconds(2));
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->projections_size(), 1);
}

// A switch of the randomized tests.
TEST_F(FilterFeedTest, FaultNoCloseEventDropsNoOtherEvent) {
  auto feed = MakeFeed({.faults = {.no_close_event = true}});
  EXPECT_EQ(feed->Append(Opened(1)), 1u);
  EXPECT_EQ(feed->Append(Opened(2)), 2u);
  pb::Event closed = Opened(1);
  closed.set_kind(pb::Event::REGION_CLOSED);
  EXPECT_EQ(feed->Append(closed), 2u);
  auto& whole = Poll(feed.get(), 0, Duration(0), 1, 0);
  ASSERT_EQ((*whole)->events_size(), 1);
  EXPECT_EQ((*whole)->events(0).region_id(), 2u);
}

// Entries are news to a coordinator when a put waits for it, whichever thread answers.
TEST_F(FilterFeedTest, EventsOfEntriesWakeAParkedPollOnceAPutWaits) {
  for (const bool answer_inline : {false, true}) {
    for (const auto kind : {pb::Event::FLIPS, pb::Event::LAYER_ADDED, pb::Event::RANGE_WIDENED}) {
      auto feed = MakeFeed({.answer_inline = answer_inline});
      Poll(feed.get(), 0);
      auto& reply = Poll(feed.get(), 0, seconds(5));
      pb::Event news = Flips(1, 2);
      news.set_kind(kind);
      const uint64_t sequence = feed->Append(news);
      executor_.RunFor(milliseconds(2));
      EXPECT_FALSE(reply.has_value());
      auto& wait = Wait(feed.get(), sequence);
      EXPECT_EQ(reply.has_value(), answer_inline);
      executor_.RunFor(milliseconds(2));
      ASSERT_TRUE(reply.has_value());
      EXPECT_FALSE(wait.has_value());
      Poll(feed.get(), sequence, seconds(5));
      EXPECT_EQ(wait, Status::Ok());
    }
  }
}

TEST_F(FilterFeedTest, AWaitEndsAtItsDeadline) {
  auto feed = MakeFeed({.lease = seconds(60)});
  Poll(feed.get(), 0);
  auto& wait = Wait(feed.get(), feed->Append(Flips(1, 2)), seconds(2));
  executor_.RunFor(seconds(3));
  ASSERT_TRUE(wait.has_value());
  EXPECT_EQ(wait->code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(wait->message().find("may have been carried out"), std::string::npos)
      << wait->message();
}

// A coordinator that applies one reply after the other, on any thread.
class ThreadedFollower {
 public:
  ThreadedFollower(Executor* executor, FilterFeed* feed, uint64_t number)
      : executor_(executor), feed_(feed), number_(number) {}

  void Poll() {
    pb::PollRequest request;
    request.set_coordinator(number_);
    request.set_start_code(kStartCode);
    request.set_applied(applied_);
    request.set_wait_ns(1'000'000);
    feed_->Poll(
        request, [] { return Time::max() / 2; },
        [this](const Result<pb::PollReply>& reply) {
          if (!reply.ok()) return;
          if (!Apply(*reply)) ++gaps_;
          executor_->Post([this] { Poll(); });
        });
  }
  uint64_t gaps() const { return gaps_; }

 private:
  bool Apply(const pb::PollReply& reply) {
    uint64_t next = applied_;
    if (!reply.full() && reply.from() != applied_) return false;
    for (const pb::Event& event : reply.events()) {
      if (!reply.full() && event.sequence() != ++next) return false;
    }
    applied_ = reply.to();
    return reply.full() || next == reply.to();
  }

  Executor* const executor_;
  FilterFeed* const feed_;
  const uint64_t number_;
  uint64_t applied_ = 0;
  std::atomic<uint64_t> gaps_ = 0;
};

// Run under the thread sanitizer, too.
TEST(FilterFeedThreadsTest, AllCallsMayRunAtOnce) {
  constexpr int kWriters = 2, kWrites = 2000;
  ThreadExecutor executor(2);
  auto feed = std::make_shared<FilterFeed>(&executor, "rs1", kStartCode,
                                           FilterFeed::Options{.max_events = 100});
  ThreadedFollower followers[] = {{&executor, feed.get(), 1}, {&executor, feed.get(), 2}};
  for (ThreadedFollower& follower : followers) follower.Poll();
  Executor::Waiter all_acknowledged;
  std::atomic<int> acknowledged = 0;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; i < kWrites; ++i) {
        pb::Event flips;
        flips.set_kind(pb::Event::FLIPS);
        flips.set_region_id(static_cast<uint64_t>(writer));
        flips.add_flips(static_cast<uint64_t>(i));
        const uint64_t number = feed->Append(flips);
        feed->WaitAcknowledged(number, Time{}, Time::max(), [&](const Status& status) {
          EXPECT_EQ(status, Status::Ok());
          if (++acknowledged == kWriters * kWrites) all_acknowledged.WakeUp();
        });
        feed->TellTable(1, number);
        feed->Crowded();
        feed->Followers();
        EXPECT_GE(feed->Last(), feed->AcknowledgedFloor());
        EXPECT_LE(feed->EventCount(), 100u);
        feed->EventBytes();
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  executor.WaitFor(&all_acknowledged);
  feed->Abandon();
  executor.Stop();
  for (const ThreadedFollower& follower : followers) EXPECT_EQ(follower.gaps(), 0u);
}

}  // namespace
}  // namespace tamis
