#include "tamis/table/key_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tamis/table/codec.h"
#include "tamis/table/testing/random_keys.h"

namespace tamis {
namespace {

using testing::HasSubstr;
using Op = Predicate::Op;

std::string TextOf(const TableSchema& schema) {
  std::string out;
  for (size_t i = 0; i < schema.key.size(); ++i) {
    out += KeyPartText(schema.columns[schema.key[i]].type, schema.key_parts[i]) + " ";
  }
  return out;
}

std::vector<KeySpan> SpansOf(const TableSchema& schema, Predicate leaf,
                             const std::string& prefix = "") {
  auto spans = KeyFormat(schema).SpansOf(0, leaf, prefix);
  EXPECT_TRUE(spans.has_value());
  return spans.value_or(std::vector<KeySpan>());
}

// A key is what its values give; every condition that they fulfil says that it is there; where a
// part is ordered, keys are in the order of its values.
TEST(KeyFormatTest, KeysOfEveryFormatReadBackAndLieWhereConditionsSay) {
  Random random(1);
  for (const TableSchema& schema : SchemasOfAllKeys()) {
    SCOPED_TRACE(TextOf(schema));
    ASSERT_TRUE(schema.Validate().ok()) << schema.Validate();
    const KeyFormat format(schema);
    std::vector<std::pair<std::string, Row>> keys;
    for (int i = 0; i < 1500; ++i) {
      Row row(schema.columns.size());
      for (size_t part = 0; part < schema.key.size(); ++part) {
        const uint32_t column = schema.key[part];
        // Equal leading parts, as often as not.
        row[column] =
            !keys.empty() && random.OneIn(2)
                ? keys[random.Uniform(keys.size())].second[column]
                : RandomKeyValue(schema.columns[column].type, schema.key_parts[part], random);
      }
      auto key = format.Encode(row);
      if (!key.ok()) {
        EXPECT_EQ(key.status().code(), StatusCode::kInvalidArgument);
        continue;
      }
      Row back;
      ASSERT_TRUE(format.Decode(*key, &back).ok());
      ASSERT_EQ(back, row);
      keys.emplace_back(*std::move(key), std::move(row));
    }
    ASSERT_GT(keys.size(), 200u);
    for (int i = 0; i < 1500; ++i) {
      const auto& [key, row] = keys[random.Uniform(keys.size())];
      const auto& [other_key, other] = keys[random.Uniform(keys.size())];
      std::string prefix;
      for (size_t part = 0; part < schema.key.size(); ++part) {
        const uint32_t column = schema.key[part];
        const Value bound = random.OneIn(2) ? other[column]
                                            : RandomKeyValue(schema.columns[column].type,
                                                             schema.key_parts[part], random);
        for (const Predicate& leaf : LeavesAbout(column, bound)) {
          const auto spans = format.SpansOf(part, leaf, prefix);
          if (leaf.Matches(row)) {
            EXPECT_TRUE(Allows(spans, key)) << leaf.ToString(schema);
          } else if (leaf.kind == Predicate::Kind::kCompare && leaf.op == Op::kEq) {
            EXPECT_FALSE(Allows(spans, key)) << leaf.ToString(schema);
          } else if (spans.has_value() && schema.key_parts[part].form == KeyPart::Form::kFixed) {
            EXPECT_FALSE(Allows(spans, key)) << leaf.ToString(schema);  // exactly those
          }
        }
        ASSERT_TRUE(format.Append(part, row[column], &prefix).ok());
        ASSERT_TRUE(key.starts_with(prefix));
        const KeySpan with_prefix = format.SpanOf(prefix, part + 1);
        EXPECT_TRUE(Allows(std::vector{with_prefix}, key));
        if (row[column] == other[column]) continue;
        if (format.IsOrdered(part)) {
          EXPECT_EQ(key < other_key, row[column] < other[column]);
        }
        EXPECT_FALSE(Allows(std::vector{with_prefix}, other_key) &&
                     schema.key_parts[part].form != KeyPart::Form::kRest);
        break;
      }
    }
  }
}

// For each encoding whose byte order differs from the value order there is a pair that shows it.
TEST(KeyFormatTest, SaysWhichPartsAreNotOrdered) {
  const auto ordered = [](const std::string& part) {
    return KeyFormat(SchemaOfKey({part, "text rest"})).IsOrdered(0);
  };
  for (const char* part :
       {"int64 ordered", "text until=\\x00", "text until=\\x00\\x00", "text width=2",
        "int64 phoenix_long", "int64 phoenix_int", "double phoenix_double", "double phoenix_float",
        "bool byte", "bool phoenix", "timestamp phoenix_date"}) {
    EXPECT_TRUE(ordered(part)) << part;
  }
  for (const char* part : {"text until=|", "int64 long", "int64 byte", "double double",
                           "double float", "timestamp millis", "int64 text:until=|",
                           "decimal text:until=|", "timestamp text:until=|"}) {
    EXPECT_FALSE(ordered(part)) << part;
  }
  EXPECT_TRUE(KeyFormat(SchemaOfKey({"text rest"})).IsOrdered(0));
  EXPECT_FALSE(KeyFormat(SchemaOfKey({"int64 text:rest"})).IsOrdered(0));
}

TEST(KeyFormatTest, TwosComplementGivesTwoRanges) {
  const TableSchema schema = SchemaOfKey({"int64 byte"});
  EXPECT_EQ(SpansOf(schema, Predicate::Compare(0, Op::kLe, Value::Int64(5))),
            (std::vector<KeySpan>{{std::string(1, '\0'), "\x06"}, {"\x80", ""}}));
  EXPECT_EQ(SpansOf(schema, Predicate::Compare(0, Op::kGe, Value::Int64(-2))),
            (std::vector<KeySpan>{{std::string(1, '\0'), "\x80"}, {"\xfe", ""}}));
  EXPECT_EQ(SpansOf(schema, Predicate::Compare(0, Op::kGt, Value::Int64(127))),
            std::vector<KeySpan>());
  EXPECT_EQ(SpansOf(schema, Predicate::Compare(0, Op::kEq, Value::Int64(300))),
            std::vector<KeySpan>());
}

TEST(KeyFormatTest, EqualityOnTheRestIsOneKeyNotAPrefix) {
  const TableSchema schema = SchemaOfKey({"text rest"});
  EXPECT_EQ(SpansOf(schema, Predicate::Compare(0, Op::kEq, Value::Text("ab"))),
            (std::vector<KeySpan>{{"ab", std::string("ab\0", 3)}}));
  EXPECT_EQ(KeyFormat(schema).SpanOf("ab", 1), (KeySpan{"ab", std::string("ab\0", 3)}));
  EXPECT_EQ(SpansOf(schema, Predicate::Prefix(0, "ab")), (std::vector<KeySpan>{{"ab", "ac"}}));
}

TEST(KeyFormatTest, ADelimiterInsideOfAValueIsRefusedAndEqualsNothing) {
  const TableSchema schema = SchemaOfKey({"text until=||", "text rest"});
  const KeyFormat format(schema);
  for (const char* text : {"a||b", "||", "a|", "|"}) {
    const auto key = format.Encode({Value::Text(text), Value::Text("r"), Value()});
    ASSERT_FALSE(key.ok()) << text;
    EXPECT_EQ(key.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(key.status().message(), HasSubstr("delimiter"));
    EXPECT_EQ(SpansOf(schema, Predicate::Compare(0, Op::kEq, Value::Text(text))),
              std::vector<KeySpan>());
  }
  EXPECT_EQ(*format.Encode({Value::Text("a|b"), Value::Text("||"), Value()}), "a|b||||");
  // A smaller byte than the delimiter's may follow: bytes are in another order than values.
  EXPECT_EQ(format.SpansOf(0, Predicate::Compare(0, Op::kLt, Value::Text("b")), ""), std::nullopt);
}

TEST(KeyFormatTest, AKeyThatWeWouldNotWriteDoesNotParse) {
  const auto parses = [](const std::string& part, const std::string& key) {
    Row row;
    return KeyFormat(SchemaOfKey({part})).Decode(key, &row).ok();
  };
  EXPECT_TRUE(parses("int64 text:rest", "7"));
  for (const char* key : {"007", "-0", "+7", "", "x"}) {
    EXPECT_FALSE(parses("int64 text:rest", key));
  }
  EXPECT_TRUE(parses("decimal text:rest", "1.5"));
  EXPECT_FALSE(parses("decimal text:rest", "1.50"));
  EXPECT_TRUE(parses("bool byte", "\xff"));
  EXPECT_FALSE(parses("bool byte", "\x01"));
  EXPECT_FALSE(parses("double double", std::string("\x80\0\0\0\0\0\0\0", 8)));    // -0.0
  EXPECT_FALSE(parses("double double", std::string("\x7f\xf8\0\0\0\0\0\0", 8)));  // NaN
  EXPECT_FALSE(parses("int64 int", "12345"));                                     // too long
  EXPECT_FALSE(parses("int64 int", "123"));
  EXPECT_FALSE(parses("text until=|", "abc"));  // no delimiter
  EXPECT_FALSE(parses("text until=|", "a|b"));  // bytes are left
  EXPECT_FALSE(parses("text rest", ""));        // no key is empty
}

TEST(KeyFormatTest, AnOrderedKeyIsAsEver) {
  const TableSchema schema = SchemaOfAllTypes();
  Random random(5);
  const Row row = RandomRow(schema, random);
  EXPECT_EQ(*KeyFormat(schema).Encode(row), EncodeKey(schema, row));
}

TEST(KeyFormatTest, PartsReadAsTheyAreWritten) {
  for (const TableSchema& schema : SchemasOfAllKeys()) {
    for (size_t i = 0; i < schema.key.size(); ++i) {
      const Type type = schema.columns[schema.key[i]].type;
      EXPECT_EQ(*ParseKeyPart(type, KeyPartText(type, schema.key_parts[i])), schema.key_parts[i]);
    }
  }
  const auto refused = [](Type type, const std::string& text, const std::string& why) {
    const auto part = ParseKeyPart(type, text);
    ASSERT_FALSE(part.ok()) << text;
    EXPECT_THAT(part.status().message(), HasSubstr(why));
  };
  refused(Type::kText, "utf8", "no fixed width");
  refused(Type::kText, "long", "has no encoding long");
  refused(Type::kText, "until=", "1 to 16 bytes");
  refused(Type::kText, "until=\\x0", "\\xNN");
  refused(Type::kText, "until=a:rest", "two forms");
  refused(Type::kText, "width=0", "no fixed width");
  refused(Type::kText, "width=x", "no number");
  refused(Type::kInt64, "long:width=8", "only text and bytes");
  refused(Type::kInt64, "long:rest", "fixed width");
  refused(Type::kDouble, "text:rest", "several spellings");
  refused(Type::kInt64, "longer", "there is no encoding");
}

}  // namespace
}  // namespace tamis
