// Rows and values as SQLite has them, as JSON, and back.
//
// Integers and finite reals are numbers; a real has the fewest digits that give the same double,
// and an infinite one is the text "Inf" or "-Inf". Bytes are text, "0x" and hexadecimal digits.
// Text that is not UTF-8 has U+FFFD instead of the bytes that are not, or as an exact text is an
// object with all of its bytes: {"text": "0x61ff"}.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/table/value.h"

namespace tamis::server {

// Appends the text in quotes. Returns whether it was UTF-8.
bool AppendJsonText(std::string_view text, std::string* out);
enum class NotUtf8 { kReplaced, kExact };

// Appends the row that the statement stands on. Returns the number of texts that were not UTF-8.
// Stops within the row once `out` is longer than `most_bytes`.
uint64_t AppendJsonRow(sqlite3_stmt* row, NotUtf8 not_utf8, std::string* out,
                       size_t most_bytes = SIZE_MAX);
// The same for one value of a column.
void AppendJsonValue(const Value& value, std::string* out);
// A value of a request: NULL, int64, double, text or bytes. {"bytes": "0x00ff"} is bytes, and
// {"real": "Inf"} an infinite real; other arrays and objects are texts.
// kInvalidArgument: "bytes" or "real" with another text.
Result<Value> FromJson(const nlohmann::json& json);
// Appends "columns": the names, and "types": the declared types, null for other expressions.
void AppendJsonHeader(sqlite3_stmt* statement, std::string* out);

}  // namespace tamis::server
