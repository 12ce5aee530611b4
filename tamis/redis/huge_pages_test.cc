#include "tamis/redis/huge_pages.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace tamis::redis {
namespace {

constexpr size_t kPage = HugePages::kSize;

// A place at this distance from the begin of a huge page. Its contents do not matter.
char* At(size_t offset) {
  static std::vector<char> space(64 * kPage);
  void* first = space.data();
  size_t size = space.size();
  return static_cast<char*>(std::align(kPage, kPage, first, size)) + offset;
}

std::vector<char*> Advance(HugePages& pages, size_t count) {
  std::vector<char*> joined;
  pages.Advance(count, [&](char* page) { joined.push_back(page); });
  return joined;
}

TEST(HugePages, AdvanceJoinsWholePagesInTurn) {
  HugePages pages;
  EXPECT_TRUE(Advance(pages, 3).empty());
  pages.Add(At(100), 3 * kPage);         // two whole ones
  pages.Add(At(10 * kPage), kPage);      // one
  pages.Add(At(20 * kPage), kPage - 1);  // none
  pages.Add(At(30 * kPage + 1), kPage);  // none
  EXPECT_EQ(Advance(pages, 2), (std::vector{At(kPage), At(2 * kPage)}));
  EXPECT_EQ(Advance(pages, 3), (std::vector{At(10 * kPage), At(kPage), At(2 * kPage)}));
}

TEST(HugePages, FreedMemoryIsNotJoined) {
  HugePages pages;
  pages.Add(At(0), 4 * kPage);
  pages.Add(At(8 * kPage), 2 * kPage);
  EXPECT_EQ(Advance(pages, 2), (std::vector{At(0), At(kPage)}));
  pages.Remove(At(0));
  pages.Remove(At(5 * kPage));  // was never there
  EXPECT_EQ(Advance(pages, 3), (std::vector{At(8 * kPage), At(9 * kPage), At(8 * kPage)}));
  // Another one, of another size, where it was.
  pages.Add(At(0), kPage);
  EXPECT_EQ(Advance(pages, 3), (std::vector{At(9 * kPage), At(0), At(8 * kPage)}));
  pages.Remove(At(8 * kPage));
  pages.Remove(At(0));
  EXPECT_TRUE(Advance(pages, 1).empty());
}

}  // namespace
}  // namespace tamis::redis
