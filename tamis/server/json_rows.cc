#include "tamis/server/json_rows.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "tamis/base/utf8.h"
#include "tamis/sql/values.h"
#include "tamis/table/value.h"

namespace tamis::server {
namespace {

bool NeedsNoEscape(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\' || (c & 0x80) != 0)
      return false;
  }
  return true;
}

std::string_view TextOf(sqlite3_stmt* row, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  return text == nullptr ? std::string_view()
                         : std::string_view(text, sqlite3_column_bytes(row, column));
}

void AppendHexadecimal(std::string_view bytes, std::string* out) {
  *out += '"' + Value::Bytes(std::string(bytes)).ToString() + '"';
}

void AppendReal(double number, std::string* out) {
  *out += !std::isinf(number) ? DoubleText(number) : number > 0 ? "\"Inf\"" : "\"-Inf\"";
}

// {"bytes": "0x00ff"} and {"real": "Inf"}, which no other JSON value is. nullopt: another object.
// kInvalidArgument: one of these with another text.
std::optional<Result<Value>> FromObject(const nlohmann::json& object) {
  if (object.size() != 1 || !object.begin()->is_string()) return std::nullopt;
  const std::string text = object.begin()->get<std::string>();
  const auto refuse = [&](const char* expected) {
    std::string shown;
    AppendJsonText(text, &shown);
    return InvalidArgument("{\"" + object.begin().key() + "\": " + shown + "} is a value with " +
                           expected + "; an object that is meant as text is given as a string");
  };
  if (object.begin().key() == "real") {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (text == "Inf") return Value::Double(kInfinity);
    if (text == "-Inf") return Value::Double(-kInfinity);
    return refuse("\"Inf\" or \"-Inf\"");
  }
  if (object.begin().key() != "bytes") return std::nullopt;
  auto bytes = Value::Parse(Type::kBytes, text);
  if (!bytes.ok()) return refuse("\"0x\" and hexadecimal digits");
  return bytes;
}

}  // namespace

bool AppendJsonText(std::string_view text, std::string* out) {
  if (NeedsNoEscape(text)) {
    *out += '"';
    *out += text;
    *out += '"';
    return true;
  }
  *out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return FindInvalidUtf8(text) == std::string_view::npos;
}

uint64_t AppendJsonRow(sqlite3_stmt* row, NotUtf8 not_utf8, std::string* out, size_t most_bytes) {
  uint64_t replaced = 0;
  const int columns = sqlite3_column_count(row);
  *out += '[';
  for (int i = 0; i < columns && out->size() <= most_bytes; ++i) {
    if (i > 0) *out += ',';
    switch (sqlite3_column_type(row, i)) {
      case SQLITE_INTEGER:
        *out += std::to_string(sqlite3_column_int64(row, i));
        break;
      case SQLITE_FLOAT:
        AppendReal(sqlite3_column_double(row, i), out);
        break;
      case SQLITE_BLOB: {
        const auto* bytes = static_cast<const char*>(sqlite3_column_blob(row, i));
        const int size = sqlite3_column_bytes(row, i);
        AppendHexadecimal({bytes == nullptr ? "" : bytes, static_cast<size_t>(size)}, out);
        break;
      }
      case SQLITE_TEXT: {
        const std::string_view text = TextOf(row, i);
        if (not_utf8 == NotUtf8::kExact && FindInvalidUtf8(text) != std::string_view::npos) {
          *out += "{\"text\":";
          AppendHexadecimal(text, out);
          *out += '}';
          ++replaced;
        } else {
          replaced += AppendJsonText(text, out) ? 0 : 1;
        }
        break;
      }
      default:
        *out += "null";
    }
  }
  *out += ']';
  return replaced;
}

void AppendJsonValue(const Value& value, std::string* out) {
  if (value.is_null()) {
    *out += "null";
    return;
  }
  const Value shown = ForSqlite(value);
  switch (shown.type()) {
    case Type::kInt64:
      *out += std::to_string(shown.int64());
      break;
    case Type::kDouble:
      AppendReal(shown.dbl(), out);
      break;
    case Type::kBytes:
      AppendHexadecimal(shown.str(), out);
      break;
    default:
      AppendJsonText(shown.str(), out);
  }
}

Result<Value> FromJson(const nlohmann::json& json) {
  if (json.is_object()) {
    if (auto value = FromObject(json)) return *std::move(value);
  }
  if (json.is_null()) return Value();
  if (json.is_boolean()) return Value::Int64(json.get<bool>() ? 1 : 0);
  if (json.is_number_integer() &&
      !(json.is_number_unsigned() && json.get<uint64_t>() > uint64_t{INT64_MAX})) {
    return Value::Int64(json.get<int64_t>());
  }
  if (json.is_number()) return Value::Double(json.get<double>());
  return Value::Text(json.is_string() ? json.get<std::string>() : json.dump());
}

void AppendJsonHeader(sqlite3_stmt* statement, std::string* out) {
  const int columns = sqlite3_column_count(statement);
  *out += "\"columns\":[";
  for (int i = 0; i < columns; ++i) {
    if (i > 0) *out += ',';
    AppendJsonText(sqlite3_column_name(statement, i), out);
  }
  *out += "],\"types\":[";
  for (int i = 0; i < columns; ++i) {
    if (i > 0) *out += ',';
    const char* type = sqlite3_column_decltype(statement, i);
    if (type == nullptr) {
      *out += "null";
    } else {
      AppendJsonText(type, out);
    }
  }
  *out += ']';
}

}  // namespace tamis::server
