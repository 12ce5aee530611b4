// When memory runs out in the midst of an operation, the filter is as it was.
#include <gtest/gtest.h>

#include <new>

#include "tamis/base/testing/failing_allocations.h"
#include "tamis/filter/testing/filters.h"

namespace tamis {
namespace {

template <class F>
class AllocationFailureTest : public testing::Test {
 protected:
  // Runs change(filter) on copies of the filter of these bytes with the first, the second, ...
  // allocation failing, until it comes to an end. Returns how often it failed.
  template <class Change>
  static int FailEach(const std::string& bytes, OpenMode mode, Change&& change) {
    for (int failures = 0;; ++failures) {
      F filter = *F::Deserialize(bytes, mode);
      bool failed = false;
      FailingAllocations::Begin(static_cast<uint64_t>(failures), /*only_one=*/false);
      try {
        change(&filter);
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      FailingAllocations::End();
      if (!failed) return failures;
      EXPECT_TRUE(filter.Serialize() == bytes) << "allocation " << failures << " failed";
    }
  }
};

TYPED_TEST_SUITE(AllocationFailureTest, AllFilters);

TYPED_TEST(AllocationFailureTest, LeavesTheFilterAsItWas) {
  using F = TypeParam;
  int failures = 0;
  F filter = *F::Create({.capacity = 12, .fpr = 0.01, .seed = 1});
  // Over capacity, and one key so often that counters widen: whatever grows does so.
  for (uint64_t i = 0; i < 40; ++i) {
    const std::string bytes = filter.Serialize();
    const uint64_t hash = Key(1, i % 2 == 0 ? 0 : i);
    const std::vector<uint64_t> hashes = {Key(2, i), Key(1, 0), Key(1, i / 2), Key(2, i)};
    const std::span<const uint64_t> span(hashes);
    for (const OpenMode mode : {OpenMode::kCopy, OpenMode::kBorrow}) {
      const auto fail_each = [&](auto&& change) {
        failures += this->FailEach(bytes, mode, change);
      };
      fail_each([&](F* changed) { (void)changed->Insert(hash); });
      fail_each([&](F* changed) { (void)changed->Merge(filter); });
      fail_each([&](F* changed) { (void)changed->Merge(*changed); });
      if constexpr (requires(F * f) { f->Insert(span); }) {
        fail_each([&](F* changed) { (void)changed->Insert(span); });
      }
      if constexpr (requires(F * f) { f->Erase(hash); }) {
        fail_each([&](F* changed) { (void)changed->Erase(Key(1, 0)); });
      }
      if constexpr (requires(F * f) { f->Erase(span); }) {
        fail_each([&](F* changed) { (void)changed->Erase(span); });
      }
      if constexpr (requires(F * f) { f->Grow(); }) {
        fail_each([&](F* changed) { (void)changed->Grow(); });
      }
      fail_each([&](F* changed) { changed->Clear(); });
    }
    (void)filter.Insert(hash);
  }
  EXPECT_GT(failures, 0);
}

}  // namespace
}  // namespace tamis
