#include "tamis/sql/sql_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tamis {
namespace {

using Kind = SqlToken::Kind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::pair<Kind, std::string>> Read(const std::string& sql) {
  std::vector<std::pair<Kind, std::string>> tokens;
  for (const SqlToken& token : TokenizeSql(sql)) {
    if (token.kind != Kind::kEnd) tokens.emplace_back(token.kind, token.word);
  }
  return tokens;
}

TEST(SqlTokensTest, WordsAreInLowerCaseAndQuotesAreTaken) {
  EXPECT_THAT(
      Read("SELECT \"A \"\"b\" `c``d` [e]f 'g''h'"),
      ElementsAre(Pair(Kind::kWord, "select"), Pair(Kind::kName, "A \"b"), Pair(Kind::kName, "c`d"),
                  Pair(Kind::kName, "e"), Pair(Kind::kWord, "f"), Pair(Kind::kText, "g'h")));
}

TEST(SqlTokensTest, NumbersAreDigitsWithAtMostOnePoint) {
  EXPECT_THAT(Read("42 0.25 1. 2a"),
              ElementsAre(Pair(Kind::kNumber, "42"), Pair(Kind::kNumber, "0.25"),
                          Pair(Kind::kNumber, "1."), Pair(Kind::kOther, "2a")));
  EXPECT_THAT(Read("1e5 0x1f 1.5e3"),
              ElementsAre(Pair(Kind::kOther, "1e5"), Pair(Kind::kOther, "0x1f"),
                          Pair(Kind::kOther, "1.5e3")));
  EXPECT_THAT(Read(".5"), ElementsAre(Pair(Kind::kOther, "."), Pair(Kind::kNumber, "5")));
}

TEST(SqlTokensTest, BlobsAndParametersAreNoWords) {
  EXPECT_THAT(Read("x'00'"), ElementsAre(Pair(Kind::kOther, "x"), Pair(Kind::kText, "00")));
  EXPECT_THAT(Read("$a"), ElementsAre(Pair(Kind::kOther, "$a")));
}

TEST(SqlTokensTest, CommentsAndBlanksAreLeftOut) {
  EXPECT_THAT(Read("a -- 'b\n/* c \" */d/* e"),
              ElementsAre(Pair(Kind::kWord, "a"), Pair(Kind::kWord, "d")));
  // SQLite takes a vertical tabulator for no blank.
  EXPECT_THAT(Read("\v"), ElementsAre(Pair(Kind::kOther, "\v")));
}

TEST(SqlTokensTest, TextThatSqliteReadsOtherwiseHasNoTokens) {
  EXPECT_THAT(TokenizeSql("SELECT 'a"), IsEmpty());
  EXPECT_THAT(TokenizeSql(std::string("SELECT 1\0", 9)), IsEmpty());
  EXPECT_EQ(TokenizeSql("").size(), 1u);
}

}  // namespace
}  // namespace tamis
