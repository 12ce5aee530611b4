#include "tamis/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace tamis {
namespace {

constexpr size_t kNone = std::string_view::npos;

TEST(Utf8Test, CharactersOfEachLengthAreValid) {
  for (const char* text : {"", "a", "0123456789", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
                           "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
                           "\xf4\x8f\xbf\xbf", "S\xc3\xa3o Paulo \xe6\x97\xa5\xe6\x9c\xac"}) {
    EXPECT_EQ(FindInvalidUtf8(text), kNone) << text;
  }
  EXPECT_EQ(FindInvalidUtf8(std::string_view("a\0b", 3)), kNone);
}

TEST(Utf8Test, PositionOfInvalidBytesIsFound) {
  for (const char* text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf", "\xe6\x97",
        "\xe6\x97(", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff", "\xfe\xff"}) {
    EXPECT_EQ(FindInvalidUtf8(text), 0u) << text;
    for (size_t before = 1; before < 20; ++before) {
      EXPECT_EQ(FindInvalidUtf8(std::string(before, 'a') + text + "aaaaaaaa"), before);
    }
  }
}

}  // namespace
}  // namespace tamis
