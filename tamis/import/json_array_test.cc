#include "tamis/import/json_array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace tamis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The elements with their lines, and at the end the error, if there is one.
std::vector<std::string> Elements(const std::string& input) {
  std::istringstream in(input);
  LineSource lines(&in);
  std::string first = **lines.Next();
  EXPECT_TRUE(JsonArray::BeginsIn(first));
  JsonArray array(std::move(first), &lines);
  std::vector<std::string> elements;
  while (true) {
    const auto element = array.Next();
    if (!element.ok()) elements.push_back("error: " + element.status().message());
    if (!element.ok() || !element->has_value()) return elements;
    elements.push_back(std::to_string(array.line()) + ": " + **element);
  }
}

TEST(JsonArrayTest, ElementsAreOnOneLineOrMany) {
  EXPECT_THAT(Elements("[]"), ElementsAre());
  EXPECT_THAT(Elements("[\n ]\n\n"), ElementsAre());
  EXPECT_THAT(Elements("[{\"a\":1}]"), ElementsAre("1: {\"a\":1}"));
  EXPECT_THAT(Elements(" [{\"a\":1},{\"a\":2}]\n"), ElementsAre("1: {\"a\":1}", "1: {\"a\":2}"));
  EXPECT_THAT(Elements("[\n{\"a\":1},\n{\"a\":\n2}\n]\n"),
              ElementsAre("2: {\"a\":1}", "3: {\"a\":\n2}\n"));
  EXPECT_THAT(Elements("[{}\n,\n\n{}]"), ElementsAre("1: {}\n", "4: {}"));
}

TEST(JsonArrayTest, StringsAndNestedValuesHoldBracketsAndCommas) {
  EXPECT_THAT(Elements(R"([{"a":"],[{"},{"b":[1,{"c":2}]},"\\",3])"),
              ElementsAre(R"(1: {"a":"],[{"})", R"(1: {"b":[1,{"c":2}]})", R"(1: "\\")", "1: 3"));
  EXPECT_THAT(Elements(R"(["\",",1])"), ElementsAre(R"(1: "\",")", "1: 1"));
}

TEST(JsonArrayTest, AnElementThatIsNoJsonIsOneElement) {
  EXPECT_THAT(Elements("[x,{\"a\":1],2]"), ElementsAre("1: x", "1: {\"a\":1]", "1: 2"));
  EXPECT_THAT(Elements("[1,,2]"), ElementsAre("1: 1", "1: ", "1: 2"));
  EXPECT_THAT(Elements("[1,]"), ElementsAre("1: 1", "1: "));
}

TEST(JsonArrayTest, AnArrayThatDoesNotEndIsAnError) {
  for (const char* input : {"[", "[\n", "[1", "[1,", "[1,\n", "[\"a]", "[{]", "[[1]"}) {
    EXPECT_THAT(Elements(input).back(), HasSubstr("begins in line 1 does not end")) << input;
  }
}

TEST(JsonArrayTest, TextBehindTheArrayIsAnError) {
  EXPECT_THAT(Elements("[1] x"), ElementsAre("1: 1", HasSubstr("text behind the array")));
  EXPECT_THAT(Elements("[1]\n[2]"), ElementsAre("1: 1", HasSubstr("text behind the array")));
}

TEST(JsonArrayTest, OtherLinesBeginNoArray) {
  EXPECT_FALSE(JsonArray::BeginsIn(""));
  EXPECT_FALSE(JsonArray::BeginsIn("  "));
  EXPECT_FALSE(JsonArray::BeginsIn("{\"a\":[]}"));
}

}  // namespace
}  // namespace tamis
