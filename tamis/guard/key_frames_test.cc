#include "tamis/guard/key_frames.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace tamis {
namespace {

std::optional<KeyFrames::Frame> FrameOf(std::initializer_list<std::string_view> keys) {
  KeyFrames frames;
  for (const std::string_view key : keys) frames.Add(key);
  return frames.FrameOfAll();
}

TEST(KeyFramesTest, FrameIsOneThatAllKeysHaveOrAllButAHead) {
  EXPECT_EQ(FrameOf({}), std::nullopt);
  EXPECT_EQ(FrameOf({"\"a\""}), KeyFrames::kQuotes);
  EXPECT_EQ(FrameOf({"a"}), std::nullopt);
  EXPECT_EQ(FrameOf({"head", "{1}"}), std::nullopt) << "a head of one key is not known as one";
  EXPECT_EQ(FrameOf({"head", "{1}", "{2}"}), KeyFrames::kBrackets);
  EXPECT_EQ(FrameOf({"{1}", "{2}", "3"}), std::nullopt);
  EXPECT_EQ(FrameOf({"1,", "2,"}), KeyFrames::kSeparator);
}

TEST(KeyFramesTest, BracketsAndSeparatorsDoNotAlterSingleKeys) {
  EXPECT_EQ(KeyFrames::AlteringFrameOf(" a"), KeyFrames::kBlankBefore);
  EXPECT_EQ(KeyFrames::AlteringFrameOf("a\t"), KeyFrames::kBlankBehind);
  EXPECT_EQ(KeyFrames::AlteringFrameOf("a\r"), KeyFrames::kReturn);
  EXPECT_EQ(KeyFrames::AlteringFrameOf("'a'"), KeyFrames::kQuotes);
  EXPECT_EQ(KeyFrames::AlteringFrameOf("\""), std::nullopt) << "one quote is no pair";
  EXPECT_EQ(KeyFrames::AlteringFrameOf("{a}"), std::nullopt);
  EXPECT_EQ(KeyFrames::AlteringFrameOf("a,"), std::nullopt);
}

}  // namespace
}  // namespace tamis
