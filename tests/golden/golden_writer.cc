// Writes the golden files: what the byte formats of tables, filters and messages are, as text that
// a test in another language reads. A change of one of these bytes is a change of a format.
//
//   golden_writer DIRECTORY            writes the files
//   golden_writer --check DIRECTORY    says which ones differ from what it would write
//
// One case a line, its fields separated by single spaces; lines that begin with # are comments.
//
//   bytes    lower-case hexadecimal; none are "-"
//   value    NULL, or TYPE:TEXT: text and bytes in hexadecimal, int64 in digits, double as the
//            16 hexadecimal digits of its bits, bool 0 or 1, timestamp in microseconds, decimal as
//            its canonical text
//   refused  there are no such bytes
#include <algorithm>
#include <bit>
#include <cstdio>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "tamis/base/hash.h"
#include "tamis/cluster/cluster.pb.h"
#include "tamis/filter/cell_set.h"
#include "tamis/filter/scalable_split_counting_bloom_filter.h"
#include "tamis/rocks/search_position.h"
#include "tamis/table/cell_map.h"
#include "tamis/table/codec.h"
#include "tamis/table/decimal.h"
#include "tamis/table/definition.h"
#include "tamis/table/stored_row.h"
#include "tamis/table/table.pb.h"
#include "tamis/table/testing/random_keys.h"
#include "tests/golden/golden_text.h"
#include "tests/golden/scenarios.h"

namespace tamis {
namespace {

using File = std::ostringstream;

// Bytes that do not repeat.
std::string Pattern(size_t size) {
  std::string out;
  for (size_t i = 0; i < size; ++i) out += static_cast<char>(i * 131 + i / 256 + 7);
  return out;
}

const char* const kDecimals[] = {"0",
                                 "-0.00",
                                 "1",
                                 "-1",
                                 "10",
                                 "0.1",
                                 "12.5",
                                 "-12.50e3",
                                 "99",
                                 "100",
                                 "101",
                                 "0.001",
                                 "1e40",
                                 "1e41",
                                 "1e-9",
                                 "1e-10",
                                 "127",
                                 "128",
                                 "-128",
                                 "-129",
                                 "255",
                                 "256",
                                 "-256",
                                 "32767",
                                 "32768",
                                 "12345678901234567890",
                                 "-12345678901234567890123456789.123456789",
                                 "1e999999999",
                                 "1e-999999999",
                                 "9.99e-20",
                                 "18446744073709551616",
                                 "-18446744073709551616"};

// Values of a type, the edges of the encodings among them.
std::vector<Value> Values(Type type) {
  std::vector<Value> values;
  switch (type) {
    case Type::kText:
    case Type::kBytes:
      for (const std::string& text :
           {std::string(), std::string("a"), std::string("ab|c"), std::string("\0", 1),
            std::string("a\0b", 3), std::string("\xff\xfe"), std::string("\xc3\xa9"), Pattern(1024),
            Pattern(1025), std::string(1023, 'x') + '\0' + "y"}) {
        values.push_back(type == Type::kText ? Value::Text(text) : Value::Bytes(text));
      }
      break;
    case Type::kInt64:
      for (const int64_t n :
           {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{127}, int64_t{128}, int64_t{-128},
            int64_t{-129}, int64_t{300}, int64_t{32767}, int64_t{32768}, int64_t{-32768},
            int64_t{1000000}, int64_t{2147483647}, int64_t{2147483648}, int64_t{-2147483648},
            std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
        values.push_back(Value::Int64(n));
      }
      break;
    case Type::kDouble:
      for (const double d :
           {0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 0.1, 1e300, -1e300, 5e-324, 1e10,
            3.4028234663852886e38, 1.401298464324817e-45, 123456.789,
            std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
        values.push_back(*Value::Double(d));
      }
      break;
    case Type::kBool:
      values = {Value::Bool(false), Value::Bool(true)};
      break;
    case Type::kTimestamp:
      for (const int64_t n :
           {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{1000}, int64_t{-1000}, int64_t{1500000},
            int64_t{-3000000}, int64_t{1767322984000000}, int64_t{1767322984250000},
            std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
        values.push_back(Value::Timestamp(n));
      }
      break;
    case Type::kDecimal:
      for (const char* text : kDecimals) values.push_back(*Value::Decimal(text));
      break;
  }
  return values;
}

// "V value ordered indexed cut": a value as it stands in keys and in index entries.
std::string Codec() {
  File out;
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

// "X expression value result": what computed columns have.
std::string Expressions() {
  File out;
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
  File out;
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
  File out;
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
  File out;
  out << "# P text canonical: how a decimal is read\n"
         "# O canonical canonical <|=|>: how two compare\n";
  for (const char* text : kDecimals) {
    out << "P " << text << " " << Value::Decimal(text)->str() << "\n";
  }
  for (const char* a : kDecimals) {
    for (const char* b : kDecimals) {
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

std::string Keys() {
  File out;
  out << "# F parts, each TYPE/PART (docs/TABLES.md#keys): the format of the lines that follow\n"
         "# K bytes values: a key and what it holds; K refused values: they are no key\n"
         "# X bytes: no key of the format\n"
         "# S part op value prefix low..high,...: where the keys with `part op value` lie, behind "
         "the bytes of the parts before; ? = not said\n";
  Random random(20);
  for (const TableSchema& schema : SchemasOfAllKeys()) {
    const KeyFormat format(schema);
    out << "F";
    for (size_t i = 0; i < schema.key.size(); ++i) {
      const Type type = schema.columns[schema.key[i]].type;
      out << " " << TypeName(type) << "/" << KeyPartText(type, schema.key_parts[i]);
    }
    out << "\n";
    for (int i = 0; i < 8; ++i) {
      Row row;
      for (size_t part = 0; part < schema.key.size(); ++part) {
        row.push_back(RandomKeyValue(schema.columns[part].type, schema.key_parts[part], random));
      }
      const auto key = format.Encode(row);
      out << "K " << Refused(key) << " " << Texts(row) << "\n";
      if (!key.ok()) continue;
      Row parsed;
      std::string damaged = *key;
      damaged[random.Uniform(damaged.size())] = static_cast<char>(random.Uniform(256));
      if (random.OneIn(3)) damaged.pop_back();
      if (!format.Decode(damaged, &parsed).ok()) out << "X " << Hex(damaged) << "\n";
      std::string prefix;
      for (size_t part = 0; part < schema.key.size(); ++part) {
        static constexpr const char* kOps[] = {"", "=", "<>", "<", "<=", ">", ">="};
        for (const Predicate& leaf : LeavesAbout(static_cast<uint32_t>(part), row[part])) {
          if (leaf.kind == Predicate::Kind::kIsNull) continue;
          const bool begins = leaf.kind == Predicate::Kind::kPrefix;
          out << "S " << part << " " << (begins ? "begins" : kOps[static_cast<int>(leaf.op)]) << " "
              << Text(leaf.values[0]) << " " << Hex(prefix) << " ";
          const auto spans = format.SpansOf(part, leaf, prefix);
          if (!spans.has_value()) {
            out << "?\n";
            continue;
          }
          std::string text;
          for (const KeySpan& span : *spans) {
            text += (text.empty() ? "" : ",") + Hex(span.start) + ".." + Hex(span.end);
          }
          out << (text.empty() ? "none" : text) << "\n";
        }
        if (!format.Append(part, row[part], &prefix).ok()) break;
      }
    }
  }
  return out.str();
}

std::string Rows() {
  File out;
  const TableSchema schema = SchemaOfAllTypes();
  out << "# T schema: a serialized schema, of the lines that follow\n"
         "# R values key row: a row, its key, what stands under it\n"
         "# I index values prefix,...  hash,...: its entry's encoded values, the hash of each "
         "leading prefix\n"
         "# C family:qualifier=bytes,... bytes: a row of cells\n";
  out << "T " << Hex(SerializeSchema(schema)) << "\n";
  Random random(21);
  for (int i = 0; i < 40; ++i) {
    const Row row = RandomRow(schema, random);
    out << "R " << Texts(row) << " " << Hex(EncodeKey(schema, row)) << " "
        << Hex(EncodeRow(schema, row)) << "\n";
    for (IndexSpec index : schema.indexes) {
      index.seed = 77;
      std::string prefixes;
      std::string hashes;
      for (const std::string& prefix : IndexPrefixes(index, row)) {
        prefixes += (prefixes.empty() ? "" : ",") + Hex(prefix);
        hashes += (hashes.empty() ? "" : ",") + Hex64(Hash(prefix, index.seed));
      }
      out << "I " << index.name << " " << prefixes << " " << hashes << "\n";
    }
  }
  for (const std::vector<Cell>& cells : std::vector<std::vector<Cell>>{
           {},
           {{{"d", ""}, ""}},
           {{{"d", "a"}, "x"}, {{"d", "b"}, Pattern(300)}, {{"e", "a"}, ""}}}) {
    std::string text;
    for (const Cell& cell : cells) {
      text += (text.empty() ? "" : ",") + Hex(cell.name.family) + ":" + Hex(cell.name.qualifier) +
              "=" + Hex(cell.value);
    }
    out << "C " << (text.empty() ? "-" : text) << " " << Hex(EncodeCells(cells)) << "\n";
  }
  return out.str();
}

std::string Predicates() {
  File out;
  const TableSchema schema = SchemaOfAllTypes();
  out << "# T schema: a serialized schema, of the lines that follow\n"
         "# R values: a row\n"
         "# P condition truths: a serialized condition and its truth on each row, one letter each: "
         "true, false, unknown\n";
  out << "T " << Hex(SerializeSchema(schema)) << "\n";
  Random random(22);
  std::vector<Row> rows;
  for (int i = 0; i < 30; ++i) {
    rows.push_back(RandomRow(schema, random));
    out << "R " << Texts(rows.back()) << "\n";
  }
  for (int i = 0; i < 200; ++i) {
    const Predicate predicate = RandomPredicate(schema, random, 3);
    out << "P " << Hex(SerializePredicate(predicate)) << " ";
    for (const Row& row : rows) {
      const auto truth = predicate.Evaluate(row);
      out << (!truth.has_value() ? "u" : *truth ? "t" : "f");
    }
    out << "\n";
  }
  return out.str();
}

std::string Filters() {
  File out;
  out << "# G slices positions seed: a scalable split counting filter, of the lines that follow\n"
         "# + hash layer:position,...: inserted; the bits that were set\n"
         "# - hash layer:position,...|stuck|absent: erased; the bits that were cleared\n"
         "# B bytes: the filter as it then is\n"
         "# L layer projection: 64-bit words, little-endian\n";
  for (const SplitGeometry geometry : {SplitGeometry{.slices = 3, .slice_positions = 64},
                                       SplitGeometry{.slices = 7, .slice_positions = 100}}) {
    ScalableSplitCountingBloomFilter filter(geometry, 5);
    out << "G " << geometry.slices << " " << geometry.slice_positions << " 5\n";
    Random random(23);
    std::vector<uint64_t> held;
    for (int i = 0; i < 120; ++i) {
      std::string flips;
      const auto note = [&](uint32_t layer, uint64_t position, bool) {
        flips +=
            (flips.empty() ? "" : ",") + std::to_string(layer) + ":" + std::to_string(position);
      };
      if (!held.empty() && random.OneIn(4)) {
        const size_t at = random.Uniform(held.size());
        const auto outcome = filter.Erase(held[at], note);
        out << "- " << Hex64(held[at]) << " "
            << (outcome == EraseOutcome::kStuck    ? "stuck"
                : outcome == EraseOutcome::kAbsent ? "absent"
                : flips.empty()                    ? "none"
                                                   : flips)
            << "\n";
        held.erase(held.begin() + static_cast<long>(at));
        continue;
      }
      const bool again = !held.empty() && random.OneIn(5);
      held.push_back(again ? held[random.Uniform(held.size())] : random());
      filter.Insert(held.back(), note);
      out << "+ " << Hex64(held.back()) << " " << (flips.empty() ? "none" : flips) << "\n";
    }
    out << "B " << Hex(filter.Serialize()) << "\n";
    for (uint32_t layer = 0; layer < filter.layers(); ++layer) {
      std::string bytes;
      for (uint64_t word : filter.Projection(layer)) {
        for (int i = 0; i < 8; ++i, word >>= 8) bytes += static_cast<char>(word & 0xff);
      }
      out << "L " << layer << " " << Hex(bytes) << "\n";
    }
  }
  return out.str();
}

std::string Positions() {
  File out;
  out << "# P branch key|entry|descending|key_descending index last bytes: how far a search has "
         "come in "
         "a region\n"
         "# X bytes: no position\n";
  for (const uint64_t branch :
       {uint64_t{0}, uint64_t{1}, uint64_t{127}, uint64_t{128}, uint64_t{300}, ~uint64_t{0}}) {
    for (const auto order :
         {SearchPosition::Order::kRowKey, SearchPosition::Order::kEntry,
          SearchPosition::Order::kEntryDescending, SearchPosition::Order::kRowKeyDescending}) {
      for (const uint32_t index_id : {uint32_t{0}, uint32_t{300}, ~uint32_t{0}}) {
        for (const std::string& last :
             {std::string(), std::string("a"), std::string("\0\xff", 2)}) {
          const SearchPosition position{
              .branch = branch, .order = order, .index_id = index_id, .last = last};
          out << "P " << branch << " " << Text(order) << " " << index_id << " " << Hex(last) << " "
              << Hex(position.Serialize()) << "\n";
        }
      }
    }
  }
  for (const std::string& bytes :
       {std::string(), std::string("\0", 1), std::string("\1\0\0\0", 4), std::string("\2"),
        std::string("\2\0", 2), std::string("\2\0\0", 3), std::string("\2\0\4\0", 4),
        std::string("\2\x80", 2), "\2" + std::string(10, '\xff') + "\1",
        std::string("\2\0\0\x80\x80\x80\x80\x10", 8)}) {
    if (!SearchPosition::Parse(bytes).has_value()) out << "X " << Hex(bytes) << "\n";
  }
  return out.str();
}

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string ScalarText(const Message& message, const FieldDescriptor& field, int i) {
  const auto& get = *message.GetReflection();
  const bool many = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return std::to_string(many ? get.GetRepeatedUInt32(message, &field, i)
                                 : get.GetUInt32(message, &field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return std::to_string(many ? get.GetRepeatedUInt64(message, &field, i)
                                 : get.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_INT32:
      return std::to_string(many ? get.GetRepeatedInt32(message, &field, i)
                                 : get.GetInt32(message, &field));
    case FieldDescriptor::CPPTYPE_INT64:
      return std::to_string(many ? get.GetRepeatedInt64(message, &field, i)
                                 : get.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:  // its bits
      return std::to_string(std::bit_cast<uint64_t>(many ? get.GetRepeatedDouble(message, &field, i)
                                                         : get.GetDouble(message, &field)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return (many ? get.GetRepeatedBool(message, &field, i) : get.GetBool(message, &field)) ? "1"
                                                                                             : "0";
    case FieldDescriptor::CPPTYPE_ENUM:
      return std::to_string(many ? get.GetRepeatedEnumValue(message, &field, i)
                                 : get.GetEnumValue(message, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return Hex(many ? get.GetRepeatedString(message, &field, i) : get.GetString(message, &field));
    default:
      return "?";  // the messages have no others
  }
}

// " 3.1.2=value" for each field that is set, by field numbers; a repeated one as often as it is
// there.
void AppendFields(const Message& message, const std::string& path, std::string* out) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string name = path + std::to_string(field->number());
    const auto& get = *message.GetReflection();
    const int count = field->is_repeated() ? get.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        *out += " " + name + "{";
        AppendFields(field->is_repeated() ? get.GetRepeatedMessage(message, field, i)
                                          : get.GetMessage(message, field),
                     "", out);
        *out += " }";
      } else {
        *out += " " + name + "=" + ScalarText(message, *field, i);
      }
    }
  }
}

// Sets every field, and every one of what is inside, to a value of its own.
void FillIn(Message* message, uint64_t* next) {
  const auto& set = *message->GetReflection();
  const auto& type = *message->GetDescriptor();
  for (int f = 0; f < type.field_count(); ++f) {
    const FieldDescriptor* field = type.field(f);
    for (int i = 0; i < (field->is_repeated() ? 2 : 1); ++i) {
      const bool many = field->is_repeated();
      const uint64_t n = ++*next;
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_UINT32:
          many ? set.AddUInt32(message, field, static_cast<uint32_t>(n * 1000))
               : set.SetUInt32(message, field, static_cast<uint32_t>(n * 1000));
          break;
        case FieldDescriptor::CPPTYPE_UINT64:
          many ? set.AddUInt64(message, field, ~uint64_t{0} - n)
               : set.SetUInt64(message, field, ~uint64_t{0} - n);
          break;
        case FieldDescriptor::CPPTYPE_INT32:
          many ? set.AddInt32(message, field, static_cast<int32_t>(n * 1000))
               : set.SetInt32(message, field, static_cast<int32_t>(n * 1000));
          break;
        case FieldDescriptor::CPPTYPE_INT64:
          many ? set.AddInt64(message, field, static_cast<int64_t>(n * 1'000'000))
               : set.SetInt64(message, field, static_cast<int64_t>(n * 1'000'000));
          break;
        case FieldDescriptor::CPPTYPE_DOUBLE:
          many ? set.AddDouble(message, field, static_cast<double>(n) / 4)
               : set.SetDouble(message, field, static_cast<double>(n) / 4);
          break;
        case FieldDescriptor::CPPTYPE_BOOL:
          many ? set.AddBool(message, field, true) : set.SetBool(message, field, true);
          break;
        case FieldDescriptor::CPPTYPE_ENUM: {
          const auto& values = *field->enum_type();
          const int value = values.value(static_cast<int>(n) % values.value_count())->number();
          many ? set.AddEnumValue(message, field, value) : set.SetEnumValue(message, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_STRING: {
          const std::string text = field->type() == FieldDescriptor::TYPE_BYTES
                                       ? std::string("\0\xff", 2) + std::to_string(n)
                                       : "text " + std::to_string(n);
          many ? set.AddString(message, field, text) : set.SetString(message, field, text);
          break;
        }
        case FieldDescriptor::CPPTYPE_MESSAGE:
          FillIn(many ? set.AddMessage(message, field) : set.MutableMessage(message, field), next);
          break;
        default:
          break;
      }
    }
  }
}

template <class T>
void AppendMessage(T message, File* out) {
  for (const bool filled : {false, true}) {
    uint64_t next = 0;
    if (filled) FillIn(&message, &next);
    std::string fields;
    AppendFields(message, "", &fields);
    *out << "M " << message.GetDescriptor()->name() << " " << Hex(message.SerializeAsString())
         << fields << "\n";
  }
}

std::string Messages() {
  File out;
  out << "# M message bytes fields: NUMBER=VALUE of each field that is set, a message inside as\n"
         "# NUMBER{ ... }; numbers, enumerations as numbers, 0 or 1, text and bytes in "
         "hexadecimal\n";
  AppendMessage(pb::MutateRequest(), &out);
  AppendMessage(pb::MutateReply(), &out);
  AppendMessage(pb::SearchRequest(), &out);
  AppendMessage(pb::SearchReply(), &out);
  AppendMessage(pb::PollRequest(), &out);
  AppendMessage(pb::PollReply(), &out);
  AppendMessage(pb::StatusRequest(), &out);
  AppendMessage(pb::StatusReply(), &out);
  AppendMessage(pb::StartJobRequest(), &out);
  AppendMessage(pb::StartJobReply(), &out);
  AppendMessage(pb::GetJobRequest(), &out);
  AppendMessage(pb::GetJobReply(), &out);
  return out.str();
}

// Values as a map is asked for them: its knots and what lies close to them, and others.
std::vector<std::string> ValuesAround(const CellMap& map, std::mt19937_64* random) {
  std::vector<std::string> values = {"", "a", std::string(9, '\xff'), std::string("\0\0", 2)};
  for (size_t i = 0; i < 12; ++i) {
    std::string value = Pattern((*random)() % 12);
    if (!map.knots().empty()) value = map.knots()[(*random)() % map.knots().size()].value + value;
    if (!value.empty() && i % 2 == 0) {
      value[(*random)() % value.size()] = static_cast<char>((*random)());
    }
    if (i % 3 == 0 && value.size() > 3) value.resize(value.size() - 3);
    values.push_back(std::move(value));
  }
  return values;
}

std::string CellMaps() {
  File out;
  out << "# M map version cells: bytes of a cell map; the lines up to the next M are of that map\n"
      << "# V value cell: CellOf\n"
      << "# L cell value: LowestOf\n"
      << "# X map: refused\n"
      << "# S cells member...: a cell set; the P lines behind it are its parts\n"
      << "# P first max_bytes end bytes: what Encode gives\n";
  std::mt19937_64 random(1);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::string> sample;
    for (size_t i = 0, n = round * round / 4; i < n; ++i) {
      std::string value;
      if (round % 4 == 0) {
        AppendOrdered(Value::Int64(static_cast<int64_t>(random()) >> random() % 64), &value);
      } else if (round % 4 == 1) {
        AppendOrdered(Value::Timestamp(1'700'000'000'000'000 + static_cast<int64_t>(i) * 977),
                      &value);
      } else if (round % 4 == 2) {
        for (size_t size = random() % 9; value.size() < size;) value += "\0\1a\xff"[random() % 4];
      } else {
        AppendOrdered(Value::Text("https://example.org/" + std::to_string(random() % 5000)),
                      &value);
      }
      sample.push_back(std::move(value));
    }
    std::ranges::sort(sample);
    const CellMap map =
        CellMap::Fit(sample, {.cells = static_cast<uint32_t>(
                                  1 + (random() >> random() % 64) % (uint64_t{1} << random() % 25)),
                              .knots = 2 + random() % 40});
    out << "M " << Hex(map.Serialize()) << " " << Hex64(map.version()) << " " << map.cells()
        << "\n";
    for (const std::string& value : ValuesAround(map, &random)) {
      out << "V " << Hex(value) << " " << map.CellOf(value) << "\n";
    }
    for (const uint32_t cell : {0u, 1u, map.cells() / 3, map.cells() / 5 * 4, map.cells() - 2}) {
      if (cell < map.cells()) out << "L " << cell << " " << Hex(map.LowestOf(cell)) << "\n";
    }
    std::string damaged = map.Serialize();
    damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    if (!CellMap::Deserialize(damaged).ok()) out << "X " << Hex(damaged) << "\n";
  }
  for (int round = 0; round < 20; ++round) {
    CellSet set(static_cast<uint32_t>(random() % 600));
    const uint64_t one_in = 1 + random() % 60;
    for (uint32_t cell = 0; cell < set.cells(); ++cell) {
      if (random() % one_in == 0) set.Insert(cell);
    }
    out << "S " << set.cells();
    for (uint32_t cell = set.Next(0); cell < set.cells(); cell = set.Next(cell + 1)) {
      out << " " << cell;
    }
    out << "\n";
    uint32_t end = 0;
    for (uint32_t first = 0; end < set.cells(); first = end) {
      const size_t max_bytes = 1 + random() % 30;
      const std::string bytes = set.Encode(first, max_bytes, &end);
      out << "P " << first << " " << max_bytes << " " << end << " " << Hex(bytes) << "\n";
    }
  }
  return out.str();
}

struct Golden {
  const char* name;
  std::string (*text)();
};

constexpr Golden kFiles[] = {
    {"codec.txt", Codec},
    {"hashes.txt", Hashes},
    {"cells.txt", Cells},
    {"decimals.txt", Decimals},
    {"keys.txt", Keys},
    {"rows.txt", Rows},
    {"predicates.txt", Predicates},
    {"filters.txt", Filters},
    {"positions.txt", Positions},
    {"messages.txt", Messages},
    {"searches.txt", Searches},
    {"writes.txt", Writes},
    {"cell_maps.txt", CellMaps},
    {"expressions.txt", Expressions},
};

int Run(bool check, const std::string& directory) {
  int differing = 0;
  for (const Golden& golden : kFiles) {
    const std::string path = directory + "/" + golden.name;
    const std::string text = golden.text();
    if (!check) {
      std::ofstream(path, std::ios::binary) << text;
      continue;
    }
    std::ifstream in(path, std::ios::binary);
    std::ostringstream there;
    there << in.rdbuf();
    if (there.str() == text) continue;
    ++differing;
    std::istringstream old_lines(there.str());
    std::istringstream new_lines(text);
    std::string old_line;
    std::string new_line;
    int line = 1;
    while (std::getline(old_lines, old_line) && std::getline(new_lines, new_line) &&
           old_line == new_line) {
      ++line;
    }
    std::fprintf(stderr, "%s:%d: what was written before differs\n  was %s\n  is  %s\n",
                 path.c_str(), line, old_line.c_str(), new_line.c_str());
  }
  return differing == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string(argv[1]) == "--check";
  if (argc != 2 && !check) {
    std::fputs("usage: golden_writer [--check] DIRECTORY\n", stderr);
    return 2;
  }
  return tamis::Run(check, argv[argc - 1]);
}
