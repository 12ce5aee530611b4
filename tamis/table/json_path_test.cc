#include "tamis/table/json_path.h"

#include <gtest/gtest.h>

#include <string>

namespace tamis {
namespace {

std::optional<std::string> Find(const std::string& json, const std::string& path) {
  return JsonPath::Parse(path)->Find(json);
}

TEST(JsonPathTest, FindsMembersAndElements) {
  const std::string json = R"({"a": {"b": ["x", {"c d": 7}]}, "n": [[1, 2], [3]]})";
  EXPECT_EQ(Find(json, "$.a.b[0]"), "x");
  EXPECT_EQ(Find(json, "$.a.b[1].\"c d\""), "7");
  EXPECT_EQ(Find(json, "$.n[1][0]"), "3");
  EXPECT_EQ(Find(json, "$.a.b[2]"), std::nullopt);
  EXPECT_EQ(Find(json, "$.a[0]"), std::nullopt) << "an object has no elements";
  EXPECT_EQ(Find(json, "$.n.a"), std::nullopt) << "an array has no members";
  EXPECT_EQ(Find(json, "$.a.b[0].c"), std::nullopt) << "a string has neither";
}

TEST(JsonPathTest, ValuesOfEachKindAreText) {
  const std::string json =
      R"({"s": "\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00", "i": -0, "d": 1.50, "e": 1e400,)"
      R"( "t": true, "f": false, "n": null, "o": { "p" : [] }, "z": "a\u0000b"})";
  EXPECT_EQ(Find(json, "$.s"), "\"\\/\b\f\n\r\t\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(Find(json, "$.i"), "-0");
  EXPECT_EQ(Find(json, "$.d"), "1.50");
  EXPECT_EQ(Find(json, "$.e"), "1e400");
  EXPECT_EQ(Find(json, "$.t"), "true");
  EXPECT_EQ(Find(json, "$.f"), "false");
  EXPECT_EQ(Find(json, "$.n"), std::nullopt);
  EXPECT_EQ(Find(json, "$.o"), R"({ "p" : [] })");
  EXPECT_EQ(Find(json, "$.z"), std::string("a\0b", 3));
}

TEST(JsonPathTest, TheFirstOfEqualKeysCounts) {
  EXPECT_EQ(Find(R"({"a": 1, "a": 2})", "$.a"), "1");
  EXPECT_EQ(Find(R"({"a": 1, "a": {"b": 2}})", "$.a.b"), std::nullopt);
  EXPECT_EQ(Find(R"({"\u0061": 1, "a": 2})", "$.a"), "1") << "keys are compared without escapes";
}

TEST(JsonPathTest, MalformedTextGivesNull) {
  for (const char* json : {"",
                           " ",
                           "{",
                           "{\"a\":1",
                           "{\"a\":1}}",
                           "{\"a\":1,}",
                           "{\"a\" 1}",
                           "{a:1}",
                           "{'a':1}",
                           "{\"a\":01}",
                           "{\"a\":1.}",
                           "{\"a\":.5}",
                           "{\"a\":+1}",
                           "{\"a\":1e}",
                           "{\"a\":-}",
                           "{\"a\":1 //\n}",
                           "{\"a\":1,\"b\":tru}",
                           "{\"a\":1,\"b\":NaN}",
                           "{\"a\":1,\"b\":\"\n\"}",
                           "{\"a\":1,\"b\":\"\\x\"}",
                           "{\"a\":1,\"b\":\"\\u12g4\"}",
                           "{\"a\":1,\"b\":\"\\ud800\"}",
                           "{\"a\":1,\"b\":\"\\udc00\"}",
                           "{\"a\":1,\"b\":\"\\ud800\\u0041\"}",
                           "{\"a\":1,\"b\":\"\xff\"}",
                           "\xef\xbb\xbf{\"a\":1}",
                           "{\"a\":1}\f",
                           "{\"a\":1,\"b\":[1,]}"}) {
    EXPECT_EQ(Find(json, "$.a"), std::nullopt) << json;
  }
}

TEST(JsonPathTest, DepthIsBounded) {
  const auto nested = [](int depth) {
    return "{\"a\":1,\"b\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(Find(nested(JsonPath::kMaxDepth), "$.a"), "1");
  EXPECT_EQ(Find(nested(JsonPath::kMaxDepth + 1), "$.a"), std::nullopt);
  // An empty array is nested no deeper than a number.
  const auto around = [](int depth, const std::string& value) {
    return std::string(depth, '[') + value + std::string(depth, ']');
  };
  for (const char* value : {"1", "[]", "{}"}) {
    EXPECT_NE(Find(around(JsonPath::kMaxDepth, value), "$[0]"), std::nullopt) << value;
    EXPECT_EQ(Find(around(JsonPath::kMaxDepth + 1, value), "$[0]"), std::nullopt) << value;
  }
  EXPECT_EQ(Find(nested(1'000'000), "$.a"), std::nullopt);
}

TEST(JsonPathTest, PathsReadBack) {
  for (const char* path : {"$.a", "$.a.b_1[0][4294967295]", "$.\"a b\"", "$.\"\"", "$.\"0\"",
                           "$.\"\\x22\\x5c\\xc3\\xa9\""}) {
    const auto parsed = JsonPath::Parse(path);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    std::string shown = parsed->ToString();
    EXPECT_EQ(*JsonPath::Parse(shown), *parsed) << shown;
  }
  EXPECT_EQ(JsonPath::Parse("$.\"a\"[1]")->ToString(), "$.a[1]");
}

TEST(JsonPathTest, PathsThatAreNoneAreRefused) {
  for (const char* path : {"", "a", "$", "$a", "$.", "$.a.", "$..a", "$[", "$[]", "$[-1]", "$[1",
                           "$[4294967296]", "$.\"a", "$.\"a\"b", "$.a b", "$.1", "$.\"\\xff\"",
                           "$.\"\\x\"", "$[1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1]"}) {
    EXPECT_EQ(JsonPath::Parse(path).status().code(), StatusCode::kInvalidArgument) << path;
  }
}

}  // namespace
}  // namespace tamis
