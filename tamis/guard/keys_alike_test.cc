#include "tamis/guard/keys_alike.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

namespace tamis {
namespace {

using testing::HasSubstr;

std::string FaultOf(std::initializer_list<std::string_view> keys) {
  KeysAlike alike;
  for (const std::string_view key : keys) alike.Add(key);
  EXPECT_EQ(alike.count(), keys.size());
  EXPECT_EQ(alike.first(), *keys.begin());
  EXPECT_EQ(alike.last(), *(keys.end() - 1));
  return alike.Fault();
}

TEST(KeysAlikeTest, HeadAndFootOfManyKeysDoNotCount) {
  EXPECT_THAT(FaultOf({"head", "<1>", "<22>", "<3>", "<44>", "<5>", "<61>", "<7>", "foot"}),
              HasSubstr("every key has"));
}

TEST(KeysAlikeTest, HeadAndFootOfFewKeysCount) {
  EXPECT_EQ(FaultOf({"x1", "<1>", "<22>", "<3>", "y2"}), "");
  EXPECT_THAT(FaultOf({"<1>", "<22>", "<3>", "<44>"}), HasSubstr("every key has"));
}

TEST(KeysAlikeTest, DifferentKeysShareNothing) {
  EXPECT_EQ(FaultOf({"one"}), "");
  EXPECT_EQ(FaultOf({"one", "other", "third", "more"}), "");
}

}  // namespace
}  // namespace tamis
