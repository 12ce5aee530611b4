#include "tamis/base/percent_encoding.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

TEST(DecodePercentsTest, BytesStandForThemselvesOrAsTwoDigits) {
  EXPECT_EQ(DecodePercents(""), "");
  EXPECT_EQ(DecodePercents("a+b/c"), "a+b/c");
  EXPECT_EQ(DecodePercents("%26%2f%2F%25"), "&//%");
  EXPECT_EQ(DecodePercents("a%00b"), std::string("a\0b", 3));
}

TEST(DecodePercentsTest, InvalidHexDigitIsRefused) {
  for (const char* text : {"%", "%4", "a%", "%4g", "%g4", "%+4", "%-1", "% 4"}) {
    EXPECT_EQ(DecodePercents(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tamis
