#include "tamis/guard/key_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace tamis {
namespace {

using Format = KeyReader::Format;

struct Read {
  std::vector<std::string> keys;
  Status status;
  uint64_t nulls = 0;
};

Read ReadAll(const std::string& text, Format format, bool marked_end = false, bool as_is = false) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  std::thread writer([&] {
    for (size_t i = 0; i < text.size();) {
      const ssize_t size = write(ends[1], text.data() + i, std::min<size_t>(text.size() - i, 5000));
      if (size <= 0) break;
      i += static_cast<size_t>(size);
    }
    close(ends[1]);
  });
  const std::atomic<bool> cancelled = false;
  KeyReader reader(ends[0], format, marked_end, &cancelled, nullptr, as_is);
  Read read;
  while (true) {
    const auto key = reader.Next();
    read.status = key.status();
    if (!key.ok() || !*key) break;
    read.keys.emplace_back(**key);
  }
  read.nulls = reader.nulls();
  char rest[4096];
  while (::read(ends[0], rest, sizeof(rest)) > 0) {
  }
  writer.join();
  close(ends[0]);
  return read;
}

using Keys = std::vector<std::string>;

TEST(KeyReaderTest, ALineIsAKey) {
  EXPECT_EQ(ReadAll("a\n\nb c\t\r\n", Format::kPlain).keys, (Keys{"a", "", "b c\t\r"}));
  EXPECT_TRUE(ReadAll("", Format::kPlain).status.ok());
  EXPECT_EQ(ReadAll(std::string("a\nb\0c\0", 6), Format::kNull).keys, (Keys{"a\nb", "c"}));
  EXPECT_EQ(ReadAll("a\\b\n\\.\n", Format::kLines).keys, (Keys{"a\\b", "\\."}));
}

TEST(KeyReaderTest, ManyLinesInPieces) {
  std::string text;
  Keys keys;
  for (int i = 0; i < 200'000; ++i) {
    keys.push_back(std::string(static_cast<size_t>(i % 37), 'x') + std::to_string(i));
    text += keys.back() + "\n";
  }
  keys.push_back(std::string(KeyReader::kGreatestKey, 'y'));
  text += keys.back() + "\n";
  EXPECT_EQ(ReadAll(text, Format::kPlain).keys, keys);
}

TEST(KeyReaderTest, ABackslashIsNotGuessed) {
  const Read read = ReadAll("a\nb\\\\c\n", Format::kPlain);
  EXPECT_EQ(read.status.code(), StatusCode::kDataLoss);
  EXPECT_NE(read.status.message().find("key 2"), std::string::npos) << read.status.message();
}

TEST(KeyReaderTest, ACopiedLineEndsWithoutACarriageReturn) {
  EXPECT_EQ(ReadAll("a\nb\r\nc\n", Format::kCopy).status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(ReadAll("a\\r\nb\rc\n", Format::kCopy).keys, (Keys{"a\r", "b\rc"}));
  EXPECT_NE(ReadAll("b\r\n", Format::kCopy).status.message().find("--as-is"), std::string::npos);
}

TEST(KeyReaderTest, ACarriageReturnMayBelongToACopiedKey) {
  const Read read = ReadAll("a\nb\r\nc\\r\n", Format::kCopy, false, true);
  EXPECT_TRUE(read.status.ok()) << read.status.message();
  EXPECT_EQ(read.keys, (Keys{"a", "b\r", "c\r"}));
}

// mysql prints a zero byte as \0; the next byte of the key may be a digit.
TEST(KeyReaderTest, AZeroByteBeforeADigitIsNotGuessed) {
  EXPECT_EQ(ReadAll("a\\0b\\0\n", Format::kCopy, false, true).keys,
            (Keys{std::string("a\0b\0", 4)}));
  EXPECT_EQ(ReadAll("a\\08\n", Format::kCopy, false, true).keys, (Keys{std::string("a\0"
                                                                                   "8",
                                                                                   3)}));
  for (const bool as_is : {false, true}) {
    const Status status = ReadAll("a\\012\n", Format::kCopy, false, as_is).status;
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_NE(status.message().find("zero byte"), std::string::npos) << status.message();
  }
}

TEST(KeyReaderTest, CopyIsUnescaped) {
  const Read read =
      ReadAll("a\\\\b\n\\N\n\\x41\\x4g\\101\\7\\t\\n\\q\n\\\\N\n\\.\n", Format::kCopy);
  EXPECT_TRUE(read.status.ok()) << read.status.message();
  EXPECT_EQ(read.keys, (Keys{"a\\b", "A\x04gA\x07\t\nq", "\\N"}));
  EXPECT_EQ(read.nulls, 1u);
  for (const char* wrong : {"a\tb\n", "a\\\n", "\\.\nmore\n"}) {
    EXPECT_EQ(ReadAll(wrong, Format::kCopy).status.code(), StatusCode::kDataLoss) << wrong;
  }
}

TEST(KeyReaderTest, HexadecimalDigitsAreBytes) {
  EXPECT_EQ(ReadAll("61\n0a5C\n\n", Format::kHex).keys, (Keys{"a", "\n\\", ""}));
  for (const char* wrong : {"6\n", "6g\n", "61\r\n"}) {
    EXPECT_EQ(ReadAll(wrong, Format::kHex).status.code(), StatusCode::kDataLoss) << wrong;
  }
}

TEST(KeyReaderTest, HalfOfALineIsNoKey) {
  for (const Format format : {Format::kPlain, Format::kLines, Format::kCopy, Format::kNull}) {
    const Read read = ReadAll("a", format);
    EXPECT_EQ(read.status.code(), StatusCode::kDataLoss);
    EXPECT_TRUE(read.keys.empty());
  }
  const std::string endless(2 * KeyReader::kGreatestKey, 'x');
  EXPECT_EQ(ReadAll(endless, Format::kPlain).status.code(), StatusCode::kDataLoss);
}

TEST(KeyReaderTest, WaitingEndsWhenCancelledOrNoLongerWanted) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<bool> cancelled = false;
  int calls = 0;
  KeyReader reader(ends[0], Format::kPlain, false, &cancelled, [&] {
    if (++calls == 2) cancelled = true;  // no signal comes with it
    return Status::Ok();
  });
  EXPECT_EQ(reader.Next().status().code(), StatusCode::kCancelled);
  EXPECT_EQ(calls, 2);
  cancelled = false;
  KeyReader kept(ends[0], Format::kPlain, false, &cancelled, [] { return DataLoss("enough"); });
  EXPECT_EQ(kept.Next().status().message(), "enough");
  close(ends[0]);
  close(ends[1]);
}

TEST(KeyReaderTest, AMarkedEndMustCome) {
  EXPECT_EQ(ReadAll("a\nb\n", Format::kPlain, true).status.code(), StatusCode::kDataLoss);
  const Read read = ReadAll("a\nb\n\\.\n", Format::kPlain, true);
  EXPECT_TRUE(read.status.ok());
  EXPECT_EQ(read.keys, (Keys{"a", "b"}));
  EXPECT_EQ(ReadAll("a\n\\.\nb\n", Format::kLines, true).status.code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tamis
