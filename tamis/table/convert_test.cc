#include <gtest/gtest.h>

#include <cmath>

#include "tamis/table/decimal.h"
#include "tamis/table/predicate.h"
#include "tamis/table/schema.h"
#include "tamis/table/testing/random_values.h"

namespace tamis {
namespace {

using Op = Predicate::Op;

constexpr Op kAllOps[] = {Op::kEq, Op::kNe, Op::kLt, Op::kLe, Op::kGt, Op::kGe};

bool Holds(Op op, std::strong_ordering order) {
  switch (op) {
    case Op::kEq:
      return order == 0;
    case Op::kNe:
      return order != 0;
    case Op::kLt:
      return order < 0;
    case Op::kLe:
      return order <= 0;
    case Op::kGt:
      return order > 0;
    default:
      return order >= 0;
  }
}

TableSchema OneColumn(Type type) {
  TableSchema schema;
  schema.name = "t";
  schema.columns = {{.id = 1, .name = "c", .type = type}};
  return schema;
}

// Exact: infinities stand beyond every number.
std::strong_ordering CompareNumbers(const Value& a, const Value& b) {
  const auto infinite = [](const Value& v) {
    return v.type() != Type::kDouble || !std::isinf(v.dbl()) ? 0 : v.dbl() > 0 ? 1 : -1;
  };
  if (infinite(a) != 0 || infinite(b) != 0) return infinite(a) <=> infinite(b);
  const auto exact = [](const Value& v) {
    return v.type() == Type::kDouble ? Decimal::FromDouble(v.dbl())
                                     : *Decimal::Parse(std::to_string(v.int64()));
  };
  const auto decimal = [&](const Value& v) {
    return v.type() == Type::kDecimal ? *Decimal::Parse(v.str()) : exact(v);
  };
  return decimal(a) <=> decimal(b);
}

TEST(CompareConvertedTest, NumbersCompareExactly) {
  Random random(1);
  for (const Type column : {Type::kInt64, Type::kDouble, Type::kBool, Type::kDecimal}) {
    const TableSchema schema = OneColumn(column);
    for (const Type given : {Type::kInt64, Type::kDouble, Type::kDecimal}) {
      for (int i = 0; i < 3000; ++i) {
        // A double on a decimal column means its shortest text, which is tested below.
        if (column == Type::kDecimal && given == Type::kDouble) continue;
        Value value = RandomValue(given, random);
        const Value cell = RandomValue(column, random);
        for (const Op op : kAllOps) {
          const auto predicate = CompareConverted(schema, 0, op, value);
          ASSERT_TRUE(predicate.has_value());
          ASSERT_TRUE(predicate->Validate(schema).ok());
          ASSERT_EQ(predicate->Evaluate({cell}), Holds(op, CompareNumbers(cell, value)))
              << cell.ToString() << " " << predicate->ToString(schema) << " from "
              << value.ToString();
          ASSERT_EQ(predicate->Evaluate({Value()}), std::nullopt);
          ASSERT_EQ(predicate->Normalized().Matches({cell}), predicate->Matches({cell}));
        }
      }
    }
  }
}

TEST(CompareConvertedTest, ConvertsAsTheHeaderSays) {
  const TableSchema schema = OneColumn(Type::kInt64);
  const auto text = [&](Op op, const Value& value) {
    const auto predicate = CompareConverted(schema, 0, op, value);
    return predicate ? predicate->Normalized().ToString(schema) : "not comparable";
  };
  EXPECT_EQ(text(Op::kGt, *Value::Double(2.5)), "c > 2");
  EXPECT_EQ(text(Op::kLt, *Value::Double(-2.5)), "c <= -3");
  EXPECT_EQ(text(Op::kEq, *Value::Double(2.5)), "false");
  EXPECT_EQ(text(Op::kNe, *Value::Double(2.5)), "c IS NOT NULL");
  EXPECT_EQ(text(Op::kEq, *Value::Double(5.0)), "c = 5");
  EXPECT_EQ(text(Op::kEq, Value::Text(" 5 ")), "c = 5");
  EXPECT_EQ(text(Op::kEq, Value::Text("5.0")), "c = 5");
  EXPECT_EQ(text(Op::kLt, *Value::Double(1e300)), "c <= 9223372036854775807");
  EXPECT_EQ(text(Op::kGt, *Value::Decimal("-1e1000000")), "c IS NOT NULL");
  EXPECT_EQ(text(Op::kEq, Value::Text("abc")), "not comparable");
  EXPECT_EQ(text(Op::kEq, Value()), "false");
}

TEST(CompareConvertedTest, OtherTypes) {
  const auto text = [&](Type type, const Value& value) {
    const TableSchema schema = OneColumn(type);
    const auto predicate = CompareConverted(schema, 0, Op::kEq, value);
    return predicate ? predicate->ToString(schema) : "not comparable";
  };
  EXPECT_EQ(text(Type::kText, Value::Int64(5)), "c = '5'");
  EXPECT_EQ(text(Type::kText, *Value::Double(5)), "c = '5.0'");
  EXPECT_EQ(text(Type::kText, *Value::Double(1e20)), "c = '1.0e+20'");
  EXPECT_EQ(text(Type::kText, *Value::Double(0.1)), "c = '0.1'");
  EXPECT_EQ(text(Type::kText, Value::Bytes("5")), "not comparable");
  EXPECT_EQ(text(Type::kBytes, Value::Text("5")), "not comparable");
  EXPECT_EQ(text(Type::kBytes, Value::Bytes("5")), "c = x'35'");
  EXPECT_EQ(text(Type::kDecimal, *Value::Double(0.1)), "c = 0.1");
  EXPECT_EQ(text(Type::kDecimal, Value::Text("0.10")), "c = 0.1");
  EXPECT_EQ(text(Type::kDouble, Value::Text("inf")), "c = inf");
  EXPECT_EQ(text(Type::kDouble, Value::Text(" 0.1 ")), "c = 0.1");
  EXPECT_EQ(text(Type::kDouble, Value::Text("1e22")), "c = 1e+22");
  EXPECT_EQ(text(Type::kDouble, Value::Text("3")), "c = 3.0");
  EXPECT_EQ(text(Type::kDouble, Value::Text("9007199254740993")), "c < -inf");
  EXPECT_EQ(text(Type::kBool, Value::Text("true")), "c = true");
  EXPECT_EQ(text(Type::kBool, Value::Int64(1)), "c = true");
  EXPECT_EQ(text(Type::kTimestamp, Value::Text("2026-01-02")), "c = '2026-01-02T00:00:00Z'");
  EXPECT_EQ(text(Type::kTimestamp, Value::Text("soon")), "not comparable");
  EXPECT_EQ(text(Type::kTimestamp, Value::Int64(5)), "not comparable");
}

}  // namespace
}  // namespace tamis
