// TamisTable: a table of the store as its server describes it, kept in the backend for a minute.
#pragma once

#include "postgres.h"

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"

#include "settings.h"

typedef enum TamisType {
  kTamisOther = 0,
  kTamisTextType,
  kTamisBytes,
  kTamisInt64,
  kTamisDouble,
  kTamisBool,
  kTamisTimestamp,
  kTamisDecimal
} TamisType;

typedef struct TamisColumn {
  char* name;
  TamisType type;
  bool nullable;
  bool computed;
} TamisColumn;

typedef struct TamisOrder {  // the order of the key, or of an index
  int count;
  int* columns;
  bool has_all_rows;  // false for partial and sparse indexes
} TamisOrder;

typedef struct TamisTable {
  char* name;
  int column_count;
  TamisColumn* columns;
  int order_count;
  TamisOrder* orders;  // the first one is the key's
  uint32 id;           // another one after the table was dropped and created again
  double estimated_rows;
} TamisTable;

// The table, from the cache or the server. It lives at least until the end of the client's current
// message.
const TamisTable* TamisFindTable(const TamisSettings* settings, const char* name);
// Asks the server again at the next use.
void TamisForgetTables(void);

// Asks the server for all tables of the store; the result is not cached.
List* TamisListTables(const TamisSettings* settings);

// The column's position; -1 where there is none.
int TamisFindColumn(const TamisTable* table, const char* name);

// The column that an attribute of the foreign table stands for. Raises an error that says what to
// do where the store has no such column, or has one that PostgreSQL's type cannot hold.
int TamisColumnOfAttribute(const TamisTable* table, Oid table_id, int attribute);

// The name of the type, as the server says it, and the type that SQLite declares for it.
const char* TamisTypeName(TamisType type);
const char* TamisDeclaredType(TamisType type);
// PostgreSQL's type for it.
const char* TamisSqlType(TamisType type);
// Whether a column of `pg_type` can hold values of `type`.
bool TamisCanHold(Oid pg_type, TamisType type);
// Whether both types also compare values in the same way. Several PostgreSQL types may be the same
// as one of the store.
bool TamisIsSame(Oid pg_type, TamisType type);

// Appends `name` in backquotes, since SQLite takes an unknown "name" as a string.
void TamisAppendName(StringInfo out, const char* name);
