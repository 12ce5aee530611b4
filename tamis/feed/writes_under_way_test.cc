#include "tamis/feed/writes_under_way.h"

#include <gtest/gtest.h>

#include <set>

namespace tamis {
namespace {

using Ticket = WritesUnderWay::Ticket;

constexpr size_t kValueBytes = 1024;
// The number of writes of one such value whose values are kept.
constexpr size_t kRoom = WritesUnderWay::kMaxBytes /
                         (kValueBytes + WritesUnderWay::kWriteBytes + WritesUnderWay::kEntryBytes);

std::vector<std::string> Large() { return {std::string(kValueBytes, 'v')}; }

std::multiset<std::string> Listed(const WritesUnderWay& writes) {
  std::multiset<std::string> firsts;
  writes.ForEach([&](const std::string& first) { firsts.insert(first); });
  return firsts;
}

TEST(WritesUnderWayTest, ValuesAreKeptUntilTheWriteLeaves) {
  WritesUnderWay writes;
  const Ticket two = writes.Enter({"a", "b"});
  const Ticket none = writes.Enter({});
  const Ticket one = writes.Enter({"b"});
  EXPECT_EQ(Listed(writes), (std::multiset<std::string>{"a", "b", "b"}));
  writes.Leave(two);
  writes.Leave(two);
  writes.Leave(none);
  writes.Leave(0);
  EXPECT_EQ(Listed(writes), (std::multiset<std::string>{"b"}));
  EXPECT_FALSE(writes.has_unlisted());
  writes.Leave(one);
  EXPECT_EQ(writes.size_bytes(), 0u);
}

TEST(WritesUnderWayTest, BeyondTheBoundWritesAreOnlyCounted) {
  WritesUnderWay writes;
  std::vector<Ticket> listed;
  for (size_t i = 0; i < kRoom; ++i) listed.push_back(writes.Enter(Large()));
  EXPECT_FALSE(writes.has_unlisted());
  std::vector<Ticket> unlisted;
  for (size_t i = 0; i < 3; ++i) unlisted.push_back(writes.Enter(Large()));
  EXPECT_TRUE(writes.has_unlisted());
  EXPECT_LE(writes.size_bytes(), WritesUnderWay::kMaxBytes);
  EXPECT_EQ(Listed(writes).size(), kRoom);
  writes.Leave(listed[0]);
  listed[0] = writes.Enter(Large());
  EXPECT_EQ(Listed(writes).size(), kRoom);
  for (const Ticket ticket : unlisted) {
    EXPECT_TRUE(writes.has_unlisted());
    writes.Leave(ticket);
  }
  EXPECT_FALSE(writes.has_unlisted());
  for (const Ticket ticket : listed) writes.Leave(ticket);
  EXPECT_EQ(writes.size_bytes(), 0u);
}

TEST(WritesUnderWayTest, WritesUpToTheMarkAreForgotten) {
  for (const size_t before : {size_t{2}, kRoom}) {  // the last ones have their values kept, or not
    WritesUnderWay writes;
    for (size_t i = 0; i < before; ++i) writes.Enter(Large());
    writes.Enter(Large());
    const Ticket leaves = writes.Enter(Large());
    writes.Mark();
    const Ticket after = writes.Enter(std::vector<std::string>(2 * kRoom, Large()[0]));
    EXPECT_TRUE(writes.has_unlisted());
    writes.Leave(leaves);
    writes.ForgetMarked();
    EXPECT_TRUE(writes.has_unlisted());
    EXPECT_EQ(writes.size_bytes(), 0u);
    writes.Leave(leaves);  // late
    EXPECT_TRUE(writes.has_unlisted());
    writes.Leave(after);
    EXPECT_FALSE(writes.has_unlisted());
    writes.ForgetMarked();
    EXPECT_FALSE(writes.has_unlisted());
  }
}

TEST(WritesUnderWayTest, AMarkReplacesTheOneBefore) {
  WritesUnderWay writes;
  for (size_t i = 0; i < kRoom + 2; ++i) writes.Enter(Large());
  writes.Mark();
  writes.Enter(Large());
  writes.Mark();
  writes.ForgetMarked();
  EXPECT_FALSE(writes.has_unlisted());
}

TEST(WritesUnderWayTest, WritesThatManyOthersHaveFollowedAreStuck) {
  for (const size_t stuck : {kRoom / 2 - 10, kRoom / 2 + 2, kRoom + 2}) {
    WritesUnderWay writes;
    for (size_t i = 0; i < stuck; ++i) writes.Enter(Large());
    for (size_t i = 0; i < 3000; ++i) {
      EXPECT_FALSE(writes.is_stuck());
      writes.Leave(writes.Enter({"v"}));
    }
    for (size_t i = 0; i < 2000; ++i) writes.Leave(writes.Enter({"v"}));
    EXPECT_EQ(writes.is_stuck(), stuck > kRoom / 2);
    writes.Mark();
    writes.ForgetMarked();
    EXPECT_FALSE(writes.is_stuck());
  }
}

TEST(WritesUnderWayTest, NewWritesThatTakeTheRoomAreNotStuck) {
  WritesUnderWay writes;
  for (size_t i = 0; i < 5000; ++i) writes.Leave(writes.Enter({"v"}));
  for (size_t i = 0; i < kRoom + 2; ++i) writes.Enter(Large());
  EXPECT_FALSE(writes.is_stuck());
}

}  // namespace
}  // namespace tamis
