#include "tamis/table/codec.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

#include "tamis/base/coding.h"
#include "tamis/table/decimal.h"

namespace tamis {
namespace {

constexpr char kNullTag = 1;
constexpr char kValueTag = 2;

// Text and bytes: 0x00 is written as 0x00 0xff, the end as 0x00 0x01, or as 0x00 0x02 where the
// value was cut: after the value that ends there, before every longer one.
constexpr char kEscape = 0;
constexpr char kEscapedZero = '\xff';
constexpr char kTextEnd = 1;
constexpr char kTextCut = 2;

// Decimals: sign, power of ten, pairs of digits (as pair + 1), end. All but the sign is
// complemented in negative numbers.
constexpr uint8_t kNegative = 1;
constexpr uint8_t kZero = 2;
constexpr uint8_t kPositive = 3;
constexpr uint8_t kDecimalEnd = 0;
constexpr uint8_t kDecimalCut = 101;

constexpr uint64_t kSignBit = uint64_t{1} << 63;

// NaN is not stored, so that all doubles have a place.
uint64_t OrderedDouble(double d) {
  const auto bits = std::bit_cast<uint64_t>(d);
  return bits & kSignBit ? ~bits : bits | kSignBit;
}

double DoubleFromOrdered(uint64_t ordered) {
  return std::bit_cast<double>(ordered & kSignBit ? ordered & ~kSignBit : ~ordered);
}

bool AppendText(std::string_view text, size_t limit, std::string* out) {
  const bool cut = text.size() > limit;
  if (cut) text = text.substr(0, limit);
  while (true) {
    const size_t zero = text.find('\0');
    out->append(text.substr(0, zero));
    out->push_back(kEscape);
    if (zero == std::string_view::npos) break;
    out->push_back(kEscapedZero);
    text.remove_prefix(zero + 1);
  }
  out->push_back(cut ? kTextCut : kTextEnd);
  return cut;
}

bool AppendDecimal(const std::string& canonical, size_t limit, std::string* out) {
  const auto decimal = Decimal::Parse(canonical);
  assert(decimal.ok());
  if (decimal->digits.empty()) {
    out->push_back(kZero);
    return false;
  }
  out->push_back(decimal->negative ? kNegative : kPositive);
  const size_t begin = out->size();
  PutBig32(out, static_cast<uint32_t>(static_cast<int32_t>(decimal->exponent)) ^ 0x80000000u);
  const std::string& digits = decimal->digits;
  const size_t pairs = (digits.size() + 1) / 2;
  const bool cut = pairs > limit;
  for (size_t i = 0; i < (cut ? limit : pairs); ++i) {
    const int high = digits[2 * i] - '0';
    const int low = 2 * i + 1 < digits.size() ? digits[2 * i + 1] - '0' : 0;
    out->push_back(static_cast<char>(high * 10 + low + 1));
  }
  out->push_back(static_cast<char>(cut ? kDecimalCut : kDecimalEnd));
  if (decimal->negative) {
    for (size_t i = begin; i < out->size(); ++i) (*out)[i] = static_cast<char>(~(*out)[i]);
  }
  return cut;
}

// Appends the value; longer text, bytes and decimals are cut to `limit`. Returns whether it was
// cut.
bool Append(const Value& value, size_t limit, std::string* out) {
  if (value.is_null()) {
    out->push_back(kNullTag);
    return false;
  }
  out->push_back(kValueTag);
  switch (value.type()) {
    case Type::kText:
    case Type::kBytes:
      return AppendText(value.str(), limit, out);
    case Type::kDecimal:
      return AppendDecimal(value.str(), limit, out);
    case Type::kInt64:
    case Type::kTimestamp:
      PutBig64(out, static_cast<uint64_t>(value.int64()) ^ kSignBit);
      return false;
    case Type::kDouble:
      PutBig64(out, OrderedDouble(value.dbl()));
      return false;
    case Type::kBool:
      out->push_back(static_cast<char>(value.int64()));
      return false;
  }
  return false;
}

Status Damaged(std::string_view what) {
  return DataLoss("cannot decode " + std::string(what) + ": the bytes are damaged or foreign");
}

// Takes the escaped text off the front. False when it does not end.
bool TakeText(std::string_view* in, std::string* out, bool* cut) {
  while (true) {
    const size_t zero = in->find('\0');
    if (zero == std::string_view::npos || zero + 1 >= in->size()) return false;
    out->append(in->substr(0, zero));
    const char mark = (*in)[zero + 1];
    in->remove_prefix(zero + 2);
    if (mark == kEscapedZero) {
      out->push_back('\0');
      continue;
    }
    *cut = mark == kTextCut;
    return mark == kTextEnd || mark == kTextCut;
  }
}

bool SkipText(std::string_view* in) {
  while (true) {
    const size_t zero = in->find('\0');
    if (zero == std::string_view::npos || zero + 1 >= in->size()) return false;
    const char mark = (*in)[zero + 1];
    in->remove_prefix(zero + 2);
    if (mark != kEscapedZero) return mark == kTextEnd || mark == kTextCut;
  }
}

bool SkipDecimal(std::string_view* in) {
  if (in->empty()) return false;
  const auto sign = static_cast<uint8_t>(in->front());
  in->remove_prefix(1);
  if (sign == kZero) return true;
  if (sign != kNegative && sign != kPositive) return false;
  const uint8_t flip = sign == kNegative ? 0xff : 0;
  for (size_t i = sizeof(uint32_t); i < in->size(); ++i) {  // after the exponent
    const uint8_t pair = static_cast<uint8_t>((*in)[i]) ^ flip;
    if (pair >= 1 && pair <= 100) continue;
    in->remove_prefix(i + 1);
    return pair == kDecimalEnd || pair == kDecimalCut;
  }
  return false;
}

bool TakeDecimal(std::string_view* in, Decimal* out, bool* cut) {
  *cut = false;
  if (in->empty()) return false;
  const auto sign = static_cast<uint8_t>(in->front());
  in->remove_prefix(1);
  if (sign == kZero) return true;
  if (sign != kNegative && sign != kPositive) return false;
  out->negative = sign == kNegative;
  const uint8_t flip = out->negative ? 0xff : 0;
  Reader reader(*in);
  const uint32_t ordered = reader.Big32() ^ (out->negative ? 0xffffffffu : 0);
  if (!reader.ok()) return false;
  out->exponent = static_cast<int32_t>(ordered ^ 0x80000000u);
  *in = reader.rest();
  for (size_t i = 0; i < in->size(); ++i) {
    const uint8_t pair = static_cast<uint8_t>((*in)[i]) ^ flip;
    if (pair >= 1 && pair <= 100) {
      out->digits.push_back(static_cast<char>('0' + (pair - 1) / 10));
      out->digits.push_back(static_cast<char>('0' + (pair - 1) % 10));
      continue;
    }
    in->remove_prefix(i + 1);
    *cut = pair == kDecimalCut;
    if (*cut) return true;
    // Only what AppendDecimal writes: one encoding a number.
    if (pair != kDecimalEnd || out->digits.empty() || out->digits.front() == '0') return false;
    if (out->digits.back() == '0') out->digits.pop_back();
    return out->digits.back() != '0' && out->exponent <= kMaxDecimalExponent &&
           out->exponent >= -kMaxDecimalExponent;
  }
  return false;
}

// Takes one value; *cut says that it was cut (its value is then not the one that was put).
Result<Value> Take(Type type, std::string_view* in, bool* cut) {
  *cut = false;
  Reader reader(*in);
  const uint8_t tag = reader.Byte();
  if (tag == kNullTag) {
    *in = reader.rest();
    return Value();
  }
  if (tag != kValueTag) return Damaged("an encoded value");
  switch (type) {
    case Type::kText:
    case Type::kBytes: {
      *in = reader.rest();
      std::string text;
      if (!TakeText(in, &text, cut)) return Damaged("an encoded text");
      return type == Type::kText ? Value::Text(std::move(text)) : Value::Bytes(std::move(text));
    }
    case Type::kDecimal: {
      *in = reader.rest();
      Decimal decimal;
      if (!TakeDecimal(in, &decimal, cut)) return Damaged("an encoded decimal");
      if (*cut) return Value();
      return Value::Decimal(decimal.ToString());
    }
    case Type::kInt64:
    case Type::kTimestamp:
    case Type::kDouble: {
      const uint64_t word = reader.Big64();
      if (!reader.ok()) return Damaged("an encoded number");
      *in = reader.rest();
      if (type == Type::kInt64) return Value::Int64(static_cast<int64_t>(word ^ kSignBit));
      if (type == Type::kTimestamp) return Value::Timestamp(static_cast<int64_t>(word ^ kSignBit));
      const double d = DoubleFromOrdered(word);
      if (std::isnan(d) || (d == 0 && std::signbit(d))) return Damaged("an encoded double");
      return Value::Double(d);
    }
    case Type::kBool: {
      const uint8_t truth = reader.Byte();
      if (!reader.ok() || truth > 1) return Damaged("an encoded truth value");
      *in = reader.rest();
      return Value::Bool(truth != 0);
    }
  }
  return Damaged("a value of an unknown type");
}

// Stored rows name the way the payload is written, so that unknown columns can be skipped.
enum class Payload : uint8_t { kVarint = 0, kFixed64 = 1, kString = 2 };

Payload PayloadOf(Type type) {
  switch (type) {
    case Type::kInt64:
    case Type::kTimestamp:
    case Type::kBool:
      return Payload::kVarint;
    case Type::kDouble:
      return Payload::kFixed64;
    default:
      return Payload::kString;
  }
}

uint64_t ZigZag(int64_t n) {
  return (static_cast<uint64_t>(n) << 1) ^ static_cast<uint64_t>(n >> 63);
}
int64_t UnZigZag(uint64_t n) { return static_cast<int64_t>((n >> 1) ^ (0 - (n & 1))); }

Result<Value> ReadPayload(Type type, Reader* reader) {
  switch (type) {
    case Type::kInt64:
      return Value::Int64(UnZigZag(reader->Varint()));
    case Type::kTimestamp:
      return Value::Timestamp(UnZigZag(reader->Varint()));
    case Type::kBool: {
      const int64_t truth = UnZigZag(reader->Varint());
      if (truth != 0 && truth != 1) return Damaged("a stored truth value");
      return Value::Bool(truth != 0);
    }
    case Type::kDouble:
      return Value::Double(std::bit_cast<double>(reader->Fixed64()));
    case Type::kText:
      return Value::Text(std::string(reader->LengthPrefixed()));
    case Type::kBytes:
      return Value::Bytes(std::string(reader->LengthPrefixed()));
    case Type::kDecimal:
      return reader->ok() ? Value::Decimal(reader->LengthPrefixed()) : Damaged("a stored decimal");
  }
  return Damaged("a stored value of an unknown type");
}

}  // namespace

void AppendOrdered(const Value& value, std::string* out) { Append(value, std::string::npos, out); }

Result<Value> ReadOrdered(Type type, std::string_view* in) {
  bool cut = false;
  auto value = Take(type, in, &cut);
  if (cut) return Damaged("a key: it holds a value that was cut");
  return value;
}

bool AppendIndexed(const Value& value, std::string* out) {
  return Append(value, kIndexValueLimit, out);
}

Result<IndexedValue> ReadIndexed(Type type, std::string_view* in) {
  IndexedValue read;
  TAMIS_ASSIGN_OR_RETURN(read.value, Take(type, in, &read.cut));
  return read;
}

std::string EncodeKey(const TableSchema& schema, const Row& row) {
  assert(schema.key_parts.empty());
  std::string key;
  for (const uint32_t column : schema.key) AppendOrdered(row[column], &key);
  return key;
}

Status DecodeKey(const TableSchema& schema, std::string_view key, Row* row) {
  assert(schema.key_parts.empty());
  row->resize(schema.columns.size());
  for (const uint32_t column : schema.key) {
    TAMIS_ASSIGN_OR_RETURN((*row)[column], ReadOrdered(schema.columns[column].type, &key));
  }
  if (!key.empty()) return Damaged("a row key: bytes are left over");
  return Status::Ok();
}

bool IsSkipped(const IndexSpec& index, const Row& row) {
  return (index.nulls == IndexNulls::kSkip && row[index.columns[0]].is_null()) ||
         !index.where.Matches(row);
}

std::vector<std::string> IndexPrefixes(const IndexSpec& index, const Row& row) {
  std::vector<std::string> prefixes;
  prefixes.reserve(index.columns.size());
  std::string encoded;
  for (const uint32_t column : index.columns) {
    AppendIndexed(row[column], &encoded);
    prefixes.push_back(encoded);
  }
  return prefixes;
}

bool SkipIndexed(Type type, std::string_view* in) {
  const auto skip = [&](size_t n) {
    if (in->size() < n) return false;
    in->remove_prefix(n);
    return true;
  };
  if (in->empty()) return false;
  const char tag = in->front();
  in->remove_prefix(1);
  if (tag == kNullTag) return true;
  if (tag != kValueTag) return false;
  switch (type) {
    case Type::kText:
    case Type::kBytes:
      return SkipText(in);
    case Type::kDecimal:
      return SkipDecimal(in);
    case Type::kInt64:
    case Type::kTimestamp:
    case Type::kDouble:
      return skip(sizeof(uint64_t));
    case Type::kBool:
      return skip(1);
  }
  return false;
}

Result<std::pair<std::string_view, std::string_view>> SplitIndexEntry(const TableSchema& schema,
                                                                      const IndexSpec& index,
                                                                      std::string_view entry) {
  std::string_view rest = entry;
  for (const uint32_t column : index.columns) {
    bool cut = false;
    const auto value = Take(schema.columns[column].type, &rest, &cut);
    if (!value.ok()) return value.status().WithContext("index \"" + index.name + "\"");
  }
  return std::pair(entry.substr(0, entry.size() - rest.size()), rest);
}

std::string EncodeRow(const TableSchema& schema, const Row& row) {
  std::string out;
  for (uint32_t i = 0; i < row.size(); ++i) {
    const Value& value = row[i];
    if (value.is_null() || schema.IsKey(i)) continue;
    const Payload payload = PayloadOf(value.type());
    PutVarint(&out, uint64_t{schema.columns[i].id} << 2 | static_cast<uint64_t>(payload));
    switch (payload) {
      case Payload::kVarint:
        PutVarint(&out, ZigZag(value.int64()));
        break;
      case Payload::kFixed64:
        PutFixed64(&out, std::bit_cast<uint64_t>(value.dbl()));
        break;
      case Payload::kString:
        PutLengthPrefixed(&out, value.str());
        break;
    }
  }
  return out;
}

Status DecodeRow(const TableSchema& schema, std::string_view bytes, Row* row) {
  row->resize(schema.columns.size());
  for (uint32_t i = 0; i < row->size(); ++i) {
    if (!schema.IsKey(i)) (*row)[i] = Value();
  }
  Reader reader(bytes);
  uint32_t next = 0;  // columns mostly stand in the order of the schema
  while (reader.ok() && !reader.rest().empty()) {
    const uint64_t tag = reader.Varint();
    const auto payload = static_cast<Payload>(tag & 3);
    uint32_t column = next;
    const auto size = static_cast<uint32_t>(schema.columns.size());
    for (uint32_t tried = 0; tried < size; ++tried, ++column) {
      if (column >= size) column = 0;
      if (schema.columns[column].id == tag >> 2) break;
    }
    if (column < size && schema.columns[column].id == tag >> 2) {
      if (schema.IsKey(column) || payload != PayloadOf(schema.columns[column].type)) {
        return Damaged("a stored row: column \"" + schema.columns[column].name +
                       "\" is not of its type");
      }
      TAMIS_ASSIGN_OR_RETURN((*row)[column], ReadPayload(schema.columns[column].type, &reader));
      next = column + 1;
      continue;
    }
    switch (payload) {  // a column that the schema does not know
      case Payload::kVarint:
        reader.Varint();
        break;
      case Payload::kFixed64:
        reader.Fixed64();
        break;
      case Payload::kString:
        reader.LengthPrefixed();
        break;
      default:
        return Damaged("a stored row");
    }
  }
  if (!reader.ok()) return Damaged("a stored row");
  return Status::Ok();
}

}  // namespace tamis
