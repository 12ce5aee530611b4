#include "tamis/table/cell_encoding.h"

#include <gtest/gtest.h>

#include <limits>

#include "tamis/table/testing/random_values.h"

namespace tamis {
namespace {

using E = CellEncoding;

constexpr int kEncodings = static_cast<int>(E::kBigDecimal) + 1;

// Calls f(type, encoding) for every pair that there is.
template <class F>
void ForEachPair(F f) {
  for (const Type type : kAllTypes) {
    for (int i = 1; i < kEncodings; ++i) {
      const auto encoding = static_cast<E>(i);
      if (IsEncodingOf(type, encoding)) f(type, encoding);
    }
  }
}

std::string Bytes(std::initializer_list<int> bytes) {
  std::string out;
  for (const int byte : bytes) out += static_cast<char>(byte);
  return out;
}

TEST(CellEncodingTest, EveryTypeHasItsEncodings) {
  int pairs = 0;
  ForEachPair([&](Type, E) { ++pairs; });
  EXPECT_EQ(pairs, 24);
  for (const Type type : kAllTypes) EXPECT_TRUE(IsEncodingOf(type, DefaultEncoding(type)));
  EXPECT_FALSE(IsEncodingOf(Type::kText, E::kLong));
  EXPECT_FALSE(IsEncodingOf(Type::kText, E::kNone));
  EXPECT_FALSE(IsEncodingOf(Type::kText, static_cast<E>(200)));
  for (int i = 1; i < kEncodings; ++i) {
    const auto encoding = static_cast<E>(i);
    EXPECT_EQ(*ParseEncoding(EncodingName(encoding)), encoding);
  }
  EXPECT_FALSE(ParseEncoding("none").ok());
  EXPECT_FALSE(ParseEncoding("utf16").ok());
}

TEST(CellEncodingTest, EncodedValueDecodesToItself) {
  Random random(1);
  ForEachPair([&](Type type, E encoding) {
    int encoded = 0;
    for (int i = 0; i < 2000; ++i) {
      const Value value = RandomValue(type, random);
      const auto bytes = EncodeCell(encoding, value);
      if (!bytes.ok()) {
        EXPECT_EQ(bytes.status().code(), StatusCode::kInvalidArgument);
        continue;
      }
      ++encoded;
      const auto back = DecodeCell(type, encoding, *bytes);
      ASSERT_TRUE(back.has_value()) << EncodingName(encoding) << " " << value.ToString();
      EXPECT_EQ(*back, value) << EncodingName(encoding);
      if (const auto width = EncodingWidth(type, encoding)) {
        EXPECT_EQ(bytes->size(), *width);
      }
    }
    EXPECT_GT(encoded, 100) << EncodingName(encoding);
  });
}

TEST(CellEncodingTest, DecodedValueCanBeEncoded) {
  Random random(2);
  ForEachPair([&](Type type, E encoding) {
    for (int i = 0; i < 5000; ++i) {
      std::string bytes;
      const size_t size = EncodingWidth(type, encoding).value_or(random.Uniform(12));
      while (bytes.size() < size) {
        bytes += static_cast<char>(random.OneIn(3) ? "0123456789.-eE"[random.Uniform(14)]
                                                   : random.Uniform(256));
      }
      const auto value = DecodeCell(type, encoding, bytes);
      if (!value.has_value()) continue;
      ASSERT_EQ(value->type(), type);
      const auto canonical = EncodeCell(encoding, *value);
      ASSERT_TRUE(canonical.ok()) << canonical.status();
      EXPECT_EQ(DecodeCell(type, encoding, *canonical), *value);
    }
  });
}

TEST(CellEncodingTest, AnotherWidthDoesNotDecode) {
  ForEachPair([&](Type type, E encoding) {
    const auto width = EncodingWidth(type, encoding);
    if (!width) return;
    EXPECT_FALSE(DecodeCell(type, encoding, "").has_value());
    EXPECT_FALSE(DecodeCell(type, encoding, std::string(*width + 1, '\0')).has_value());
    EXPECT_FALSE(DecodeCell(type, encoding, std::string(*width - 1, '\0')).has_value());
  });
}

TEST(CellEncodingTest, NumbersAreEncodedAsOtherProgramsWriteThem) {
  EXPECT_EQ(*EncodeCell(E::kLong, Value::Int64(-2)),
            Bytes({255, 255, 255, 255, 255, 255, 255, 254}));
  EXPECT_EQ(*EncodeCell(E::kInt, Value::Int64(1000000)), Bytes({0, 0x0f, 0x42, 0x40}));
  EXPECT_EQ(*EncodeCell(E::kShort, Value::Int64(-32768)), Bytes({0x80, 0}));
  EXPECT_EQ(*EncodeCell(E::kByte, Value::Int64(-1)), Bytes({255}));
  EXPECT_EQ(*EncodeCell(E::kPhoenixLong, Value::Int64(-1)),
            Bytes({0x7f, 255, 255, 255, 255, 255, 255, 255}));
  EXPECT_EQ(*EncodeCell(E::kPhoenixInt, Value::Int64(1)), Bytes({0x80, 0, 0, 1}));
  EXPECT_EQ(*EncodeCell(E::kDouble, *Value::Double(-2.5)), Bytes({0xc0, 4, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(*EncodeCell(E::kFloat, *Value::Double(1.5)), Bytes({0x3f, 0xc0, 0, 0}));
  EXPECT_EQ(*EncodeCell(E::kPhoenixDouble, *Value::Double(0)), Bytes({0x80, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(*EncodeCell(E::kPhoenixDouble, *Value::Double(-2.5)),
            Bytes({0x3f, 0xfc, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(*EncodeCell(E::kPhoenixFloat, *Value::Double(1.5)), Bytes({0xbf, 0xc0, 0, 1}));
  EXPECT_EQ(*EncodeCell(E::kMillis, Value::Timestamp(-1000)),
            Bytes({255, 255, 255, 255, 255, 255, 255, 255}));
  EXPECT_EQ(*EncodeCell(E::kPhoenixDate, Value::Timestamp(1000)),
            Bytes({0x80, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(*EncodeCell(E::kBigDecimal, *Value::Decimal("-1.28")), Bytes({0, 0, 0, 2, 0x80}));
  EXPECT_EQ(*EncodeCell(E::kBigDecimal, *Value::Decimal("1.28")), Bytes({0, 0, 0, 2, 0, 0x80}));
  EXPECT_EQ(*EncodeCell(E::kBigDecimal, *Value::Decimal("0")), Bytes({0, 0, 0, 0, 0}));
  EXPECT_EQ(*EncodeCell(E::kBigDecimal, *Value::Decimal("100")), Bytes({255, 255, 255, 254, 1}));
}

TEST(CellEncodingTest, ValueThatDoesNotFitIsRefused) {
  EXPECT_FALSE(EncodeCell(E::kByte, Value::Int64(300)).ok());
  EXPECT_FALSE(EncodeCell(E::kByte, Value::Int64(-129)).ok());
  EXPECT_TRUE(EncodeCell(E::kByte, Value::Int64(-128)).ok());
  EXPECT_FALSE(EncodeCell(E::kFloat, *Value::Double(0.1)).ok());
  EXPECT_FALSE(EncodeCell(E::kFloat, *Value::Double(1e300)).ok());
  EXPECT_FALSE(EncodeCell(E::kPhoenixFloat, *Value::Double(-1e-300)).ok());
  EXPECT_FALSE(EncodeCell(E::kMillis, Value::Timestamp(1)).ok());
  EXPECT_FALSE(EncodeCell(E::kSeconds, Value::Timestamp(-1)).ok());
  EXPECT_FALSE(EncodeCell(E::kLong, Value::Text("5")).ok());
  EXPECT_FALSE(EncodeCell(E::kLong, Value()).ok());
  EXPECT_FALSE(EncodeCell(E::kBigDecimal, *Value::Decimal(std::string(20000, '7'))).ok());
}

TEST(CellEncodingTest, InvalidBytesDoNotDecode) {
  const auto none = [](Type type, E encoding, const std::string& bytes) {
    EXPECT_FALSE(DecodeCell(type, encoding, bytes).has_value()) << EncodingName(encoding);
  };
  none(Type::kDouble, E::kDouble, Bytes({0x7f, 0xf8, 0, 0, 0, 0, 0, 0}));        // NaN
  none(Type::kDouble, E::kFloat, Bytes({0xff, 0xc0, 0, 0}));                     // NaN
  none(Type::kDouble, E::kPhoenixDouble, Bytes({255, 0xf8, 0, 0, 0, 0, 0, 1}));  // NaN
  none(Type::kDouble, E::kPhoenixDouble, std::string(8, '\0'));                  // NaN
  for (const char* text : {"", "NaN", "nan", "inf", "+1", "1e", "1e999", "1e-999", "0x10", " 1"}) {
    none(Type::kDouble, E::kText, text);
  }
  for (const char* text : {"", "+1", "1.0", " 1", "9223372036854775808", "-"}) {
    none(Type::kInt64, E::kText, text);
  }
  for (const char* text : {"", "yes", "1", "truE "}) none(Type::kBool, E::kText, text);
  none(Type::kBool, E::kPhoenix, Bytes({2}));
  none(Type::kTimestamp, E::kText, "yesterday");
  none(Type::kTimestamp, E::kMillis, Bytes({0x7f, 255, 255, 255, 255, 255, 255, 255}));
  none(Type::kDecimal, E::kText, "1,5");
  none(Type::kDecimal, E::kBigDecimal, Bytes({0, 0, 0, 1}));
  none(Type::kDecimal, E::kBigDecimal, std::string(kMaxBigDecimalBytes + 1, '\1'));
}

TEST(CellEncodingTest, SeveralByteStringsMayBeOneValue) {
  EXPECT_EQ(DecodeCell(Type::kBool, E::kByte, "\x01"), Value::Bool(true));
  EXPECT_EQ(DecodeCell(Type::kBool, E::kText, "TRUE"), Value::Bool(true));
  EXPECT_EQ(DecodeCell(Type::kInt64, E::kText, "-007"), Value::Int64(-7));
  EXPECT_EQ(DecodeCell(Type::kDouble, E::kText, "0e9"), *Value::Double(0));
  EXPECT_EQ(DecodeCell(Type::kDouble, E::kText, "5e-324"), *Value::Double(5e-324));
  EXPECT_EQ(DecodeCell(Type::kDouble, E::kText, "-Infinity"),
            *Value::Double(-std::numeric_limits<double>::infinity()));
  EXPECT_EQ(DecodeCell(Type::kDouble, E::kDouble, Bytes({0x80, 0, 0, 0, 0, 0, 0, 0})),
            *Value::Double(0));
  EXPECT_EQ(DecodeCell(Type::kDecimal, E::kBigDecimal, Bytes({0, 0, 0, 1, 255, 246})),
            *Value::Decimal("-1"));
  EXPECT_EQ(DecodeCell(Type::kTimestamp, E::kText, "1970-01-01"), Value::Timestamp(0));
}

// Ranks are what ranges of key bytes are made of.
TEST(CellEncodingTest, RanksAreInTheOrderOfTheValues) {
  Random random(3);
  ForEachPair([&](Type type, E encoding) {
    const auto ranks = RanksOf(type, encoding);
    if (!ranks) return;
    EXPECT_EQ(BytesOfRank(type, encoding, ranks->begin).size(), *EncodingWidth(type, encoding));
    for (int i = 0; i < 3000; ++i) {
      const Value value = RandomValue(type, random);
      const __int128 at = RankAtLeast(encoding, value, true);
      const __int128 above = RankAtLeast(encoding, value, false);
      ASSERT_TRUE(ranks->begin <= at && at <= above && above <= ranks->end);
      const auto decode = [&](__int128 rank) {
        return *DecodeCell(type, encoding, BytesOfRank(type, encoding, rank));
      };
      if (at < ranks->end) {
        EXPECT_GE(decode(at), value);
      }
      if (at > ranks->begin) {
        EXPECT_LT(decode(at - 1), value);
      }
      if (above < ranks->end) {
        EXPECT_GT(decode(above), value);
      }
      if (above > ranks->begin) {
        EXPECT_LE(decode(above - 1), value);
      }
      EXPECT_EQ(at == above, !EncodeCell(encoding, value).ok());
      if (at + 1 < ranks->end && at > ranks->begin) {
        const bool ascending =
            BytesOfRank(type, encoding, at) < BytesOfRank(type, encoding, at + 1);
        const bool split = ranks->order != CellRanks::Order::kByValue && at == -1;
        const bool backwards = ranks->order == CellRanks::Order::kAfterBackwards && at < -1;
        EXPECT_EQ(ascending, !split && !backwards) << EncodingName(encoding);
      }
    }
  });
}

}  // namespace
}  // namespace tamis
