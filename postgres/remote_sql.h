// Remote SQL: what of a statement of PostgreSQL the server can be asked with PostgreSQL's meaning.
//
// Tamis' SQL is SQLite's. A condition goes down only where both mean the same:
//
//   column op value   =, <>, <, <=, >, >= of int64, double, bool, bytes; of text, = and <> under a
//                     deterministic collation, the others under "C"; of timestamps; of decimals,
//                     = and the ranges, which the store itself compares, not inside of OR and NOT
//   = ANY, <> ALL     of an array; not of decimals, which SQLite would compare as doubles
//   IS [NOT] NULL, IS [NOT] TRUE and FALSE, AND, OR, NOT
//   LIKE 'prefix%'    as a range that holds more; PostgreSQL checks the pattern itself
//
// The text is a template: a comparison is between marks, since some values of PostgreSQL (NaN,
// infinite times) are above or below all that the store can have. TamisExpand puts in what such a
// comparison is for every row.
#pragma once

#include "postgres.h"

#include "nodes/pathnodes.h"

#include "table.h"

typedef struct TamisSql {
  // Given by the caller.
  PlannerInfo* root;
  Index rtindex;
  Relids relids;
  Oid table_id;
  const TamisTable* table;
  bool invalid_text_is_null;
  // Made.
  List* parameters;  // Expr
  List* types;       // TamisType, one for each of the parameters
  int terms;         // the number of conditions
  int values;        // the number of arrays that are constants
} TamisSql;

typedef enum TamisReach {
  kTamisNotAtAll,
  kTamisMore,  // the template holds for more rows: the condition is checked again
  kTamisExactly
} TamisReach;

// Appends the template of the condition; nothing where the result is kTamisNotAtAll.
TamisReach TamisDeparseCondition(TamisSql* sql, Expr* condition, StringInfo out);

// The column that the expression is, whose values compare as PostgreSQL's do; -1 if it is none.
int TamisColumnOf(const TamisSql* sql, Node* expression);

// Whether the server orders and groups values of the column as PostgreSQL does under `collation`.
bool TamisOrdersAlike(const TamisSql* sql, int column, Oid collation);
bool TamisGroupsAlike(const TamisSql* sql, int column, Oid collation);

// Whether the expression has the same value for all rows of the table, and can be a parameter.
bool TamisIsParameter(const TamisSql* sql, Node* expression);
int TamisAddParameter(TamisSql* sql, Expr* expression, TamisType type);
// Appends the template of a number of rows, as LIMIT and OFFSET have it.
void TamisAppendLimit(int parameter, StringInfo out);

typedef struct TamisArgument {
  TamisType type;
  Oid pg_type;  // that of an array for an array
  bool is_null;
  Datum value;
} TamisArgument;

// Appends the statement with its "?", and the values to `parameters`, with commas between them.
// Without arguments (NULL) it appends the text for people, with the constants of `expressions`.
void TamisExpand(const char* template, const TamisArgument* arguments, List* expressions,
                 List* types, StringInfo out, StringInfo parameters);
