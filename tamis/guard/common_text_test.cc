#include "tamis/guard/common_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tamis {
namespace {

CommonText Of(const std::vector<std::string>& keys) {
  CommonText common;
  for (const std::string& key : keys) common.Add(key);
  return common;
}

TEST(CommonTextTest, FrameIsTheTextAroundAllKeys) {
  EXPECT_EQ(Of({"id = 1", "id = 2"}).Frame(), "id = ");
  EXPECT_EQ(Of({"a;", "b;"}).Frame(), ";");
  EXPECT_EQ(Of({"a);", "ab);", "b);"}).Frame(), ");");
  EXPECT_EQ(Of({"id: 1", "id: 2"}).Frame(), "id: ");
  EXPECT_EQ(Of({"id = 1", "b"}).Frame(), "");
}

TEST(CommonTextTest, LettersThatKeysShareAreNoFrame) {
  EXPECT_EQ(Of({"user:1", "user:2"}).Frame(), "");
  EXPECT_EQ(Of({"1@a", "2@a"}).Frame(), "");
  EXPECT_EQ(Of({"1", "10", "100"}).Frame(), "");
}

TEST(CommonTextTest, BulletsSignsAndUnitsAreAFrame) {
  EXPECT_EQ(Of({"- 1", "- 2"}).Frame(), "- ");
  EXPECT_EQ(Of({"* a", "* b"}).Frame(), "* ");
  EXPECT_EQ(Of({"1 ms", "2 ms"}).Frame(), " ms");
  EXPECT_EQ(Of({"5%", "7%"}).Frame(), "%");
  EXPECT_EQ(Of({"#5", "#7"}).Frame(), "#");
  EXPECT_EQ(Of({"+5", "+7"}).Frame(), "+");
  EXPECT_EQ(Of({"0x1f", "0x1e"}).Frame(), "0x1");
  EXPECT_EQ(Of({"0X1f", "0X2f"}).Frame(), "0X");
  EXPECT_EQ(Of({"-5", "-7"}).Frame(), "");
}

TEST(CommonTextTest, TheEndOfBase64IsNoFrame) {
  EXPECT_EQ(Of({"YWJjZA==", "YmNkZQ=="}).Frame(), "");
  EXPECT_EQ(Of({"YWI=", "YmM="}).Frame(), "");
  EXPECT_EQ(Of({"YWJjZA=='", "YmNkZQ=='"}).Frame(), "=='");
  EXPECT_EQ(Of({"=YWI", "=abM"}).Frame(), "=");
}

TEST(CommonTextTest, OneKeySharesNothing) {
  EXPECT_EQ(Of({"id = 1"}).Frame(), "");
  EXPECT_EQ(Of({"a|b"}).Separator(), '\0');
  EXPECT_EQ(Of({}).Frame(), "");
}

TEST(CommonTextTest, SeparatorIsInEachKey) {
  EXPECT_EQ(Of({"a|1", "b|2"}).Separator(), '|');
  EXPECT_EQ(Of({"a,1", "b\t,2"}).Separator(), ',');
  EXPECT_EQ(Of({"a,1", "b|2"}).Separator(), '\0');
}

}  // namespace
}  // namespace tamis
