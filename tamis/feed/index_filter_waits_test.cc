// The event that a put of an IndexFilter waits for.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tamis/feed/index_filter.h"
#include "tamis/feed/testing/index_filter_test_case.h"

namespace tamis {
namespace {

class WaitForTest : public IndexFilterTest {
 protected:
  // The coordinator has applied everything so far, and has a lease.
  void Applied() {
    pb::PollRequest poll;
    poll.set_coordinator(7);
    poll.set_start_code(1);
    poll.set_applied(feed_->Last());
    feed_->Poll(
        poll, [this] { return executor_.Now() + std::chrono::hours(1); },
        [](const Result<pb::PollReply>&) {});
  }
  uint64_t Add(const EntryKey& entry) { return filter_->Add(std::span(&entry, 1)); }
  void Remove(const EntryKey& entry) { filter_->Remove(std::span(&entry, 1)); }
  uint64_t WaitFor(const EntryKey& entry) { return filter_->WaitFor(std::span(&entry, 1)); }

  std::unique_ptr<IndexFilter> filter_ = Filled(3);
};

TEST_F(WaitForTest, WaitsForNothingOnceAllIsApplied) {
  Applied();
  EXPECT_EQ(WaitFor(Entry(1)), 0u);
}

TEST_F(WaitForTest, ValueInThePublishedRangeWaitsForNoLaterWidening) {
  Applied();
  const std::vector<std::string> behind = {"w"};
  const EntryKey wide = MakeEntryKey(Index(), behind);
  const uint64_t widened = Add(wide);
  EXPECT_EQ(WaitFor(wide), widened);
  EXPECT_EQ(WaitFor(Entry(1)), 0u);
}

TEST_F(WaitForTest, WaitsForFlipsOfOtherWrites) {
  Applied();
  const uint64_t flipped = Add(Entry(9));
  Add(Entry(9));  // flips nothing
  EXPECT_GE(WaitFor(Entry(9)), flipped);
  Applied();
  EXPECT_EQ(WaitFor(Entry(9)), 0u);
}

// The bit was set, which is applied, and cleared, and is set again, which is not.
TEST_F(WaitForTest, WaitsForTheLastFlipOfABit) {
  Applied();
  Add(Entry(9));
  Applied();
  Remove(Entry(9));
  const uint64_t again = Add(Entry(9));
  EXPECT_GE(WaitFor(Entry(9)), again);
}

TEST_F(WaitForTest, WaitsForThePublicationThatReplacedAGeneration) {
  Applied();
  filter_->BeginGeneration(false);
  const EntryKey entry = Entry(1);
  filter_->CountExisting(std::span(&entry, 1));
  filter_->Publish();
  EXPECT_EQ(WaitFor(entry), feed_->Last());
  Applied();
  EXPECT_EQ(WaitFor(entry), 0u);
}

// All bits of the value are set by others, by chance, and only its range is news.
TEST_F(WaitForTest, WaitsForTheWideningOfTheRange) {
  Applied();
  EntryKey entry = Entry(1);
  entry.first = "zzz";
  const uint64_t widened = Add(entry);
  EXPECT_GT(widened, 0u);
  EXPECT_EQ(WaitFor(entry), widened);
  Applied();
  EXPECT_EQ(WaitFor(entry), 0u);
}

// A range that the old generation had says nothing of the new one.
TEST_F(WaitForTest, WaitsForAWideningWithinTheRangeOfTheOldGeneration) {
  EntryKey far = Entry(1);
  far.first = "zzz";
  Add(far);
  Applied();
  EXPECT_EQ(WaitFor(far), 0u);
  Remove(far);
  filter_->BeginGeneration(false);
  const EntryKey near = Entry(1);
  filter_->CountExisting(std::span(&near, 1));
  filter_->Publish();
  Applied();
  EXPECT_EQ(WaitFor(near), 0u);
  const uint64_t widened = Add(far);
  EXPECT_GT(widened, 0u);
  EXPECT_EQ(WaitFor(far), widened);
}

// A later write has removed the value, and the new generation lacks it.
TEST_F(WaitForTest, ValueThatIsGoneAgainWaitsForNothing) {
  EntryKey far = Entry(50);
  far.first = "zzz";
  Add(far);
  Applied();
  Remove(far);
  filter_->BeginGeneration(false);
  const EntryKey near = Entry(1);
  filter_->CountExisting(std::span(&near, 1));
  filter_->Publish();
  Applied();
  EXPECT_EQ(WaitFor(far), 0u);
}

}  // namespace
}  // namespace tamis
