#include "tamis/guard/shown_key.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

TEST(ShownKeyTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(ShownKey("a\x1b\x7f\r\n\t"), "\"a\\x1b\\x7f\\r\\n\\t\"");
  EXPECT_EQ(ShownKey("a\xc2\x9b\xe2\x80\xae"), "\"a\\xc2\\x9b\\xe2\\x80\\xae\"");
  EXPECT_EQ(ShownKey("S\xc3\xa3o"), "\"S\xc3\xa3o\"");
  EXPECT_EQ(ShownKey("\xe3o"), "\"\\xe3o\"") << "not UTF-8";
}

}  // namespace
}  // namespace tamis
