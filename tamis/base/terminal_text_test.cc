#include "tamis/base/terminal_text.h"

#include <gtest/gtest.h>

#include <string>

namespace tamis {
namespace {

TEST(TerminalTextTest, ControlCharactersAreReplaced) {
  for (const char* control :
       {"\x01", "\x07", "\b", "\r", "\x1b", "\x1f", "\x7f", "\xc2\x80", "\xc2\x9b", "\xc2\x9f",
        "\xe2\x80\xaa", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9"}) {
    EXPECT_TRUE(IsTerminalControl(control));
    EXPECT_EQ(TerminalText("a" + std::string(control) + "b"), "a?b");
  }
  EXPECT_EQ(TerminalText(std::string("a\0b", 3)), "a?b");
  EXPECT_EQ(TerminalText("a\x80\x9f\xc2"), "a??\xc2") << "not UTF-8";
}

TEST(TerminalTextTest, OtherTextIsKept) {
  for (const char* text :
       {"", "a\tb\n", "\xc2\xa0", "\xc3\x9b", "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\xa5",
        "\xe2\x81\xaa", "\xe1\x80\xaa", "\xe6\x97\xa5\xe6\x9c\xac", "\xf0\x9f\x90\x9f", "\xff"}) {
    EXPECT_EQ(TerminalText(text), text);
  }
}

}  // namespace
}  // namespace tamis
