#include "tamis/table/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tamis/base/random.h"
#include "tamis/table/testing/random_values.h"

namespace tamis {
namespace {

std::string Ordered(const Value& value) {
  std::string out;
  AppendOrdered(value, &out);
  return out;
}

std::string Indexed(const Value& value) {
  std::string out;
  AppendIndexed(value, &out);
  return out;
}

std::string Hex(std::string_view bytes) { return Value::Bytes(std::string(bytes)).ToString(); }

TEST(CodecTest, EncodingsOrderAsValuesDo) {
  Random random(1);
  for (const Type type : kAllTypes) {
    int equal = 0;
    for (int i = 0; i < 20000; ++i) {
      const Value a = RandomCell(type, random);
      const Value b = RandomCell(type, random);
      ASSERT_EQ(a <=> b, Ordered(a).compare(Ordered(b)) <=> 0)
          << a.ToString() << " " << b.ToString();
      equal += a == b;
    }
    EXPECT_GT(equal, 10) << TypeName(type);
    EXPECT_LT(equal, 19000) << TypeName(type);
  }
}

TEST(CodecTest, NoEncodingIsThePrefixOfAnother) {
  Random random(2);
  for (const Type type : kAllTypes) {
    for (int i = 0; i < 20000; ++i) {
      const Value a = RandomCell(type, random);
      const Value b = RandomCell(type, random);
      ASSERT_EQ(Ordered(b).starts_with(Ordered(a)), a == b) << a.ToString() << " " << b.ToString();
      ASSERT_EQ(Indexed(b).starts_with(Indexed(a)), Indexed(b) == Indexed(a));
    }
  }
}

TEST(CodecTest, ConcatenationsOrderColumnByColumn) {
  Random random(3);
  for (int i = 0; i < 50000; ++i) {
    Row a, b;
    std::string encoded_a, encoded_b;
    for (int column = 0; column < 3; ++column) {
      const Type type = kAllTypes[random.Uniform(std::size(kAllTypes))];
      a.push_back(RandomCell(type, random));
      b.push_back(random.OneIn(2) ? a.back() : RandomCell(type, random));
      AppendOrdered(a.back(), &encoded_a);
      AppendOrdered(b.back(), &encoded_b);
    }
    ASSERT_EQ(a <=> b, encoded_a.compare(encoded_b) <=> 0);
  }
}

TEST(CodecTest, ValuesReadBack) {
  Random random(4);
  for (const Type type : kAllTypes) {
    for (int i = 0; i < 5000; ++i) {
      const Value value = RandomCell(type, random);
      const std::string bytes = Ordered(value) + "rest";
      std::string_view in = bytes;
      const auto back = ReadOrdered(type, &in);
      ASSERT_TRUE(back.ok()) << back.status();
      ASSERT_EQ(*back, value);
      ASSERT_EQ(in, "rest");
      std::string_view torn = std::string_view(bytes).substr(0, random.Uniform(bytes.size() - 4));
      ASSERT_FALSE(ReadOrdered(type, &torn).ok());
    }
  }
}

TEST(CodecTest, CutValuesAreEqualOrInOrder) {
  Random random(5);
  int cut = 0;
  int merged = 0;
  for (const Type type : {Type::kText, Type::kBytes, Type::kDecimal}) {
    for (int i = 0; i < 20000; ++i) {
      const Value a = RandomCell(type, random);
      const Value b = RandomCell(type, random);
      std::string bytes_a, bytes_b;
      const bool cut_a = AppendIndexed(a, &bytes_a);
      const bool cut_b = AppendIndexed(b, &bytes_b);
      if (a < b) {
        ASSERT_LE(bytes_a, bytes_b);
      }
      if (a != b && bytes_a == bytes_b) {
        ASSERT_TRUE(cut_a && cut_b);
        ++merged;
      }
      if (a == b) {
        ASSERT_EQ(bytes_a, bytes_b);
      }
      if (!cut_a) {
        ASSERT_EQ(bytes_a, Ordered(a));
      }
      ASSERT_LE(bytes_a.size(), 2 * kIndexValueLimit + 8);
      cut += cut_a;
    }
  }
  EXPECT_GT(cut, 100);
  EXPECT_GT(merged, 0);
}

TEST(CodecTest, AValueIsSkippedWholeOrNotAtAll) {
  Random random(9);
  for (const Type type : kAllTypes) {
    for (int i = 0; i < 2000; ++i) {
      const std::string bytes = Indexed(RandomCell(type, random));
      const std::string entry = bytes + "rest";
      std::string_view in = entry;
      ASSERT_TRUE(SkipIndexed(type, &in));
      ASSERT_EQ(in, "rest");
      std::string_view torn = std::string_view(bytes).substr(0, random.Uniform(bytes.size()));
      ASSERT_FALSE(SkipIndexed(type, &torn));
    }
  }
}

TEST(CodecTest, ACutValueIsNotReadAsAWholeOne) {
  const std::string bytes = Indexed(Value::Text(std::string(kIndexValueLimit + 1, 'x')));
  std::string_view in = bytes;
  EXPECT_EQ(ReadOrdered(Type::kText, &in).status().code(), StatusCode::kDataLoss);
}

TEST(CodecTest, GoldenBytes) {
  EXPECT_EQ(Hex(Ordered(Value())), "0x01");
  EXPECT_EQ(Hex(Ordered(Value::Text(std::string("a\0b", 3)))), "0x026100ff620001");
  EXPECT_EQ(Hex(Ordered(Value::Bytes(""))), "0x020001");
  EXPECT_EQ(Hex(Ordered(Value::Int64(-1))), "0x027fffffffffffffff");
  EXPECT_EQ(Hex(Ordered(Value::Timestamp(1))), "0x028000000000000001");
  EXPECT_EQ(Hex(Ordered(*Value::Double(1.0))), "0x02bff0000000000000");
  EXPECT_EQ(Hex(Ordered(*Value::Double(-1.0))), "0x02400fffffffffffff");
  EXPECT_EQ(Hex(Ordered(Value::Bool(true))), "0x0201");
  EXPECT_EQ(Hex(Ordered(*Value::Decimal("0.00"))), "0x0202");
  EXPECT_EQ(Hex(Ordered(*Value::Decimal("12.5"))),
            "0x020380000002"
            "0d3300");
  EXPECT_EQ(Hex(Ordered(*Value::Decimal("-12.5"))),
            "0x02017ffffffd"
            "f2ccff");
}

TEST(CodecTest, KeysAndRowsReadBack) {
  Random random(6);
  const TableSchema schema = SchemaOfAllTypes();
  for (int i = 0; i < 5000; ++i) {
    const Row row = RandomRow(schema, random);
    const std::string key = EncodeKey(schema, row);
    const std::string bytes = EncodeRow(schema, row);
    Row back;
    ASSERT_TRUE(DecodeKey(schema, key, &back).ok());
    ASSERT_TRUE(DecodeRow(schema, bytes, &back).ok());
    ASSERT_EQ(back, row);
    ASSERT_FALSE(DecodeKey(schema, key + "x", &back).ok());
  }
}

TEST(CodecTest, AnAddedColumnReadsNullAndADroppedOneIsSkipped) {
  Random random(7);
  TableSchema schema = SchemaOfAllTypes();
  const Row row = RandomRow(schema, random);
  const std::string bytes = EncodeRow(schema, row);

  TableSchema later = schema;
  later.columns.push_back({.id = 100, .name = "added", .type = Type::kText});
  Row back;
  ASSERT_TRUE(DecodeRow(later, bytes, &back).ok());
  EXPECT_TRUE(back[7].is_null());

  back.assign(8, Value());
  back[7] = Value::Text("new");
  back[0] = row[0];
  back[2] = row[2];
  Row earlier;
  ASSERT_TRUE(DecodeRow(schema, EncodeRow(later, back), &earlier).ok());
  EXPECT_EQ(earlier.size(), 7u);
}

TEST(CodecTest, ARowOfAnotherTypeIsDataLoss) {
  TableSchema schema = SchemaOfAllTypes();
  Row row(7);
  row[1] = Value::Bytes("abc");
  const std::string bytes = EncodeRow(schema, row);
  schema.columns[1].type = Type::kInt64;
  Row back;
  EXPECT_EQ(DecodeRow(schema, bytes, &back).code(), StatusCode::kDataLoss);
}

TEST(CodecTest, IndexEntriesSplitIntoValuesAndKey) {
  Random random(8);
  const TableSchema schema = SchemaOfAllTypes();
  for (int i = 0; i < 2000; ++i) {
    const Row row = RandomRow(schema, random);
    const std::string key = EncodeKey(schema, row);
    for (const IndexSpec& index : schema.indexes) {
      const std::vector<std::string> prefixes = IndexPrefixes(index, row);
      ASSERT_EQ(prefixes.size(), index.columns.size());
      for (size_t n = 1; n < prefixes.size(); ++n) {
        ASSERT_TRUE(prefixes[n].starts_with(prefixes[n - 1]));
      }
      const std::string entry = prefixes.back() + key;
      const auto parts = SplitIndexEntry(schema, index, entry);
      ASSERT_TRUE(parts.ok()) << parts.status();
      ASSERT_EQ(parts->first, prefixes.back());
      ASSERT_EQ(parts->second, key);
    }
  }
}

}  // namespace
}  // namespace tamis
