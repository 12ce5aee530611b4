// Values between SQLite, which has five storage classes, and columns, which have types.
//
//   column      is shown as
//   text        TEXT            decimal    INTEGER or REAL where that is exact, else TEXT
//   bytes       BLOB            bool       INTEGER 0 or 1
//   int64       INTEGER         timestamp  TEXT '2026-01-02 03:04:05', as SQLite's date functions
//   do double      REAL
#pragma once

#include <string>

#include "tamis/sql/sqlite.h"
#include "tamis/table/predicate.h"
#include "tamis/table/schema.h"

namespace tamis {

// The declared type of a column, chosen so that SQLite's own comparisons use the right affinity.
std::string_view SqlType(Type type);

// What SQLite holds, by its storage class: int64, double, text, bytes or NULL.
Value FromSqlite(sqlite3_value* value);
void ToSqlite(const Value& value, sqlite3_context* context);

// The value as a column keeps it: '5' and 5.0 are 5 on an int64 column. kInvalidArgument when it
// has no place there.
Result<Value> ConvertForColumn(const Column& column, const Value& value);

// column op value as SQL means it, for every value: numbers compare as numbers, text that is a
// number as that number, and where the two cannot be compared numbers come before text before
// bytes. A time compares as the text that it is shown as: with a whole time in that form, or the
// beginning of one ("2026-01"), which stands before all times that begin so. kInvalidArgument for
// other texts, which would compare in no useful way.
Result<Predicate> CompareSql(const TableSchema& schema, uint32_t column, Predicate::Op op,
                             const Value& value);

// The condition that a row GLOB pattern (LIKE pattern) fulfils, or a wider one that SQLite narrows;
// nullopt when nothing can be said. LIKE ignores the case of ASCII letters.
std::optional<Predicate> GlobPredicate(uint32_t column, std::string_view pattern);
std::optional<Predicate> LikePredicate(uint32_t column, std::string_view pattern);

}  // namespace tamis
