// Values between SQLite, which has five storage classes, and columns, which have types.
//
//   column      is shown as
//   text        TEXT            decimal    INTEGER or REAL where that is exact, else TEXT
//   bytes       BLOB            bool       INTEGER 0 or 1
//   int64       INTEGER         timestamp  TEXT '2026-01-02 03:04:05', as SQLite's date functions
//   double      REAL
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tamis/table/predicate.h"
#include "tamis/table/schema.h"

struct sqlite3_context;
struct sqlite3_value;

namespace tamis {

// The value in SQLite's storage class: int64, double, text, bytes or NULL.
Value FromSqlite(sqlite3_value* value);
void ToSqlite(const Value& value, sqlite3_context* context);
// The value that ToSqlite gives: int64, double, text, bytes or NULL.
Value ForSqlite(const Value& value);

// The value as a column keeps it: '5' and 5.0 are 5 on an int64 column. kInvalidArgument when it
// has no place there.
Result<Value> ConvertForColumn(const Column& column, const Value& value);

// The number that SQLite makes of a text where it compares it with a number: an int64 or a double.
// nullopt when the text is no number.
std::optional<Value> NumberOfText(std::string_view text);

// Whether the text of the time sorts among those of other such times as the time does.
bool IsInSqlOrder(const Value& time);

// column op value as SQL means it, for every value: numbers compare as numbers, text that is a
// number as that number, and where the two cannot be compared numbers come before text before
// bytes. A time compares as the text that it is shown as. On a bool column 'true' and 'false' equal
// the values that they name.
Predicate CompareSql(const TableSchema& schema, uint32_t column, Predicate::Op op,
                     const Value& value);

// A condition that holds for every text of the column for which `column op text COLLATE NOCASE`
// does, and for others. The operator is <, <=, > or >=. nullopt when nothing can be said, since the
// text begins with a letter.
std::optional<Predicate> NoCaseRange(uint32_t column, Predicate::Op op, std::string_view text);

}  // namespace tamis
