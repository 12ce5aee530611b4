#include "tamis/lsm/memtable_filters.h"

#include <gtest/gtest.h>

#include <thread>

#include "tamis/base/hash.h"

namespace tamis::lsm {
namespace {

uint64_t Key(uint64_t stream, uint64_t i) { return Mix(Mix(stream) + i) & ~uint64_t{0xffff}; }

TEST(MemtableFilterTest, FindsAllKeysAndFewOthersForAnyExpectedSize) {
  constexpr uint64_t kKeys = 100'000;
  for (const uint64_t expected : {kKeys, kKeys / 50, kKeys * 10}) {
    MemtableFilter filter(expected);
    for (uint64_t i = 0; i < kKeys; ++i) {
      if (i % 3 == 0)
        filter.Add(Key(1, i));
      else
        filter.AddAlone(Key(1, i));
    }
    for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(filter.MayContain(Key(1, i)));
    uint64_t found = 0;
    for (uint64_t i = 0; i < kKeys; ++i) found += filter.MayContain(Key(2, i));
    EXPECT_LT(found, 0.008 * kKeys) << expected;
    EXPECT_NEAR(static_cast<double>(filter.keys()), kKeys, 0.1 * kKeys);
  }
}

TEST(MemtableFilterTest, KeyAddedByAnyThreadIsFoundAtOnce) {
  MemtableFilter filter(100);
  std::atomic<uint64_t> added{0};
  std::atomic<uint64_t> lost{0};
  constexpr uint64_t kKeys = 20'000;
  std::thread reader([&] {
    while (added.load() < kKeys) {
      const uint64_t until = added.load();
      for (uint64_t i = until > 500 ? until - 500 : 0; i < until; ++i) {
        for (uint64_t writer = 0; writer < 2; ++writer) {
          lost += !filter.MayContain(Key(writer, i));
        }
      }
    }
  });
  for (uint64_t i = 0; i < kKeys; ++i) {
    std::thread other;
    if (i % 4000 == 0) {
      other = std::thread([&, i] { filter.Add(Key(1, i)); });
      other.join();
    } else {
      filter.Add(Key(1, i));
    }
    filter.AddAlone(Key(0, i));
    added.store(i + 1);
  }
  reader.join();
  EXPECT_EQ(lost, 0u);
}

TEST(MemtableFiltersTest, AMemtableIsAskedUntilItsEnd) {
  GracePeriod grace;
  MemtableFilters filters(&grace);
  const auto first = filters.Begin(1 << 15);
  const auto second = filters.Begin(1 << 15);
  first->Add(Key(1, 1));
  second->Add(Key(1, 2));
  {
    const GracePeriod::Guard guard = grace.Enter();
    EXPECT_TRUE(filters.MayContain(Key(1, 1)));
    EXPECT_TRUE(filters.MayContain(Key(1, 2)));
    filters.End(first.get());
    filters.End(first.get());
    EXPECT_FALSE(filters.MayContain(Key(1, 1)));
    EXPECT_TRUE(filters.MayContain(Key(1, 2)));
  }
  std::weak_ptr<MemtableFilter> gone = second;
  grace.Collect();
  EXPECT_FALSE(gone.expired());
}

TEST(MemtableFiltersTest, SizeFollowsTheKeysOfEarlierMemtables) {
  GracePeriod grace;
  MemtableFilters filters(&grace);
  for (int i = 0; i < 5; ++i) {
    const auto filter = filters.Begin(1 << 15);
    for (uint64_t k = 0; k < 200'000; ++k) filter->Add(Key(1, k));
    filters.End(filter.get());
  }
  EXPECT_NEAR(static_cast<double>(filters.Begin(1 << 15)->size_bytes()), 250'000 * 2, 30'000);
}

}  // namespace
}  // namespace tamis::lsm
