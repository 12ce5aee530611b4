#include "tamis/routing/projection_parts.h"

#include <gtest/gtest.h>

#include "tamis/base/random.h"
#include "tamis/base/testing/sim_executor.h"
#include "tamis/feed/filter_feed.h"
#include "tamis/feed/index_filter.h"
#include "tamis/routing/global_index.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SplitGeometry kGeometry{.slices = 2, .slice_positions = 96};  // 3 words a layer
constexpr uint32_t kMaxLayers = 8;
constexpr uint64_t kSeeds = 10;

pb::Projection Part(uint32_t layer, uint64_t word, std::vector<size_t> words,
                    uint32_t layer_count) {
  pb::Projection part;
  part.set_generation(1);
  part.mutable_geometry()->set_slices(kGeometry.slices);
  part.mutable_geometry()->set_slice_positions(kGeometry.slice_positions);
  part.set_first_layer(layer);
  part.set_first_word(word);
  part.set_layer_count(layer_count);
  for (const size_t n : words) part.add_layers(std::string(n * 8, '\0'));
  return part;
}

TEST(ProjectionPartsTest, PartsThatFollowOnEachOtherAreTaken) {
  ProjectionParts parts(kGeometry, 1, kMaxLayers);
  EXPECT_TRUE(parts.Add(Part(0, 0, {2}, 2)));
  EXPECT_TRUE(parts.Add(Part(0, 2, {1, 1}, 2)));
  EXPECT_FALSE(parts.complete());
  pb::ColumnId next;
  parts.Describe(&next);
  EXPECT_EQ(next.first_layer(), 1u);
  EXPECT_EQ(next.first_word(), 1u);
  EXPECT_TRUE(parts.Add(Part(1, 1, {2}, 2)));
  EXPECT_TRUE(parts.complete());
  EXPECT_EQ(parts.layers().size(), 2u);
}

TEST(ProjectionPartsTest, PartsThatDoNotFitAreRefused) {
  ProjectionParts parts(kGeometry, 1, kMaxLayers);
  EXPECT_FALSE(parts.Add(Part(0, 1, {2}, 1))) << "a gap";
  EXPECT_FALSE(parts.Add(Part(0, 0, {}, 1)));
  EXPECT_FALSE(parts.Add(Part(0, 0, {0}, 1)));
  EXPECT_FALSE(parts.Add(Part(0, 0, {4}, 1))) << "longer than its layer";
  EXPECT_FALSE(parts.Add(Part(0, 0, {2, 3}, 2))) << "a gap inside";
  EXPECT_FALSE(parts.Add(Part(0, 0, {3, 3}, 1))) << "more layers than it says";
  EXPECT_FALSE(parts.Add(Part(0, 0, {3}, kMaxLayers + 1)));
  EXPECT_FALSE(parts.Add(Part(0, 0, {2}, 0))) << "it ends the layers, but not the last one";
  pb::Projection other = Part(0, 0, {3}, 1);
  other.set_generation(2);
  EXPECT_FALSE(parts.Add(other));
  other = Part(0, 0, {3}, 1);
  other.mutable_geometry()->set_slice_positions(95);
  EXPECT_FALSE(parts.Add(other));
  other = Part(0, 0, {3}, 1);
  other.mutable_layers(0)->push_back('x');
  EXPECT_FALSE(parts.Add(other));
  EXPECT_TRUE(parts.Add(Part(0, 0, {2}, 1))) << "nothing of it was taken";
  EXPECT_FALSE(parts.Add(Part(0, 0, {2}, 1))) << "doubled";
}

TEST(ProjectionPartsTest, FlipOfAnArrivedPartIsApplied) {
  ProjectionParts parts(kGeometry, 1, kMaxLayers);
  ASSERT_TRUE(parts.Add(Part(0, 0, {1}, 1)));
  parts.Flip(0, 63, true);
  parts.Flip(0, 64, true);  // in the part that is to come
  parts.Flip(1, 0, true);
  ASSERT_TRUE(parts.Add(Part(0, 1, {2}, 1)));
  EXPECT_EQ(parts.layers()[0], (std::vector<uint64_t>{uint64_t{1} << 63, 0, 0}));
  parts.Flip(0, 63, false);
  EXPECT_EQ(parts.layers()[0][0], 0u);
}

// A region server and a coordinator, whose polls are answered in two steps, with bits in small
// parts, while values come and go. Returns how often the coordinator, with a live lease, left out a
// value that is counted and whose events it had acknowledged.
struct Missed {
  int values = 0;
  int checks = 0;
  int parts = 0;
};
Missed MissedWith(uint64_t seed, Faults faults) {
  SimExecutor executor(seed, milliseconds(1));
  Random random(seed);
  auto feed = std::make_shared<FilterFeed>(
      &executor, "rs1", 7,
      FilterFeed::Options{
          .reply_bytes = seed % 2 == 0 ? 250u : 800u, .projection_bytes = 16, .faults = faults});
  const IndexSpec index{.id = 3, .name = "n", .columns = {0}, .fpr = 0.3, .expected_values = 50};
  IndexFilter filter(feed.get(), index, 1, 1, faults);
  feed->SetProjectionSource([&filter](const pb::ColumnId& from, size_t max_bytes) {
    return filter.Project(from, max_bytes);
  });
  pb::Event opened;
  opened.set_kind(pb::Event::REGION_OPENED);
  opened.set_region_id(1);
  opened.set_epoch(1);
  opened.set_table_id(1);
  feed->Append(opened);
  GlobalIndex global({.faults = faults});

  const auto entry = [](uint64_t value) {
    return EntryKey{.hashes = {Mix(value)}, .first = std::to_string(value)};
  };
  struct Value {
    uint64_t put;  // number of the put
    bool acknowledged = false;
  };
  std::map<uint64_t, Value> values;  // that are counted
  uint64_t puts = 0;
  Missed missed;
  for (int i = 0; i < 3000; ++i) {
    if (random.OneIn(100)) {  // counted again, while the bits of the former generation arrive
      filter.BeginGeneration(false);
      for (const auto& [value, state] : values) {
        filter.CountExisting(std::vector<EntryKey>{entry(value)});
      }
      filter.Publish();
    } else if (i == 0) {
      filter.BeginGeneration(false);
      filter.Publish();
    }
    for (uint64_t n = random.Uniform(3); n > 0; --n) {
      const uint64_t value = random.Uniform(200);
      const std::vector<EntryKey> entries{entry(value)};
      if (values.erase(value) > 0) {
        filter.Remove(entries);
        continue;
      }
      filter.Add(entries);
      values[value] = {.put = ++puts};
      feed->WaitAcknowledged(filter.WaitFor(entries), Time{}, executor.Now() + seconds(100),
                             [&values, value, put = puts](const Status& status) {
                               auto found = values.find(value);
                               if (status.ok() && found != values.end() && found->second.put == put)
                                 found->second.acknowledged = true;
                             });
    }
    if (random.OneIn(4)) {
      const Time sent = executor.Now();
      const pb::PollRequest request = global.NextPoll("rs1", Duration(0));
      const bool lost = random.OneIn(6);
      feed->Poll(
          request, [] { return Time::max() / 2; },
          [&, sent, lost](Result<pb::PollReply> reply) {
            for (const auto& projection : reply->projections()) {
              missed.parts += projection.first_word() > 0 || projection.first_layer() > 0;
            }
            if (!lost) global.Apply("rs1", *reply, sent, executor.Now());
          });
    }
    executor.RunFor(random.OneIn(150) ? seconds(2) : Duration(random.Uniform(1'000'000)));
    for (const auto& [value, state] : values) {
      if (!state.acknowledged || !random.OneIn(8)) continue;
      ++missed.checks;
      const RoutingTerm term{.kind = RoutingTerm::Kind::kValue,
                             .index_id = index.id,
                             .hash = Mix(value),
                             .first = std::to_string(value)};
      const auto route = global.Find(1, KeyRanges::All(), term, executor.Now());
      missed.values += !route.excluded.ranges().empty();
    }
  }
  executor.Clear();
  return missed;
}

TEST(ProjectionPartsTest, NoAcknowledgedValueIsMissedWhileThePartsArrive) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Missed missed = MissedWith(seed, {});
    EXPECT_EQ(missed.values, 0) << "seed " << seed;
    EXPECT_GT(missed.checks, 5000) << "seed " << seed;
    EXPECT_GT(missed.parts, 20) << "seed " << seed;
  }
}

TEST(ProjectionPartsTest, AValueIsMissedWithoutTheReplayOfFlips) {
  int values = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    values += MissedWith(seed, {.parts_without_replay = true}).values;
  }
  std::printf("%d times\n", values);
  EXPECT_GT(values, 0);
}

TEST(ProjectionPartsTest, AValueIsMissedWhenAReplyThatIsCutGrantsALease) {
  int values = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    values += MissedWith(seed, {.lease_for_cut_reply = true}).values;
  }
  std::printf("%d times\n", values);
  EXPECT_GT(values, 0);
}

}  // namespace
}  // namespace tamis
