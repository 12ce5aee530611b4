// Values between PostgreSQL's types and the server's JSON.
//
//   store       PostgreSQL                 in a row                parameter
//   text        text                       "a"                     "a"
//   bytes       bytea                      "0x00ff"                {"bytes": "0x00ff"}
//   int64       bigint, integer, ...       5                       5
//   double      double precision           1.5, "Inf"              1.5, {"real": "Inf"}
//   bool        boolean                    1                       1
//   timestamp   timestamp with time zone   "2026-01-02 03:04:05"   the same, in UTC
//   decimal     numeric                    1.5, "12345678901.."    "1.5"
#pragma once

#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"

#include "json.h"
#include "table.h"

typedef struct TamisReader {
  TamisType type;
  Oid pg_type;  // the declared type
  bool is_domain;
  int32 typmod;
  bool is_plain;  // read here; else by the input function
  bool invalid_text_is_null;
  FmgrInfo input;
  Oid input_parameter;
  const char* column;  // for errors
} TamisReader;

TamisReader TamisMakeReader(TamisType type, Oid pg_type, int32 typmod, const char* column,
                            bool invalid_text_is_null);

// The value, in the current memory context. *why is set, and an error to be raised by the caller,
// which knows the row, where it is no value of the type.
Datum TamisReadValue(TamisReader* reader, TamisScalar* value, bool* is_null, const char** why);

// Where a value that the store cannot have stands among those that it can have.
typedef enum TamisPlace {
  kTamisInside,
  kTamisAbove,
  kTamisBelow,
  // A time outside of the years 0 to 9999: the store may have it, and no condition finds it.
  kTamisUnordered
} TamisPlace;

// Appends the parameter. A value that no column of the type can have is not appended.
TamisPlace TamisAppendParameter(StringInfo out, TamisType type, Oid pg_type, Datum value);
