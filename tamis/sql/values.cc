#include "tamis/sql/values.h"

#include <cctype>
#include <charconv>
#include <cmath>

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

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// A time or the beginning of one, as ToSqlite writes times.
Result<Predicate> CompareTime(const Column& column, uint32_t position, Op op,
                              const std::string& text) {
  constexpr std::string_view kFirstTime = "0000-01-01 00:00:00";
  const bool equality = op == Op::kEq || op == Op::kNe;
  const bool below = op == Op::kLt || op == Op::kLe;
  if (text.empty()) return Constant(position, op != Op::kEq && !below);
  const auto time_of = [](const std::string& whole) -> std::optional<Value> {
    const auto micros = ParseTimestamp(whole);
    if (!micros.ok() || FormatSqlTimestamp(*micros) != whole) return std::nullopt;
    return Value::Timestamp(*micros);
  };
  if (const auto time = time_of(text)) return Predicate::Compare(position, op, *time);
  for (const size_t size : {4, 7, 10, 13, 16}) {  // up to the year, month, day, hour, minute
    if (text.size() != size) continue;
    const auto begin = time_of(text + std::string(kFirstTime.substr(size)));
    if (!begin) break;
    if (equality) return Constant(position, op == Op::kNe);
    return Predicate::Compare(position, below ? Op::kLt : Op::kGe, *begin);
  }
  const auto meant = ParseTimestamp(text);
  return InvalidArgument("cannot compare column \"" + column.name + "\" of type timestamp with '" +
                         text.substr(0, 60) + "': write it as '" +
                         (meant.ok() ? FormatSqlTimestamp(*meant) : "2026-01-02 03:04:05") + "'" +
                         (meant.ok() ? "" : " or a beginning of that"));
}

void ResultDecimal(const Value& value, sqlite3_context* context) {
  const std::string& text = value.str();
  const char* end = text.data() + text.size();
  int64_t n = 0;
  if (const auto read = std::from_chars(text.data(), end, n);
      read.ec == std::errc() && read.ptr == end) {
    sqlite3_result_int64(context, n);
    return;
  }
  double d = 0;
  if (const auto read = std::from_chars(text.data(), end, d);
      read.ec == std::errc() && read.ptr == end && std::isfinite(d)) {
    if (const auto back = Value::Decimal(Value::Double(d)->ToString());
        back.ok() && *back == value) {
      sqlite3_result_double(context, d);
      return;
    }
  }
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

}  // namespace

std::string_view SqlType(Type type) {
  switch (type) {
    case Type::kText:
      return "TEXT";
    case Type::kBytes:
      return "BLOB";
    case Type::kInt64:
      return "INTEGER";
    case Type::kDouble:
      return "REAL";
    case Type::kBool:
      return "BOOLEAN";
    case Type::kTimestamp:
      return "TIMESTAMP TEXT";
    case Type::kDecimal:
      return "DECIMAL";
  }
  return "";
}

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
      return Value::Text(std::string(text, sqlite3_value_bytes(value)));
    }
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const char*>(sqlite3_value_blob(value));
      const int size = sqlite3_value_bytes(value);
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
      ResultDecimal(value, context);
      break;
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

Result<Predicate> CompareSql(const TableSchema& schema, uint32_t column, Op op,
                             const Value& value) {
  const bool time = schema.columns[column].type == Type::kTimestamp;
  if (time && !value.is_null() && value.type() == Type::kText) {
    return CompareTime(schema.columns[column], column, op, value.str());
  }
  if (auto converted = CompareConverted(schema, column, op, value)) return *std::move(converted);
  const int left = ClassOf(schema.columns[column].type);
  const int right = ClassOf(value.type());
  const bool below = left <= right;
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

std::optional<Predicate> GlobPredicate(uint32_t column, std::string_view pattern) {
  const size_t wild = pattern.find_first_of(std::string_view("*?[\0", 4));
  const std::string_view prefix = pattern.substr(0, wild);
  if (prefix.empty()) return std::nullopt;
  return Predicate::Prefix(column, std::string(prefix));
}

std::optional<Predicate> LikePredicate(uint32_t column, std::string_view pattern) {
  size_t size = 0;
  while (size < pattern.size() && pattern[size] != '%' && pattern[size] != '_' &&
         pattern[size] != '\0' && !std::isalpha(static_cast<unsigned char>(pattern[size]))) {
    ++size;
  }
  if (size == 0) return std::nullopt;
  return Predicate::Prefix(column, std::string(pattern.substr(0, size)));
}

}  // namespace tamis
