#include "tamis/table/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tamis/table/codec.h"
#include "tamis/table/definition.h"
#include "tamis/table/schema_change.h"
#include "tamis/table/stored_row.h"
#include "tamis/table/table.pb.h"

namespace tamis {
namespace {

using testing::HasSubstr;
using Function = Expression::Function;

TEST(ExpressionTest, LowerChangesAsciiLettersAlone) {
  const Expression lower{.function = Function::kLower};
  EXPECT_EQ(lower.Evaluate(Value::Text("AZ@[az\xc3\x89\xff")), Value::Text("az@[az\xc3\x89\xff"));
  EXPECT_EQ(lower.Evaluate(Value::Text(std::string("A\0B", 3))),
            Value::Text(std::string("a\0b", 3)));
  EXPECT_TRUE(lower.Evaluate(Value()).is_null());
}

TEST(ExpressionTest, SubstrCountsCharacters) {
  const Expression two{.function = Function::kSubstr, .length = 2};
  EXPECT_EQ(two.Evaluate(Value::Text("\xc3\xa9\xf0\x9f\x98\x80x")),
            Value::Text("\xc3\xa9\xf0\x9f\x98\x80"));
  EXPECT_EQ(two.Evaluate(Value::Text("a")), Value::Text("a"));
  EXPECT_EQ(two.Evaluate(Value::Text("")), Value::Text(""));
  EXPECT_EQ(two.Evaluate(Value::Text(std::string("\0\0\0", 3))),
            Value::Text(std::string("\0\0", 2)));
  EXPECT_TRUE(two.Evaluate(Value::Text("a\xff")).is_null());
  EXPECT_EQ(two.Evaluate(Value::Text("ab\xff")), Value::Text("ab"));
}

TEST(ExpressionTest, DateAndHourAreThoseOfUtc) {
  const Expression date{.function = Function::kDate};
  const Expression hour{.function = Function::kHour};
  const auto at = [](const char* text) { return *Value::Parse(Type::kTimestamp, text); };
  EXPECT_EQ(date.Evaluate(at("2026-01-02T23:59:59.999999Z")), Value::Text("2026-01-02"));
  EXPECT_EQ(hour.Evaluate(at("2026-01-02T23:59:59.999999Z")), Value::Int64(23));
  EXPECT_EQ(date.Evaluate(at("1969-12-31T01:00:00Z")), Value::Text("1969-12-31"));
  EXPECT_EQ(hour.Evaluate(at("1969-12-31T01:00:00Z")), Value::Int64(1));
  const Value least = Value::Timestamp(std::numeric_limits<int64_t>::min());
  EXPECT_EQ(date.Evaluate(least), Value::Text("-290308-12-21"));
  EXPECT_EQ(hour.Evaluate(least), Value::Int64(19));
}

std::vector<std::string> Definition() {
  return {"id int64",
          "low = lower(name)",
          "name text",
          "at timestamp",
          "day text = date(at)",
          "hour = hour(at)",
          "start = substr(name, 1, 3)",
          "city = json_text(name, '$.address.\"city name\"[0]')",
          "key (id)",
          "index low (low, day)"};
}

TEST(ComputedColumnTest, DefinitionsReadBack) {
  const auto schema = ParseDefinition("t", Definition());
  ASSERT_TRUE(schema.ok()) << schema.status();
  EXPECT_EQ(schema->columns[1].expression->source, 2u);
  EXPECT_EQ(schema->columns[5].type, Type::kInt64);
  const std::string text = schema->ToString();
  EXPECT_THAT(text, HasSubstr("low text = lower(name)"));
  EXPECT_THAT(text, HasSubstr("start text = substr(name, 1, 3)"));
  EXPECT_THAT(text, HasSubstr("json_text(name, '$.address.\"city\\x20name\"[0]')"));
  const auto back = ParseSchema(SerializeSchema(*schema));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->ToString(), text);
  EXPECT_EQ(SerializeSchema(*back), SerializeSchema(*schema));
  EXPECT_TRUE(CheckSameDefinition(*back, *schema).ok());
}

TEST(ComputedColumnTest, AnotherExpressionIsAnotherDefinition) {
  auto other = Definition();
  other[6] = "start = substr(name, 1, 4)";
  const Status status =
      CheckSameDefinition(*ParseDefinition("t", Definition()), *ParseDefinition("t", other));
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr("substr(name, 1, 4)"));
}

TEST(ComputedColumnTest, ExpressionsThatDoNotFitAreRefused) {
  const auto message_with = [](const std::string& part) {
    return ParseDefinition("t", {"id int64", "name text", "at timestamp", "low = lower(name)", part,
                                 "key (id)"})
        .status()
        .message();
  };
  EXPECT_THAT(message_with("x = upper(name)"), HasSubstr("no function of a computed column"));
  EXPECT_THAT(message_with("x = lower(nobody)"), HasSubstr("which table \"t\" does not have"));
  EXPECT_THAT(message_with("x = lower(at)"), HasSubstr("needs a column of type text"));
  EXPECT_THAT(message_with("x = hour(name)"), HasSubstr("needs a column of type timestamp"));
  EXPECT_THAT(message_with("x = lower(low)"), HasSubstr("is computed itself"));
  EXPECT_THAT(message_with("x = lower(x)"), HasSubstr("is computed itself"));
  EXPECT_THAT(message_with("x bool = lower(name)"), HasSubstr("is of type text, not bool"));
  EXPECT_THAT(message_with("x not null = lower(name)"), HasSubstr("must be nullable"));
  EXPECT_THAT(message_with("x = substr(name, 1, 0)"), HasSubstr("1 to 1024"));
  EXPECT_THAT(message_with("x = substr(name, 2, 3)"), HasSubstr("substr(COLUMN, 1, LENGTH)"));
  EXPECT_THAT(message_with("x = json_text(name, 'a')"), HasSubstr("it begins with $"));
  EXPECT_THAT(message_with("x = lower(name"), HasSubstr("lower(COLUMN)"));
}

TEST(ComputedColumnTest, HasNoPlaceInARow) {
  const auto in_key = ParseDefinition("t", {"name text", "x = lower(name)", "key (x)"});
  EXPECT_THAT(in_key.status().message(), HasSubstr("must not be in the key"));
  const auto in_cell =
      ParseDefinition("t", {"x cell 'd:x' = lower(name)", "name text", "key (name)"});
  EXPECT_THAT(in_cell.status().message(), HasSubstr("has a cell, but is computed"));
}

TEST(ComputedColumnTest, SoftwareWithoutExpressionsRefusesTheType) {
  const auto schema = ParseDefinition("t", Definition());
  pb::Schema message;
  ASSERT_TRUE(message.ParseFromString(SerializeSchema(*schema)));
  EXPECT_EQ(static_cast<int>(message.columns(1).type()), 8);
  message.mutable_columns(1)->clear_expression();
  EXPECT_EQ(ParseSchema(message.SerializeAsString()).status().code(), StatusCode::kDataLoss);
  ASSERT_TRUE(message.ParseFromString(SerializeSchema(*schema)));
  message.mutable_columns(1)->set_type(pb::TEXT);
  EXPECT_EQ(ParseSchema(message.SerializeAsString()).status().code(), StatusCode::kDataLoss);
  ASSERT_TRUE(message.ParseFromString(SerializeSchema(*schema)));
  message.mutable_columns(1)->mutable_expression()->set_function(
      static_cast<pb::Expression::Function>(77));
  EXPECT_EQ(ParseSchema(message.SerializeAsString()).status().code(), StatusCode::kDataLoss);
}

TEST(ComputedColumnTest, ValuesAreComputedWhenARowIsReadAndNotStored) {
  for (const bool cells : {false, true}) {
    auto definition = Definition();
    if (cells) {
      definition[2] = "name text cell 'd:name'";
      definition[3] = "at timestamp cell 'd:at'";
    }
    const auto schema = ParseDefinition("t", definition);
    ASSERT_TRUE(schema.ok()) << schema.status();
    Row row(schema->columns.size());
    row[0] = Value::Int64(1);
    row[1] = Value::Text("not this");
    row[2] = Value::Text("ABCD");
    row[4] = Value::Text("nor this");
    const auto stored = WriteStoredRow(*schema, row, std::nullopt, std::nullopt);
    ASSERT_TRUE(stored.ok()) << stored.status();
    EXPECT_EQ(stored->find("not this"), std::string::npos);
    std::string key;
    AppendOrdered(row[0], &key);
    const auto read = ReadStoredRow(*schema, key, *stored);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->row[1], Value::Text("abcd"));
    EXPECT_EQ(read->row[6], Value::Text("ABC"));
    EXPECT_TRUE(read->row[4].is_null()) << "the timestamp is NULL";
  }
}

TEST(ComputedColumnTest, IsAddedToATable) {
  TableSchema schema = *NewTable(*ParseDefinition("t", {"id int64", "name text", "key (id)"}), 1);
  const auto column = ParseColumnDefinition(schema, "low = lower(name)");
  ASSERT_TRUE(column.ok()) << column.status();
  schema = *WithColumn(schema, *column);
  EXPECT_TRUE(schema.columns[2].is_computed());
  EXPECT_TRUE(WithIndex(schema, {.name = "low", .columns = {2}}).ok());
  EXPECT_EQ(ParseColumnDefinition(schema, "x = lower(nobody)").status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tamis
