// TamisAnswer: the rows of a statement, streamed by POST /v1/sql.
//
// Only its last record proves that an answer is complete; a stream without it is an error.
#pragma once

#include "postgres.h"

#include "http.h"
#include "json.h"
#include "settings.h"
#include "values.h"
#include "versions.h"

typedef struct TamisStatement {
  const char* sql;
  const char* parameters;  // JSON values with commas between them
  const char* table;       // that the statement was made for
  uint32 table_id;
} TamisStatement;

typedef struct TamisAnswer {
  const TamisSettings* settings;
  TamisRequest* request;
  List* types;  // TamisType of each column
  bool has_header;
  int count;            // the number of the values of a row
  StringInfoData row;   // the current one
  TamisScalar* values;  // values of one row
  uint64 row_number;    // from 1
  bool is_complete;
  Jsonb* last_record;  // once it is complete
} TamisAnswer;

// Sends the statement; `types` is a list of the TamisType of each column. All memory is taken in
// the current context, and the request ends with it.
TamisAnswer* TamisAsk(const TamisSettings* settings, TamisStatement statement, List* types,
                      bool explain);

// Whether TamisNextRow would not wait.
bool TamisRowIsReady(TamisAnswer* answer);

// Moves to the next row. False: there is none, and the answer is complete.
bool TamisNextRow(TamisAnswer* answer);

// Raises the error that the value at `number` of the current row is not what its column holds.
void TamisRaiseValue(const TamisAnswer* answer, int number, const TamisReader* readers,
                     const char* why) TAMIS_NORETURN;

// The body of a request.
char* TamisRequestBody(const TamisSettings* settings, TamisStatement statement, bool explain);
