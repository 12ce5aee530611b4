#include "tamis/guard/redis_address.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

RedisAddress Parsed(std::string_view url) {
  auto address = RedisAddress::Parse(url);
  EXPECT_TRUE(address.ok()) << url;
  return address.ok() ? *address : RedisAddress();
}

TEST(RedisAddressTest, NetworkHasDefaults) {
  const RedisAddress address = Parsed("redis://example.org");
  EXPECT_EQ(address.host, "example.org");
  EXPECT_EQ(address.port, 6379);
  EXPECT_EQ(address.database, 0);
  EXPECT_EQ(Parsed("redis://example.org/").database, 0);
}

TEST(RedisAddressTest, NetworkHasAllParts) {
  const RedisAddress right = Parsed("valkey://me:p%40ss%2f@[::1]:7000/3");
  EXPECT_EQ(right.user, "me");
  EXPECT_EQ(right.password, "p@ss/");
  EXPECT_EQ(right.host, "::1");
  EXPECT_EQ(right.port, 7000);
  EXPECT_EQ(right.database, 3);
  EXPECT_EQ(right.ToString(), "redis://[::1]:7000");
  EXPECT_EQ(Parsed("redis://:secret@h").password, "secret");
  EXPECT_EQ(Parsed("redis://:secret@h").user, "");
}

TEST(RedisAddressTest, SocketHasAPath) {
  const RedisAddress address = Parsed("unix://:x@/run/redis%20server.sock?db=5");
  EXPECT_EQ(address.socket, "/run/redis server.sock");
  EXPECT_EQ(address.password, "x");
  EXPECT_EQ(address.database, 5);
  EXPECT_EQ(address.ToString(), "unix:///run/redis server.sock");
}

TEST(RedisAddressTest, ErrorForAnUnreadableAddressHidesThePassword) {
  for (const char* url : {"",
                          "example.org",
                          "http://h",
                          "redis://",
                          "redis://:5",
                          "redis://h:",
                          "redis://h:x",
                          "redis://h:65536",
                          "redis://h:-1",
                          "redis://h/x",
                          "redis://h/-1",
                          "redis://[::1",
                          "unix://",
                          "unix://relative",
                          "unix:///s?x=1",
                          "unix:///s?db=",
                          "redis://:sesame%2@h",
                          "rediss://h",
                          "redis://:sesame%zz@h",
                          "redis://[::1]7000"}) {
    const auto address = RedisAddress::Parse(url);
    ASSERT_FALSE(address.ok()) << url;
    EXPECT_EQ(address.status().message().find("sesame"), std::string::npos);
  }
}

}  // namespace
}  // namespace tamis
