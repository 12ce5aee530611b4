#include "tamis/filter/dynamic_count_filter.h"

#include <gtest/gtest.h>

#include "tamis/base/random.h"
#include "tamis/filter/testing/filters.h"

namespace tamis {
namespace {

TEST(DynamicCountFilterTest, CountersWidenAndNoneSticks) {
  auto filter = *DynamicCountFilter::Create({.capacity = 100, .fpr = 1e-4});
  const std::string fresh = filter.Serialize();
  for (uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(filter.Insert(Key(1, i)));
  EXPECT_EQ(filter.counter_bits(), 4u);
  for (uint32_t copies = 0; copies < 5000; ++copies) {
    ASSERT_EQ(filter.Copies(Key(2, 0)), copies);
    ASSERT_TRUE(filter.Insert(Key(2, 0)));
  }
  EXPECT_GE(filter.counter_bits(), 13u);
  for (uint32_t copies = 5000; copies > 0; --copies) {
    ASSERT_EQ(filter.Copies(Key(2, 0)), copies);
    ASSERT_TRUE(filter.Erase(Key(2, 0)));
  }
  EXPECT_FALSE(filter.MayContain(Key(2, 0)));
  // More erases than there are counters: it has looked, and narrowed.
  EXPECT_LT(filter.counter_bits(), 13u);
  for (uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(filter.MayContain(Key(1, i)));
  for (uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(filter.Erase(Key(1, i)));
  EXPECT_EQ(filter.Serialize(), fresh);
}

TEST(DynamicCountFilterTest, MergeAddsCountersOfDifferentWidths) {
  auto a = *DynamicCountFilter::Create({.capacity = 100, .fpr = 1e-4});
  auto b = a;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(a.Insert(Key(3, 0)));
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(b.Insert(Key(3, 0)));
  ASSERT_TRUE(b.Insert(Key(3, 1)));
  ASSERT_TRUE(a.Merge(b).ok());
  EXPECT_EQ(a.Copies(Key(3, 0)), 310u);
  EXPECT_EQ(a.Copies(Key(3, 1)), 1u);
  ASSERT_TRUE(a.Merge(a).ok());
  EXPECT_EQ(a.Copies(Key(3, 0)), 620u);
  EXPECT_EQ(a.Count(), 622u);
}

TEST(DynamicCountFilterTest, ACounterThatWouldOverflowRefusesAndChangesNothing) {
  auto filter = *DynamicCountFilter::Create({.capacity = 1, .fpr = 0.01});
  ASSERT_TRUE(filter.Insert(Key(4, 0)));
  while (filter.Merge(filter).ok()) {
  }
  EXPECT_EQ(filter.counter_bits(), 32u);
  const std::string before = filter.Serialize();
  EXPECT_EQ(filter.Merge(filter).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(filter.Serialize(), before);
  EXPECT_TRUE(filter.MayContain(Key(4, 0)));
}

TEST(DynamicCountFilterTest, TheStoredBytesAreThoseOfVersion1) {
  auto filter = *DynamicCountFilter::Create({.capacity = 20, .fpr = 0.01, .seed = 0x5eed});
  for (uint64_t i = 0; i < 60; ++i) ASSERT_TRUE(filter.Insert(Mix(i % 23)));
  for (uint64_t i = 0; i < 30; ++i) ASSERT_TRUE(filter.Insert(Mix(0)));
  ASSERT_GT(filter.counter_bits(), 4u);
  EXPECT_EQ(Hash(filter.Serialize(), 0), 7031620647823555901u) << "bytes changed";
}

}  // namespace
}  // namespace tamis
