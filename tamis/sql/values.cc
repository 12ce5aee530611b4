#include "tamis/sql/values.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <new>

#include "tamis/sql/sqlite.h"
#include "tamis/table/timestamp.h"

namespace tamis {
namespace {

using Op = Predicate::Op;

// Where a value stands in SQLite's order of storage classes.
int ClassOf(Type type) {
  switch (type) {
    case Type::kText:
    case Type::kTimestamp:
      return 1;
    case Type::kBytes:
      return 2;
    default:
      return 0;
  }
}

Predicate Constant(uint32_t column, bool truth) {
  const Predicate never = Predicate::And({Predicate::IsNull(column), Predicate::NotNull(column)});
  return truth ? Predicate::NotNull(column) : never;
}

// Numbers come before text before bytes.
Predicate CompareClasses(uint32_t column, Type type, Op op, const Value& value) {
  const bool below = ClassOf(type) <= ClassOf(value.type());
  switch (op) {
    case Op::kEq:
      return Constant(column, false);
    case Op::kNe:
      return Constant(column, true);
    case Op::kLt:
    case Op::kLe:
      return Constant(column, below);
    default:
      return Constant(column, !below);
  }
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// The times that are shown with a year of four digits. Their texts are in the order of time.
constexpr int64_t kFirstTime = -62'167'219'200'000'000;  // 0000-01-01 00:00:00
constexpr int64_t kLastTime = 253'402'300'799'999'999;   // 9999-12-31 23:59:59.999999

// The first time whose text is not before the given one; nullopt when there is none.
std::optional<int64_t> FirstTimeFrom(const std::string& text) {
  if (FormatSqlTimestamp(kLastTime) < text) return std::nullopt;
  int64_t low = kFirstTime;
  int64_t high = kLastTime;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (FormatSqlTimestamp(middle) < text) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// A time and any text, compared as ToSqlite writes the time.
Predicate CompareTime(uint32_t position, Op op, const std::string& text) {
  const bool below = op == Op::kLt || op == Op::kLe;
  const auto first = FirstTimeFrom(text);
  if (!first) return Constant(position, below || op == Op::kNe);
  if (FormatSqlTimestamp(*first) == text) {
    return Predicate::Compare(position, op, Value::Timestamp(*first));
  }
  if (op == Op::kEq || op == Op::kNe) return Constant(position, op == Op::kNe);
  if (*first == kFirstTime) return Constant(position, !below);
  return Predicate::Compare(position, below ? Op::kLt : Op::kGe, Value::Timestamp(*first));
}

// An int64 or a double where that is exact, else a text.
Value DecimalForSqlite(const Value& value) {
  const std::string& text = value.str();
  const char* end = text.data() + text.size();
  int64_t n = 0;
  if (const auto read = std::from_chars(text.data(), end, n);
      read.ec == std::errc() && read.ptr == end) {
    return Value::Int64(n);
  }
  double d = 0;
  if (const auto read = std::from_chars(text.data(), end, d);
      read.ec == std::errc() && read.ptr == end && std::isfinite(d)) {
    const auto number = Value::Double(d);
    if (const auto back = Value::Decimal(number->ToString()); back.ok() && *back == value) {
      return *number;
    }
  }
  return Value::Text(text);
}

}  // namespace

Value FromSqlite(sqlite3_value* value) {
  switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
      return Value::Int64(sqlite3_value_int64(value));
    case SQLITE_FLOAT: {
      auto number = Value::Double(sqlite3_value_double(value));
      return number.ok() ? *std::move(number) : Value();  // SQLite makes NULL of NaN too
    }
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
      if (text == nullptr) throw std::bad_alloc();  // it was to be converted
      return Value::Text(std::string(text, sqlite3_value_bytes(value)));
    }
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const char*>(sqlite3_value_blob(value));
      const int size = sqlite3_value_bytes(value);
      if (bytes == nullptr && size > 0) throw std::bad_alloc();  // a zeroblob was to be made
      return Value::Bytes(size == 0 ? std::string() : std::string(bytes, size));
    }
    default:
      return {};
  }
}

void ToSqlite(const Value& value, sqlite3_context* context) {
  if (value.is_null()) {
    sqlite3_result_null(context);
    return;
  }
  switch (value.type()) {
    case Type::kText:
      sqlite3_result_text64(context, value.str().data(), value.str().size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8);
      break;
    case Type::kBytes:
      sqlite3_result_blob64(context, value.str().data(), value.str().size(), SQLITE_TRANSIENT);
      break;
    case Type::kInt64:
    case Type::kBool:
      sqlite3_result_int64(context, value.int64());
      break;
    case Type::kDouble:
      sqlite3_result_double(context, value.dbl());
      break;
    case Type::kTimestamp: {
      const std::string text = FormatSqlTimestamp(value.int64());
      sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
      break;
    }
    case Type::kDecimal:
      ToSqlite(DecimalForSqlite(value), context);
      break;
  }
}

Value ForSqlite(const Value& value) {
  if (value.is_null()) return value;
  switch (value.type()) {
    case Type::kBool:
      return Value::Int64(value.int64());
    case Type::kTimestamp:
      return Value::Text(FormatSqlTimestamp(value.int64()));
    case Type::kDecimal:
      return DecimalForSqlite(value);
    default:
      return value;
  }
}

Result<Value> ConvertForColumn(const Column& column, const Value& value) {
  if (value.is_null() || value.type() == column.type) return value;
  if (column.type == Type::kDouble && value.type() == Type::kText) {  // the nearest, as SQLite does
    if (auto number = Value::Parse(Type::kDouble, Trimmed(value.str())); number.ok()) return number;
  }
  TableSchema schema;
  schema.columns.push_back(column);
  // A value has a place in the column exactly when "= value" compares with one of the column's own.
  const auto equal = CompareConverted(schema, 0, Op::kEq, value);
  if (equal.has_value() && equal->kind == Predicate::Kind::kCompare && equal->op == Op::kEq) {
    return equal->values[0];
  }
  return InvalidArgument("cannot store " + value.ToString().substr(0, 60) + " in column \"" +
                         column.name + "\" of type " + std::string(TypeName(column.type)));
}

std::optional<Value> NumberOfText(std::string_view text) {
  text = Trimmed(text);
  const bool sign = text.starts_with('+') || text.starts_with('-');
  const std::string_view digits = text.substr(sign ? 1 : 0);
  if (text.starts_with('+')) text.remove_prefix(1);
  if (digits.empty() || std::string_view("0123456789.").find(digits[0]) == std::string_view::npos) {
    return std::nullopt;  // "+-1", "inf"
  }
  const char* end = text.data() + text.size();
  int64_t n = 0;
  if (const auto read = std::from_chars(text.data(), end, n);
      read.ec == std::errc() && read.ptr == end) {
    return Value::Int64(n);
  }
  double d = 0;
  const auto read = std::from_chars(text.data(), end, d);
  if (read.ec == std::errc::invalid_argument || read.ptr != end) return std::nullopt;
  // from_chars leaves d alone when it is out of range, strtod tells on which side.
  if (read.ec == std::errc::result_out_of_range)
    d = std::strtod(std::string(text).c_str(), nullptr);
  return *Value::Double(d);
}

bool IsInSqlOrder(const Value& time) {
  return time.int64() >= kFirstTime && time.int64() <= kLastTime;
}

Predicate CompareSql(const TableSchema& schema, uint32_t column, Op op, const Value& value) {
  const Type type = schema.columns[column].type;
  Value meant = value;
  if (!value.is_null() && value.type() == Type::kText) {
    if (type == Type::kTimestamp) return CompareTime(column, op, value.str());
    const bool equality = op == Op::kEq || op == Op::kNe;
    const auto number = NumberOfText(value.str());
    if (number && (type == Type::kInt64 || type == Type::kDouble || type == Type::kBool)) {
      meant = *number;
    }
    const bool names_bool = type == Type::kBool && equality;
    if (ClassOf(type) == 0 && !number && !names_bool)
      return CompareClasses(column, type, op, value);
  }
  if (auto converted = CompareConverted(schema, column, op, meant)) return *std::move(converted);
  return CompareClasses(column, type, op, value);
}

std::optional<Predicate> NoCaseRange(uint32_t column, Op op, std::string_view text) {
  // NOCASE compares texts with A-Z as a-z. Up to the first letter the two orders agree, but for the
  // characters between Z and a, which come after the capitals in one order and before them in the
  // other.
  size_t size = 0;
  while (size < text.size() &&
         ((text[size] > 0 && text[size] < 'A') || (text[size] > 'z' && text[size] < '\x7f'))) {
    ++size;
  }
  if (size == 0) return std::nullopt;
  std::string begin(text.substr(0, size));
  if (op == Op::kGt || op == Op::kGe) {
    return Predicate::Compare(column, Op::kGe, Value::Text(std::move(begin)));
  }
  if (size < text.size() || op == Op::kLe) ++begin.back();  // texts that begin so may be below
  return Predicate::Compare(column, Op::kLt, Value::Text(std::move(begin)));
}

}  // namespace tamis
