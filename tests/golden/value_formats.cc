#include "tests/golden/formats.h"

#include <cstdlib>
#include <sstream>
#include <utility>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"
#include "tamis/table/codec.h"
#include "tamis/table/decimal.h"
#include "tamis/table/definition.h"
#include "tamis/table/table.pb.h"
#include "tamis/table/testing/random_values.h"
#include "tests/golden/golden_text.h"
#include "tests/golden/golden_values.h"

namespace tamis {
namespace {

std::vector<Value> JsonTexts() {
  std::vector<std::string> texts;
  for (const char* text : {"{}",
                           "[]",
                           "null",
                           "7",
                           "\"a\"",
                           R"({"a": 1})",
                           R"({"a": {"b": "x"}})",
                           R"({"a": {"b": null}, "c": [1, 2.50, -0, 1e400]})",
                           R"([{"a": true}, false])",
                           R"({"a": [0, {"b": [ ] }], "a": 5})",
                           R"({"\u0061": "\u00e9\ud83d\ude00\n\/"})",
                           "{\"\xc3\xa9\": \"\xe6\x97\xa5\"}",
                           R"({"a": "\ud800"})",
                           R"({"a": "\ud800\u0041"})",
                           R"({"a": "a\u0000b"})",
                           R"({"a": 01})",
                           R"({"a": 1.})",
                           R"({"a": 1} x)",
                           R"({"a": 1,})",
                           "{\"a\":\t1\r\n}",
                           "\xef\xbb\xbf{\"a\": 1}",
                           "{\"a\": \"\xff\"}",
                           R"([[1, [2]], "a"])"}) {
    texts.emplace_back(text);
  }
  Random random(24);
  const size_t whole = texts.size();
  for (int i = 0; i < 200; ++i) {
    std::string text = texts[random.Uniform(whole)];
    const size_t at = random.Uniform(text.size() + 1);
    static constexpr std::string_view kBytes = "{}[]\",:\\u0e-. a\xc3\xff";
    if (random.OneIn(2)) {
      text.insert(at, 1, random.OneIn(2) ? ' ' : '\n');
    } else {
      text.insert(at, 1, kBytes[random.Uniform(kBytes.size())]);
      if (random.OneIn(2)) text.erase(random.Uniform(text.size()), 1);
    }
    texts.push_back(std::move(text));
  }
  for (const int depth : {99, 100, 101}) {
    texts.push_back("{\"a\":1,\"b\":" + std::string(depth, '[') + std::string(depth, ']') + "}");
  }
  std::vector<Value> values;
  for (std::string& text : texts) values.push_back(Value::Text(std::move(text)));
  return values;
}

}  // namespace

// "V value ordered indexed cut": a value as it stands in keys and in index entries.
std::string Codec() {
  std::ostringstream out;
  out << "# V value ordered indexed whole|cut\n";
  for (const Type type : kAllTypes) {
    std::vector<Value> values = Values(type);
    values.emplace_back();
    if (type == Type::kDecimal) {
      values.push_back(*Value::Decimal("0." + std::string(2047, '7')));
      values.push_back(*Value::Decimal("-0." + std::string(2049, '7')));
    }
    for (const Value& value : values) {
      std::string ordered;
      std::string indexed;
      AppendOrdered(value, &ordered);
      const bool cut = AppendIndexed(value, &indexed);
      out << "V " << Text(value) << " " << Hex(ordered) << " " << Hex(indexed) << " "
          << (cut ? "cut" : "whole") << "\n";
    }
  }
  return out.str();
}

// "X expression value result": what computed columns have.
std::string Expressions() {
  std::ostringstream out;
  out << "# X expression value result: a serialized expression, the value of its column, its own\n";
  std::vector<std::string> definition = {"t text", "at timestamp", "low = lower(t)",
                                         "day = date(at)", "hour = hour(at)"};
  for (const int length : {1, 2, 3, 1024}) {
    const std::string n = std::to_string(length);
    definition.push_back("s" + n + " = substr(t, 1, " + n + ")");
  }
  for (const char* path : {"$.a", "$.a.b", "$.a[1]", "$[0]", "$[0][1][0]", "$.\"\\xc3\\xa9\""}) {
    definition.push_back("j" + std::to_string(definition.size()) + " = json_text(t, '" + path +
                         "')");
  }
  definition.emplace_back("key (t, at)");
  const TableSchema schema = *ParseDefinition("t", definition);
  pb::Schema message;
  if (!message.ParseFromString(SerializeSchema(schema))) std::abort();
  for (size_t i = 0; i < schema.columns.size(); ++i) {
    const auto& expression = schema.columns[i].expression;
    if (!expression.has_value()) continue;
    std::vector<Value> values = Values(expression->ArgumentType());
    values.emplace_back();
    if (expression->ArgumentType() == Type::kText) {
      for (const char* text : {"ABC\xc3\x89Z[@", "\xc3\xa9\xf0\x9f\x98\x80z", "a\xed\xa0\x80",
                               "\xf4\x90\x80\x80", "\xc0\x80", "ab\xe6\x97"}) {
        values.push_back(Value::Text(text));
      }
    }
    if (!expression->path.steps.empty()) {
      for (Value& value : JsonTexts()) values.push_back(std::move(value));
    }
    const std::string bytes = message.columns(static_cast<int>(i)).expression().SerializeAsString();
    for (const Value& value : values) {
      out << "X " << Hex(bytes) << " " << Text(value) << " " << Text(expression->Evaluate(value))
          << "\n";
    }
  }
  return out.str();
}

std::string Hashes() {
  std::ostringstream out;
  out << "# H seed size hash: XXH3-64 of `size` bytes, byte i is (131 i + i / 256 + 7) mod 256\n";
  for (const uint64_t seed :
       {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, uint64_t{0x123456789abcdef0}}) {
    for (size_t size = 0; size <= 300; ++size) {
      out << "H " << Hex64(seed) << " " << size << " " << Hex64(Hash(Pattern(size), seed)) << "\n";
    }
  }
  return out.str();
}

std::string Cells() {
  std::ostringstream out;
  out << "# E type encoding value bytes: what a value is written as\n"
         "# D type encoding bytes value: what bytes mean; NULL = they do not decode\n";
  const std::string odd[] = {"",
                             "0",
                             "-0",
                             "007",
                             "-12",
                             "+1",
                             "1.50",
                             "15e-1",
                             ".5",
                             "5.",
                             "1e400",
                             "1e-400",
                             "NaN",
                             "Infinity",
                             "-Infinity",
                             "TRUE",
                             "False",
                             "yes",
                             "2026-01-02",
                             "2026-01-02 03:04",
                             "2026-01-02T03:04:05.25+01:00",
                             "9223372036854775808",
                             std::string(1, '\0'),
                             "\x01",
                             "\x02",
                             "\xff",
                             std::string(4, '\0'),
                             "\x80" + std::string(3, '\0'),
                             "\x7f\xc0" + std::string(2, '\0'),
                             "\xff\x80" + std::string(2, '\0'),
                             std::string(8, '\0'),
                             "\x80" + std::string(7, '\0'),
                             "\x7f\xf8" + std::string(6, '\0'),
                             "\xff\xf0" + std::string(6, '\0'),
                             std::string(8, '\xff'),
                             "\x7f" + std::string(7, '\xff'),
                             std::string("\0\0\0\1\xff\xf6", 6),
                             std::string("\0\0\0\0\0\0\0\7", 8),
                             std::string("\x80\0\0\0\1", 5),
                             std::string("\x7f\xff\xff\xff\1", 5)};
  for (const Type type : kAllTypes) {
    for (int i = 1; i <= static_cast<int>(CellEncoding::kBigDecimal); ++i) {
      const auto encoding = static_cast<CellEncoding>(i);
      if (!IsEncodingOf(type, encoding)) continue;
      const std::string pair =
          std::string(TypeName(type)) + " " + std::string(EncodingName(encoding)) + " ";
      for (const Value& value : Values(type)) {
        out << "E " << pair << Text(value) << " " << Refused(EncodeCell(encoding, value)) << "\n";
      }
      for (const std::string& bytes : odd) {
        out << "D " << pair << Hex(bytes) << " "
            << Text(DecodeCell(type, encoding, bytes).value_or(Value())) << "\n";
      }
    }
  }
  return out.str();
}

std::string Decimals() {
  std::ostringstream out;
  out << "# P text canonical: how a decimal is read\n"
         "# O canonical canonical <|=|>: how two compare\n";
  for (const char* text : DecimalTexts()) {
    out << "P " << text << " " << Value::Decimal(text)->str() << "\n";
  }
  for (const char* a : DecimalTexts()) {
    for (const char* b : DecimalTexts()) {
      const auto order = *Value::Decimal(a) <=> *Value::Decimal(b);
      out << "O " << Value::Decimal(a)->str() << " " << Value::Decimal(b)->str() << " "
          << (order < 0   ? "<"
              : order > 0 ? ">"
                          : "=")
          << "\n";
    }
  }
  return out.str();
}

}  // namespace tamis
