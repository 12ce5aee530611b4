#include "tamis/lsm/grace_period.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace tamis::lsm {
namespace {

struct Thing {
  static constexpr uint64_t kAlive = 0x5afe;
  ~Thing() { alive.store(0); }
  std::atomic<uint64_t> alive{kAlive};
};

// Readers with slots of their own and some that share one, since others keep theirs; some end while
// others go on.
TEST(GracePeriodTest, ReadersNeverSeeADeletedObject) {
  GracePeriod grace;
  std::vector<Thing> things(200);
  std::atomic<Thing*> current{&things[0]};
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> dead{0};
  std::atomic<uint32_t> begun{0};
  std::atomic<uint32_t> shared{0};
  std::vector<std::thread> threads;
  const auto start = [&](uint32_t count, auto&& body) {
    for (uint32_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        shared += GracePeriod::Mine() == GracePeriod::kShared;
        begun.fetch_add(1);
        begun.notify_all();
        body(i);
      });
    }
    for (uint32_t n = begun; n < threads.size(); n = begun) begun.wait(n);
  };
  const auto read = [&](uint64_t times) {
    for (uint64_t i = 0; i < times || (times == 0 && !ends); ++i) {
      const GracePeriod::Guard guard = grace.Enter();
      const Thing* const thing = current.load();
      const GracePeriod::Guard again = grace.Enter();
      if (i % 4 == 0) std::this_thread::yield();  // to who may take it for free
      dead += thing->alive.load() != Thing::kAlive;
    }
  };
  start(3, [&](uint32_t i) { read(i * 50); });
  start(GracePeriod::kSlots, [&](uint32_t) { ends.wait(false); });
  start(2, [&](uint32_t) { read(0); });
  EXPECT_GE(shared, 2u);
  for (size_t i = 1; i < things.size(); ++i) {
    if (i % 20 == 0) std::thread(read, 1).join();
    Thing* const old = current.exchange(&things[i]);
    ASSERT_TRUE(grace.Wait());
    old->alive = 0;
    std::this_thread::yield();
  }
  ends = true;
  ends.notify_all();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(dead, 0u);
}

TEST(GracePeriodTest, EachThreadHasASlotUntilAllAreTaken) {
  std::vector<uint32_t> slots(GracePeriod::kSlots + 5);
  std::vector<std::thread> threads;
  std::atomic<uint32_t> ready{0};
  for (uint32_t& slot : slots) {
    threads.emplace_back([&] {
      slot = GracePeriod::Mine();
      ready.fetch_add(1);
      while (ready < slots.size()) std::this_thread::yield();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::ranges::sort(slots);
  const auto own = std::ranges::upper_bound(slots, GracePeriod::kShared);
  EXPECT_TRUE(std::ranges::adjacent_find(own, slots.end()) == slots.end());
  EXPECT_GE(own - slots.begin(), 5);
}

TEST(GracePeriodTest, RetiredObjectLivesUntilItsReadersAreGone) {
  GracePeriod grace;
  auto thing = std::make_shared<const Thing>();
  const std::weak_ptr<const Thing> watched = thing;
  grace.Retire(std::move(thing));
  EXPECT_FALSE(watched.expired());
  grace.Collect();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace tamis::lsm
