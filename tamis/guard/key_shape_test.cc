#include "tamis/guard/key_shape.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tamis {
namespace {

using Format = KeyReader::Format;
using Keys = std::vector<std::string>;

constexpr Format kAll[] = {Format::kPlain, Format::kLines, Format::kNull, Format::kCopy};

constexpr Format kWhole[] = {Format::kLines, Format::kNull, Format::kCopy};

Status Judge(const Keys& keys, Format format, bool proved = false) {
  KeyShape shape(format, proved);
  for (const std::string& key : keys) TAMIS_RETURN_IF_ERROR(shape.Add(key));
  return shape.Finish();
}

TEST(KeyShapeTest, BareKeysPass) {
  for (const Format format : kAll) {
    for (const Keys& keys :
         {Keys{},
          Keys{""},
          Keys{"1"},
          Keys{"1", "2", "3"},
          Keys{"a", "", "b c"},
          Keys{"ab", "cd", "ef"},
          Keys{"a,", "b", "c;"},
          Keys{"-5", "-7"},
          Keys{"1", "{2}", "3"},
          Keys{"a", "1", "2", "x"},
          Keys{"user:1", "user:2", "user:3"},
          Keys{"row 1", "line 2", "row 3"},
          Keys{"1000", "2000", "3000"},
          Keys{"a@b.c", "d@b.c", "e@b.c"},
          Keys{"/a/1.html", "/a/2.html", "/a/3.html"},
          Keys{"1.234", "2.500", "7.125"},
          Keys{"1.5", "2.0", "3.0"},
          Keys{"1e5", "ab", "c3"},
          Keys{"x,y"},
          Keys{"Doe, J", "Roe"},
          Keys{"1", "2", "10", "1000"},
          Keys{"1.1", "2.1", "3.1"},
          Keys{"admin", "Doe, J", "Roe, K"},
          Keys{"Doe, J", "Roe, K", "admin"},
          Keys{"a@b.c", "<d@e.f>", "<g@e.f>", "h@e.f"},
          Keys{"1:admin", "2:user", "3:guest"},
          Keys{"06 12 34 56 78"},
          Keys{"192.168.100.100", "192.168.100.101", "192.168.100.200"},
          Keys{"1_100", "1_101", "2_100"},
          Keys{"600 123 456", "600 123 457"},
          Keys{"2024E0001", "2024E0002"},
          Keys{"MDEyMzQ1Njc4OWFiY2RlZg==", "MTIzNDU2Nzg5MGFiY2RlZg==", "ZmVkY2JhOTg3NjU0MzIxMA=="},
          Keys{"ключ1", "ключ2", "ключ3"}}) {
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
       "2"},                                           //
      {"a", "b", "2 rows selected."},                  // sqlplus
      {"a", "b", "(2 rows affected)"},                 // sqlcmd
      {"a", "(1 row)"},                                //
      {"id|1", "", "id|2", ""},                        // psql -xA
      {"|  1 |", "|  2 |", "+----+"},                  // psql -t, border 2
      {"1|x", "2|y"},                                  // two columns
      {"1\tx", "2\ty"},                                //
      {"1,x", "2,y"},                                  //
      {"id = 1", "", "id = 2"},                        // sqlite3 -line
      {"[{\"id\":1},", "{\"id\":2},", "{\"id\":3}]"},  // sqlite3 -json
      {"INSERT INTO t VALUES(1);", "INSERT INTO t VALUES(2);"},
      {"*************************** 1. row ***************************", "1"},  // mysql \\G
      {"id: 1", "id: 2", "id: 3"},
      {"- 1", "- 2", "- 3"},             // YAML
      {"* 1", "* 2", "* 3"},             // Markdown
      {"1 ms", "2 ms", "3 ms"},          // a unit
      {"+1", "+2", "+3"},                //
      {"0x1", "0x2", "0x3"},             //
      {"0001", "0002", "0010", "1000"},  // seq -w
      {"rows", "id: 1", "id: 2", "id: 3", "id: 4", "id: 5", "id: 6", "id: 7"},
      {"rows", "1,x", "2,x", "3,x", "4,x", "5,x", "6,x", "7,x"},
      {"1,x", "2;,x", "3;,x", "4,x"},
      {"│ 1 │", "│ 2 │", "└───┘"},                                              // psql -t, unicode
      {"<table>", "<tr>", "1"},                                                 // psql -H
      {"     1\tx", "     2\ty"},                                               // cat -n
      {"1:7", "2:8", "3:9", "4:1", "5:1", "6:2", "7:x", "8:y", "9:z", "10:7"},  // grep -n
      {"1) \"a\"", "2) \"b\""},                                                 // redis-cli
      {"1\xc2\xa0", "2\xc2\xa0"},                                               // no-break spaces
      {"\x1b[31m1\x1b[0m", "\x1b[31m2\x1b[0m"},
      {"7", "999", "1,000"},     // by a locale
      {"7", "1.000", "1.001"},   //
      {"1.0", "2.0", "3.0"},     // a column that was read as floating point
      {"1.2E+09", "1.3E+09"},    // a spreadsheet
      {"1,2,3"},                 // all of them in one line
      {"1 2 3 4 5 6 7 8 9 10"},  //
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

TEST(KeyShapeTest, APlainKeyIsText) {
  for (const char* key : {"caf\xe9", "\x1f\x8b\x08", "a\x0b", "\x7f"}) {
    EXPECT_FALSE(Judge({"1", "x", key, "y"}, Format::kPlain).ok()) << key;
    EXPECT_TRUE(Judge({"1", "x", key, "y"}, Format::kLines).ok()) << key;
  }
  EXPECT_FALSE(Judge({"x", "caf\xe9"}, Format::kCopy).ok());
  EXPECT_TRUE(Judge({"x", "a\x0b\r", "y"}, Format::kCopy).ok());
}

// Bytes of one beginning, such as the time in a UUIDv7, and any bytes behind it.
Keys Binary(size_t count, const std::string& beginning) {
  Keys keys;
  for (size_t i = 0; i < count; ++i) {
    std::string key = beginning;
    for (size_t j = 0; j < 8; ++j) key += static_cast<char>(1 + (i * 37 + j * 101) % 255);
    keys.push_back(key + "\xfe" + static_cast<char>(1 + i % 255));
  }
  return keys;
}

TEST(KeyShapeTest, BytesThatAreNoTextHaveNoFrame) {
  for (const Keys& keys :
       {Binary(300, "\x01\x9a"), Binary(300, "\x01\x9a,="), Binary(3, "\x01\x9a"),
        Binary(300, std::string("\0\0\x01", 3)), Binary(300, std::string("\0;|", 3))}) {
    EXPECT_TRUE(Judge(keys, Format::kLines).ok()) << Judge(keys, Format::kLines).message();
    EXPECT_FALSE(Judge(keys, Format::kPlain).ok());
    EXPECT_FALSE(Judge(keys, Format::kCopy).ok());
  }
  Keys text;
  for (int i = 0; i < 10; ++i)
    text.push_back("id = " + std::string(i % 4 == 3 ? "\xe9" : "x") + std::to_string(i));
  EXPECT_FALSE(Judge(text, Format::kLines).ok()) << "some keys of another character set";
  const Keys windows = {"\x01\x02\r", "\x01\x03\r", "\x01\x04\r"};
  EXPECT_FALSE(Judge(windows, Format::kLines).ok());
}

TEST(KeyShapeTest, CopyIsNotToBeReadAsLines) {
  const Status status = Judge({"caf\xe9"}, Format::kCopy);
  EXPECT_NE(status.message().find("no UTF-8"), std::string::npos) << status.message();
  EXPECT_EQ(status.message().find("--format lines"), std::string::npos)
      << "a backslash would be read as it is escaped: " << status.message();
}

TEST(KeyShapeTest, AProofSettlesWhatBelongsToTheKeys) {
  const Keys legitimate[] = {
      {"/item?id=1", "/item?id=2", "/item?id=3"},
      {"uid=a,ou=x,dc=b", "uid=c,ou=x,dc=b", "uid=d,ou=x,dc=b"},
      {"{user}:1", "{user}:2", "{user}:3"},
      {"<1@a.b>", "<2@a.b>", "<3@a.b>"},
      {"$2b$10$aa", "$2b$10$bb", "$2b$10$cc"},
      {"C:\\a", "C:\\b", "C:\\c"},
      {"Doe, J", "Roe, K", "Poe, E"},
      {"42|7", "42|8", "43|1"},
      {"8.0", "9.0", "10.0"},
  };
  for (const Keys& keys : legitimate) {
    EXPECT_FALSE(Judge(keys, Format::kPlain, true).ok()) << keys.front();
    for (const Format format : kWhole) {
      EXPECT_TRUE(Judge(keys, format, true).ok()) << Judge(keys, format, true).message();
      EXPECT_FALSE(Judge(keys, format).ok()) << keys.front();
    }
  }
  for (const Keys& keys :
       {Keys{"1\r", "2\r", "3\r"}, Keys{"   1", "  22", ""}, Keys{"id", "1", "2", "3"}}) {
    for (const Format format : kWhole) EXPECT_FALSE(Judge(keys, format, true).ok()) << keys.front();
  }
}

TEST(KeyShapeTest, AMessageIsText) {
  const Status text = Judge({"\"\xc3\xbc\x01\""}, Format::kPlain);
  EXPECT_NE(text.message().find("\"\"\xc3\xbc\\x01\"\""), std::string::npos) << text.message();
  const Status bytes = Judge({"\"\xff\""}, Format::kPlain);
  EXPECT_NE(bytes.message().find("\\xff"), std::string::npos) << bytes.message();
}

TEST(KeyShapeTest, AZeroByteIsNoTextOfADatabase) {
  const Keys keys = {"x", std::string("1\0", 2), "y"};
  EXPECT_FALSE(Judge(keys, Format::kPlain).ok());
  EXPECT_FALSE(Judge(keys, Format::kCopy).ok());
  EXPECT_TRUE(Judge(keys, Format::kLines).ok());
}

}  // namespace
}  // namespace tamis
