#include "tamis/cli/line_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"

namespace tamis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// All lines, whose hashes are checked.
std::vector<std::string> ReadLines(const std::string& path, char delimiter = '\n') {
  constexpr uint64_t kSeed = 7;
  auto reader = LineReader::Open(path, delimiter, kSeed);
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  std::vector<std::string> lines;
  while (true) {
    const Result<bool> more = reader->Next();
    EXPECT_TRUE(more.ok()) << more.status().message();
    if (!more.ok() || !*more) break;
    EXPECT_GT(reader->size(), 0u);
    for (size_t i = 0; i < reader->size(); ++i) {
      lines.emplace_back(reader->line(i));
      EXPECT_EQ(reader->hashes()[i], Hash(lines.back(), kSeed));
    }
  }
  EXPECT_EQ(*reader->Next(), false) << "the end stays the end";
  return lines;
}

class LineReaderTest : public testing::Test {
 protected:
  ~LineReaderTest() override { std::filesystem::remove(path_); }

  std::vector<std::string> ReadText(const std::string& text, char delimiter = '\n') {
    std::ofstream(path_, std::ios::binary) << text;
    return ReadLines(path_, delimiter);
  }

  // Each call of read() returns one of the pieces, or several.
  static std::vector<std::string> ReadPieces(const std::vector<std::string>& pieces) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    std::thread writer([&] {
      for (const std::string& piece : pieces) {
        EXPECT_EQ(write(ends[1], piece.data(), piece.size()), static_cast<ssize_t>(piece.size()));
      }
      close(ends[1]);
    });
    std::vector<std::string> lines = ReadLines("/dev/fd/" + std::to_string(ends[0]));
    writer.join();
    close(ends[0]);
    return lines;
  }

  const std::string path_ = testing::TempDir() + "line_reader_test." + std::to_string(getpid());
};

TEST_F(LineReaderTest, LinesMayBeEmptyAndTheLastUnfinished) {
  EXPECT_THAT(ReadText(""), ElementsAre());
  EXPECT_THAT(ReadText("\n"), ElementsAre(""));
  EXPECT_THAT(ReadText("a"), ElementsAre("a"));
  EXPECT_THAT(ReadText("a\n"), ElementsAre("a"));
  EXPECT_THAT(ReadText("\n\nb c\n\n"), ElementsAre("", "", "b c", ""));
  EXPECT_THAT(ReadText("a\nb"), ElementsAre("a", "b"));
  EXPECT_THAT(ReadText("a\r\n"), ElementsAre("a\r"));
}

TEST_F(LineReaderTest, LinesMayEndWithAnyByte) {
  using std::string_literals::operator""s;
  EXPECT_THAT(ReadText("a\nb\0\0c"s, '\0'), ElementsAre("a\nb", "", "c"));
  EXPECT_THAT(ReadText("a\xff\xff", '\xff'), ElementsAre("a", ""));
}

TEST_F(LineReaderTest, LinesOfAllSizesCrossTheReads) {
  Random random(1);
  // Below, at and beyond what is read at once, and what the text has grown to.
  for (const size_t longest : {3, 40, 1000, 70'000, 300'000}) {
    std::string text;
    std::vector<std::string> expected;
    while (text.size() < 2'000'000) {
      expected.emplace_back(random.Uniform(longest + 1), 'x');
      for (char& c : expected.back()) c = static_cast<char>('a' + random.Uniform(26));
      text += expected.back() + "\n";
    }
    EXPECT_EQ(ReadText(text), expected) << longest;
    text.pop_back();
    if (!expected.back().empty()) {
      EXPECT_EQ(ReadText(text), expected) << longest;
    }
  }
}

TEST_F(LineReaderTest, ADelimiterMayBeTheLastOrTheFirstByteOfARead) {
  for (const size_t size : {65'534, 65'535, 65'536, 65'537}) {
    const std::string line(size, 'x');
    EXPECT_THAT(ReadText(line + "\n" + "b\n"), ElementsAre(line, "b")) << size;
    EXPECT_THAT(ReadText(line + "\n"), ElementsAre(line)) << size;
    EXPECT_THAT(ReadText(line), ElementsAre(line)) << size;
  }
}

TEST_F(LineReaderTest, APipeMayDeliverSmallPieces) {
  EXPECT_THAT(ReadPieces({"a", "b", "\n", "\n", "c\nd", "\n"}), ElementsAre("ab", "", "c", "d"));
  Random random(2);
  std::vector<std::string> pieces;
  std::string text;
  for (size_t i = 0; i < 3000; ++i) {
    std::string piece(1 + random.Uniform(60), 'x');
    for (char& c : piece) c = random.OneIn(20) ? '\n' : static_cast<char>('a' + random.Uniform(26));
    text += piece;
    pieces.push_back(std::move(piece));
  }
  EXPECT_EQ(ReadPieces(pieces), ReadText(text));
}

TEST_F(LineReaderTest, UnreadableFileIsNamed) {
  const auto missing = LineReader::Open("/no/such", '\n', 0);
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("\"/no/such\""));
  auto directory = LineReader::Open("/", '\n', 0);
  ASSERT_TRUE(directory.ok());
  EXPECT_THAT(std::string(directory->Next().status().message()), HasSubstr("cannot read \"/\""));
}

}  // namespace
}  // namespace tamis
