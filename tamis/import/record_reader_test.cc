#include "tamis/import/record_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace tamis {
namespace {

using namespace std::string_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Every record as "line: name=text,..." with ~ for no value; errors as their messages.
std::vector<std::string> Read(RecordFormat format, const std::string& text, CsvOptions csv = {}) {
  std::istringstream in(text);
  RecordReader reader(format, &in, std::move(csv));
  std::vector<std::string> out;
  while (true) {
    const auto record = reader.Next();
    if (!record.ok()) {
      out.push_back(record.status().message());
      continue;
    }
    if (!record->has_value()) return out;
    std::string line = std::to_string((*record)->line) + ":";
    for (const Field& field : (*record)->fields) {
      line += " " + field.name + "=" + field.text.value_or("~");
    }
    out.push_back(line);
  }
}

TEST(RecordReaderTest, Csv) {
  EXPECT_THAT(Read(RecordFormat::kCsv, "a,Some Name\r\n1,\"x, \"\"y\"\"\"\r\n\n,\"\"\n"),
              ElementsAre("2: a=1 some_name=x, \"y\"", "4: a=~ some_name="));
  EXPECT_THAT(Read(RecordFormat::kCsv, "a,b\n\"1\n2\",3\n4,5"),
              ElementsAre("2: a=1\n2 b=3", "4: a=4 b=5"));
  EXPECT_THAT(Read(RecordFormat::kCsv, ""), ElementsAre());
  EXPECT_THAT(Read(RecordFormat::kCsv, "a,b\r\n\r\n\"1\r\n2\r\",3\r\n4,\r\n"),
              ElementsAre("3: a=1\r\n2\r b=3", "6: a=4 b=~"));
}

TEST(RecordReaderTest, CsvGoesOnBehindABadRecord) {
  EXPECT_THAT(Read(RecordFormat::kCsv, "a,b\n1\n\"2\"x,3\n4,5\n\"6"),
              ElementsAre(HasSubstr("line 2: it has 1 fields"), HasSubstr("line 3: there is text"),
                          "4: a=4 b=5", HasSubstr("line 5: a quoted field does not end")));
  EXPECT_THAT(Read(RecordFormat::kCsv, "a,A\n1,2\n"), ElementsAre(HasSubstr("line 1: column 2")));
}

TEST(RecordReaderTest, AQuotedFieldThatDoesNotEndEndsTheCsv) {
  EXPECT_THAT(Read(RecordFormat::kCsv, "a,b\n1,\"x\n2,y\n3,z\n4,w\n"),
              ElementsAre(AllOf(HasSubstr("line 2: a quoted field does not end"),
                                HasSubstr("lines 2 to 5"))));
  EXPECT_THAT(Read(RecordFormat::kCsv, "a,b\n1,\"x\n2,\"y\n3,z\n"),
              ElementsAre(AllOf(HasSubstr("line 2: there is text"), HasSubstr("lines 2 to 3")),
                          "4: a=3 b=z"));
}

TEST(RecordReaderTest, CsvWithOtherDelimiters) {
  const std::vector<std::string> rows = {"2: a=1,5 b=x;y", "3: a=2 b=~"};
  EXPECT_EQ(Read(RecordFormat::kCsv, "a;b\n1,5;\"x;y\"\n2;\n", {.delimiter = ';'}), rows);
  EXPECT_THAT(Read(RecordFormat::kCsv, "sep=;\r\na;b\r\n1;2\r\n"), ElementsAre("3: a=1 b=2"));
  EXPECT_THAT(Read(RecordFormat::kCsv, "sep=,\na,b\n1,2\n"), ElementsAre("3: a=1 b=2"));
  EXPECT_THAT(Read(RecordFormat::kCsv, "sep=\t\na\tb\n1\t2\n"), ElementsAre("3: a=1 b=2"));
  EXPECT_THAT(Read(RecordFormat::kCsv, "Sep=|\na|b\n1|2\n"), ElementsAre("3: a=1 b=2"));
  EXPECT_THAT(Read(RecordFormat::kCsv, "SEP=,\na,b\n1,2\n"), ElementsAre("3: a=1 b=2"));
  EXPECT_THAT(Read(RecordFormat::kCsv, "sep=\"\na\"b\n1\"2\n"),
              ElementsAre(HasSubstr("line 1: \"\"\" is no delimiter")));
  EXPECT_THAT(Read(RecordFormat::kCsv, "a;b\n1;2\n"),
              ElementsAre(AllOf(HasSubstr("line 1: its only field is \"a;b\""),
                                HasSubstr("--delimiter ';'"))));
  EXPECT_THAT(Read(RecordFormat::kCsv, "a;b\n1\n", {.delimiter = ','}), ElementsAre("2: a_b=1"));
  EXPECT_THAT(Read(RecordFormat::kCsv, "a\tb\n"), ElementsAre(HasSubstr("--delimiter tab")));
  EXPECT_THAT(Read(RecordFormat::kCsv, "{\"a\":1}\n"), ElementsAre(HasSubstr("--format json")));
}

TEST(RecordReaderTest, CsvWithoutAHeaderOrWithOtherNames) {
  EXPECT_THAT(Read(RecordFormat::kCsv, "1,2\n3,4\n", {.has_header = false}),
              ElementsAre("1: column_1=1 column_2=2", "2: column_1=3 column_2=4"));
  EXPECT_THAT(Read(RecordFormat::kCsv, "1,2\n", {.has_header = false, .columns = {"id", "Name"}}),
              ElementsAre("1: id=1 name=2"));
  EXPECT_THAT(Read(RecordFormat::kCsv, "名前,a\n1,2\n", {.columns = {"name", "a"}}),
              ElementsAre("2: name=1 a=2"));
  EXPECT_THAT(Read(RecordFormat::kCsv, "a,b\n1,2\n", {.columns = {"id"}}),
              ElementsAre(HasSubstr("line 1: it has 2 fields, and --columns 1 names")));
  EXPECT_THAT(Read(RecordFormat::kCsv, "", {.has_header = false}), ElementsAre());
}

TEST(RecordReaderTest, CsvHeadersAsTheyAre) {
  EXPECT_THAT(Read(RecordFormat::kCsv, ",a\n0,1\n"), ElementsAre("2: column_1=0 a=1"));
  EXPECT_THAT(Read(RecordFormat::kCsv, "größe,grüße\n"),
              ElementsAre(AllOf(HasSubstr("größe"), HasSubstr("grüße"), HasSubstr("--columns"))));
  EXPECT_THAT(Read(RecordFormat::kCsv, "名前,a\n"), ElementsAre(HasSubstr("name all columns")));
}

// UTF-16 is recognized by its first characters only if these are ASCII.
TEST(RecordReaderTest, NamesWithAByteZeroAreAnError) {
  const std::string utf16 = "\x3a\x04,\0k\0\n\0001\0,\0002\0\n\0"s;
  const auto is_no_text = ElementsAre(AllOf(HasSubstr("line 1: "), HasSubstr("byte order mark")));
  EXPECT_THAT(Read(RecordFormat::kCsv, utf16), is_no_text);
  EXPECT_THAT(Read(RecordFormat::kCsv, "a\0\n1\n"s), is_no_text);
  EXPECT_THAT(Read(RecordFormat::kCsv, "a;\0;\n1\n"s), is_no_text);
  EXPECT_THAT(Read(RecordFormat::kCsv, "\0\n1\n"s, {.columns = {"a"}}), is_no_text);
  EXPECT_THAT(Read(RecordFormat::kDeb822, "A\0: 1\n"s), is_no_text);
  EXPECT_THAT(Read(RecordFormat::kJson, "{\"a\\u0000\":1}\n"s), is_no_text);
  EXPECT_THAT(Read(RecordFormat::kCsv, "1\0\n"s, {.has_header = false}),
              ElementsAre("1: column_1=1\0"s));
}

// The parser of JSON ends at a byte 0.
TEST(RecordReaderTest, RecordWithBytesAfterAZeroByteIsAnError) {
  EXPECT_THAT(Read(RecordFormat::kJson, "{\"a\":1}\0{\"a\":2}\n{\"a\":3}\n{\"a\":4}\0"s),
              ElementsAre(HasSubstr("line 1: it is not JSON at byte 8"), "2: a=3",
                          HasSubstr("line 3: it is not JSON at byte 8")));
}

TEST(RecordReaderTest, FieldsThatWouldBeOneColumnAreAnError) {
  EXPECT_THAT(Read(RecordFormat::kJson, R"({"a-b":1,"a_b":2})"
                                        "\n"
                                        R"({"a":1,"a":2})"
                                        "\n"
                                        R"({"a":1,"n":{"x":1,"x":2}})"),
              ElementsAre("line 1: the fields \"a-b\" and \"a_b\" would both be column \"a_b\"",
                          "line 2: field \"a\" is given twice", HasSubstr("3: a=1 n=")));
  EXPECT_THAT(
      Read(RecordFormat::kDeb822, "A-b: 1\nA_b: 2\n\nA: 1\nA: 2\nB: 1\n\nA: 1\n"),
      ElementsAre(HasSubstr("line 2: the fields"), HasSubstr("line 5: field \"A\""), "8: a=1"));
}

TEST(RecordReaderTest, LinesMayEndWithAReturnAlone) {
  EXPECT_THAT(Read(RecordFormat::kCsv, "a,b\r1,2\r3,\"4\r5\"\r"),
              ElementsAre("2: a=1 b=2", "3: a=3 b=4\r5"));
  EXPECT_THAT(Read(RecordFormat::kCsv, "a,b\n1,2\r3,4\r\n5,6"),
              ElementsAre("2: a=1 b=2", "3: a=3 b=4", "4: a=5 b=6"));
  EXPECT_THAT(Read(RecordFormat::kJson, "{\"a\":1}\r{\"a\":2}\r"), ElementsAre("1: a=1", "2: a=2"));
  EXPECT_THAT(Read(RecordFormat::kDeb822, "A: 1\r\rA: 2\r x\r"),
              ElementsAre("1: a=1", "3: a=2\nx"));
}

TEST(RecordReaderTest, UnsupportedJsonIsRefusedWithAHint) {
  EXPECT_THAT(Read(RecordFormat::kJson, "{\"a\":1e400}\n[{\"a\":1}]\n"),
              ElementsAre(HasSubstr("the number 1e400 is greater"), HasSubstr("line 2: ")));
}

TEST(RecordReaderTest, AnArrayOfObjectsIsRead) {
  EXPECT_THAT(Read(RecordFormat::kJson, "\n[\n{\"a\":9007199254740993},\n{\"a\":2}\n]\n"),
              ElementsAre("3: a=9007199254740993", "4: a=2"));
  EXPECT_THAT(Read(RecordFormat::kJson, "[{\"a\":1},5,{\"a\":2}"),
              ElementsAre("1: a=1", HasSubstr("line 1: it is not a JSON object"),
                          HasSubstr("line 1: the array that begins in line 1 does not end")));
  EXPECT_THAT(Read(RecordFormat::kJson, "[]"), ElementsAre());
}

TEST(RecordReaderTest, LinesMayEndWithAReturn) {
  EXPECT_THAT(Read(RecordFormat::kJson, "{\"a\":1}\r\n\r\n{\"a\":2}\r\n"),
              ElementsAre("1: a=1", "3: a=2"));
  EXPECT_THAT(Read(RecordFormat::kDeb822, "A: 1\r\n x\r\n\r\nA: 2\r\n"),
              ElementsAre("1: a=1\nx", "4: a=2"));
}

TEST(RecordReaderTest, Jsonl) {
  EXPECT_THAT(
      Read(RecordFormat::kJson,
           R"({"id":1,"price":1.10,"big":123456789012345678901234567890,"ok":true,"no":null})"
           "\n\n"
           R"({"inStock":"é","tags":["a",{"b":[1,null]},[]],"o":{}})"),
      ElementsAre("1: id=1 price=1.10 big=123456789012345678901234567890 ok=true no=~",
                  "3: in_stock=é tags=[\"a\",{\"b\":[1,null]},[]] o={}"));
}

TEST(RecordReaderTest, JsonlGoesOnBehindABadRecord) {
  EXPECT_THAT(
      Read(RecordFormat::kJson, "{\n[1]\n5\n{\"a\":1} x\n{\"a\":2}\n" + std::string(200, '[')),
      ElementsAre(HasSubstr("line 1: it is not JSON"), HasSubstr("line 2: it is not a JSON"),
                  HasSubstr("line 3: "), HasSubstr("line 4: it is not JSON"), "5: a=2",
                  HasSubstr("line 6: ")));
}

TEST(RecordReaderTest, Deb822) {
  EXPECT_THAT(Read(RecordFormat::kDeb822,
                   "\nPackage: a\nInstalled-Size:  12 \n# comment\nDescription: one\n two\n .\n  "
                   "three\n\n\nPackage: b\nTag:\n x::y,\n z\n"),
              ElementsAre("2: package=a installed_size=12 description=one\ntwo\n\n three",
                          "11: package=b tag=x::y,\nz"));
}

TEST(RecordReaderTest, Deb822GoesOnBehindABadRecord) {
  EXPECT_THAT(
      Read(RecordFormat::kDeb822, "Package: a\nnonsense\nVersion: 1\n\n cont\n\nPackage: b\n"),
      ElementsAre(HasSubstr("line 2: it is not"), HasSubstr("line 5: a continuation"),
                  "7: package=b"));
}

TEST(RecordReaderTest, NamesAreLowerSnake) {
  EXPECT_EQ(LowerSnake("Installed-Size"), "installed_size");
  EXPECT_EQ(LowerSnake("SHA256"), "sha256");
  EXPECT_EQ(LowerSnake("inStock  (EUR)"), "in_stock_eur");
  EXPECT_EQ(LowerSnake("2nd"), "_2nd");
  EXPECT_EQ(LowerSnake("--"), "");
}

}  // namespace
}  // namespace tamis
