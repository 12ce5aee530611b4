#include "tamis/guard/key_shape.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tamis {
namespace {

using Format = KeyReader::Format;
using Keys = std::vector<std::string>;

constexpr Format kAll[] = {Format::kPlain, Format::kLines, Format::kNull, Format::kCopy};

Status Judge(const Keys& keys, Format format) {
  KeyShape shape(format);
  for (const std::string& key : keys) TAMIS_RETURN_IF_ERROR(shape.Add(key));
  return shape.Finish();
}

TEST(KeyShapeTest, BareKeysPass) {
  for (const Format format : kAll) {
    for (const Keys& keys : {Keys{}, Keys{""}, Keys{"1"}, Keys{"1", "2", "3"}, Keys{"a", "", "b c"},
                             Keys{"ab", "cd", "ef"}, Keys{"a,", "b", "c;"}, Keys{"-5", "-7"},
                             Keys{"1", "{2}", "3"}, Keys{"a", "1", "2", "x"}}) {
      EXPECT_TRUE(Judge(keys, format).ok()) << Judge(keys, format).message();
    }
  }
}

TEST(KeyShapeTest, AFrameOfAllKeysIsRefused) {
  const Keys wrong[] = {
      {" id  ", "-----", "  1", "  2", "(2 rows)", ""},              // psql
      {"id", "1", "2", "(2 rows)"},                                  // psql -A
      {"-[ RECORD 1 ]", "id | 1", "-[ RECORD 2 ]", "id | 2"},        // psql -x
      {"+----+", "| id |", "+----+", "|  1 |", "|  2 |", "+----+"},  // mysql --table
      {"id", "1", "2", "3"},                                         // mysql --batch
      {"id", "--", "1", "2"},                                        // sqlite3 -column
      {"1\r", "2\r", "3\r"},                                         // CR LF
      {"id\r", "a\r", "b\r"},                                        //
      {"\"1\"", "\"2\""},                                            // CSV
      {"id", "\"a\"", "\"b\""},                                      //
      {"'1'", "'2'"},                                                //
      {"1,", "2,"},                                                  //
      {"1;", "22;"},                                                 //
      {"[1]", "[2]"},                                                // JSON
      {"{\"id\":1}", "{\"id\":2}"},                                  //
      {"   1", "  22", ""},                                          // psql -t
      {" 1", " 2"},                                                  //
      {"1 ", "2 "},                                                  //
      {"1\t", "2\t"},                                                //
      {"\n1", "\n2"},                                                // find -print0 and the like
      {"x", "abc ", "defg", "ab  "},                                 // char(4)
      {"\xef\xbb\xbf"
       "1",
       "2"},  // byte order marks
      {"\xff\xfe"
       "1",
       "2"},                            //
      {"a", "b", "2 rows selected."},   // sqlplus
      {"a", "b", "(2 rows affected)"},  // sqlcmd
      {"a", "(1 row)"},                 //
  };
  for (const Keys& keys : wrong) {
    for (const Format format : kAll) {
      EXPECT_EQ(Judge(keys, format).code(), StatusCode::kDataLoss)
          << keys.front() << " " << static_cast<int>(format);
    }
  }
}

TEST(KeyShapeTest, APlainKeyWithAFrameIsRefusedAlone) {
  for (const char* key : {" a", "a ", "a\r", "a\t", "\"a\"", "'a'", "`a`"}) {
    const Keys keys = {"1", "b", key, "c"};
    EXPECT_NE(Judge(keys, Format::kPlain).message().find("key 3"), std::string::npos) << key;
    for (const Format format : {Format::kLines, Format::kNull, Format::kCopy}) {
      EXPECT_TRUE(Judge(keys, format).ok()) << key << ": " << Judge(keys, format).message();
    }
  }
}

TEST(KeyShapeTest, AZeroByteIsNoTextOfADatabase) {
  const Keys keys = {"x", std::string("1\0", 2), "y"};
  EXPECT_FALSE(Judge(keys, Format::kPlain).ok());
  EXPECT_FALSE(Judge(keys, Format::kCopy).ok());
  EXPECT_TRUE(Judge(keys, Format::kLines).ok());
}

}  // namespace
}  // namespace tamis
