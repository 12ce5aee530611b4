#include "tamis/base/coding.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

TEST(CodingTest, EveryIntegerReadsBackAsWritten) {
  for (uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{127}, uint64_t{128}, uint64_t{1} << 32,
                         ~uint64_t{0}, ~uint64_t{0} - 1}) {
    std::string bytes;
    PutVarint(&bytes, value);
    PutFixed64(&bytes, value);
    PutBig64(&bytes, value);
    PutFixed32(&bytes, static_cast<uint32_t>(value));
    PutBig32(&bytes, static_cast<uint32_t>(value));
    PutLengthPrefixed(&bytes, "abc");
    Reader reader(bytes);
    EXPECT_EQ(reader.Varint(), value);
    EXPECT_EQ(reader.Fixed64(), value);
    EXPECT_EQ(reader.Big64(), value);
    EXPECT_EQ(reader.Fixed32(), static_cast<uint32_t>(value));
    EXPECT_EQ(reader.Big32(), static_cast<uint32_t>(value));
    EXPECT_EQ(reader.LengthPrefixed(), "abc");
    EXPECT_TRUE(reader.AtEnd());
  }
}

TEST(CodingTest, EveryCutOfAStringFailsAndStaysFailed) {
  std::string bytes;
  PutLengthPrefixed(&bytes, "abcdef");
  PutFixed64(&bytes, 7);
  for (size_t size = 0; size < bytes.size(); ++size) {
    Reader reader(std::string_view(bytes).substr(0, size));
    reader.LengthPrefixed();
    reader.Fixed64();
    EXPECT_FALSE(reader.ok()) << size;
    EXPECT_EQ(reader.Byte(), 0);
    EXPECT_FALSE(reader.AtEnd());
  }
}

TEST(CodingTest, VarintOfMoreThan64BitsFails) {
  const std::string ten_bytes(10, '\xff');
  Reader overlong(ten_bytes);
  overlong.Varint();
  EXPECT_FALSE(overlong.ok());
  const std::string high_bit = std::string(9, '\xff') + '\x02';
  Reader too_large(high_bit);
  too_large.Varint();
  EXPECT_FALSE(too_large.ok());
}

TEST(CodingTest, LengthBeyondTheEndFails) {
  std::string bytes;
  PutVarint(&bytes, ~uint64_t{0});
  bytes += "abc";
  Reader reader(bytes);
  reader.LengthPrefixed();
  EXPECT_FALSE(reader.ok());
}

TEST(CodingTest, PrefixEndIsTheLeastStringAboveAllExtensions) {
  EXPECT_EQ(PrefixEnd("abc"), "abd");
  EXPECT_EQ(PrefixEnd("ab\xff"), "ac");
  EXPECT_EQ(PrefixEnd("\xff\xff"), "");
  EXPECT_EQ(PrefixEnd(""), "");
}

}  // namespace
}  // namespace tamis
