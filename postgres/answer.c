#include "answer.h"

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"

#include "table.h"

#define SHOWN_VALUES 5
#define SHOWN_BYTES 40

char* TamisRequestBody(const TamisSettings* settings, TamisStatement statement, bool explain) {
  StringInfoData body;
  initStringInfo(&body);
  appendStringInfoString(&body, "{\"sql\":");
  TamisAppendText(&body, statement.sql);
  appendStringInfo(&body, ",\"parameters\":[%s],\"exact_texts\":true,\"tables\":{",
                   statement.parameters);
  TamisAppendText(&body, statement.table);
  appendStringInfo(&body, ":%u}", statement.table_id);
  if (explain) appendStringInfoString(&body, ",\"explain\":true");
  if (settings->timeout_ms > 0) appendStringInfo(&body, ",\"timeout_ms\":%d", settings->timeout_ms);
  appendStringInfoChar(&body, '}');
  return body.data;
}

static void RaiseNoAnswer(const TamisSettings* settings, const char* why) {
  ereport(ERROR,
          (errcode(ERRCODE_CONNECTION_FAILURE),
           errmsg("the answer of server \"%s\" is not complete: %s", settings->server_name, why),
           errhint("The server or a proxy ended it early. Run the statement again.")));
}

// The rows are read as the types that the table had when the statement was planned.
static void CheckHeader(TamisAnswer* answer) {
  size_t length = 0;
  char* line = TamisNextLine(answer->request, &length);
  if (line == NULL) RaiseNoAnswer(answer->settings, "it has no record");
  Jsonb* header = TamisReadDocument(line);
  int count = 0;
  JsonbValue* found =
      header == NULL ? NULL : TamisElements(TamisMember(&header->root, "types"), &count);
  if (found == NULL || count != answer->count) {
    RaiseNoAnswer(answer->settings, "its first record does not name the columns");
  }
  ListCell* cell;
  int i = 0;
  foreach (cell, answer->types) {
    const char* type = TamisTextOf(&found[i++]);
    if (type == NULL || strcmp(type, TamisDeclaredType((TamisType)lfirst_int(cell))) == 0) continue;
    ereport(ERROR, (errcode(ERRCODE_FDW_INVALID_DATA_TYPE),
                    errmsg("server \"%s\": a column has another type than its table's description",
                           answer->settings->server_name),
                    errhint("Run it again.")));
  }
}

TamisAnswer* TamisAsk(const TamisSettings* settings, TamisStatement statement, List* types,
                      bool explain) {
  TamisAnswer* answer = palloc0(sizeof(TamisAnswer));
  answer->settings = settings;
  answer->types = types;
  answer->count = Max(list_length(types), 1);  // without columns it is NULL
  answer->values = palloc0(sizeof(TamisScalar) * answer->count);
  initStringInfo(&answer->row);
  answer->request =
      TamisBegin(settings, (TamisCall){.path = "/v1/sql",
                                       .body = TamisRequestBody(settings, statement, explain),
                                       .is_stream = true});
  return answer;
}

static void ReadLastRecord(TamisAnswer* answer, char* line) {
  Jsonb* record = TamisReadDocument(line);
  if (record == NULL) RaiseNoAnswer(answer->settings, "a record is not JSON");
  const JsonbValue* error = TamisMember(&record->root, "error");
  if (error != NULL && error->type == jbvBinary) {
    TamisRaiseProblem(answer->settings, 500,
                      JsonbToCString(NULL, error->val.binary.data, error->val.binary.len), false);
  }
  if (!TamisTrueMember(&record->root, "complete")) {
    RaiseNoAnswer(answer->settings, "a record is neither a row nor the last one");
  }
  if (TamisNumberMember(&record->root, "row_count", -1) != (double)answer->row_number ||
      TamisTrueMember(&record->root, "more_rows")) {
    RaiseNoAnswer(answer->settings, "rows are missing");
  }
  answer->last_record = record;
  answer->is_complete = true;
}

static void ReadHeader(TamisAnswer* answer) {
  if (!answer->has_header) CheckHeader(answer);
  answer->has_header = true;
}

bool TamisRowIsReady(TamisAnswer* answer) {
  if (answer->is_complete) return true;
  if (!TamisLineIsReady(answer->request)) return false;
  if (answer->has_header) return true;
  ReadHeader(answer);
  return TamisLineIsReady(answer->request);
}

bool TamisNextRow(TamisAnswer* answer) {
  size_t length = 0;
  if (answer->is_complete) return false;
  ReadHeader(answer);
  char* line = TamisNextLine(answer->request, &length);
  if (line == NULL) RaiseNoAnswer(answer->settings, "its last record is missing");
  if (*line != '[') {
    ReadLastRecord(answer, line);
    TamisEnd(answer->request);
    return false;
  }
  ++answer->row_number;
  // A function that reads a value may ask the server, too, for which libcurl may move its buffer.
  resetStringInfo(&answer->row);
  appendBinaryStringInfo(&answer->row, line, (int)length);
  if (strlen(line) != length || !TamisReadRow(answer->row.data, answer->values, answer->count)) {
    RaiseNoAnswer(answer->settings, "a row is not an array of its values");
  }
  return true;
}

// The beginning of the value.
static const char* ShownValue(const TamisScalar* value) {
  if (value->kind == kTamisNull) return "NULL";
  const int size = (int)strlen(value->text);
  if (!pg_verify_mbstr(PG_UTF8, value->text, size, true)) return "(a text that is not UTF-8)";
  return pnstrdup(value->text, pg_mbcliplen(value->text, size, SHOWN_BYTES));
}

void TamisRaiseValue(const TamisAnswer* answer, int number, const TamisReader* readers,
                     const char* why) {
  StringInfoData row;
  int shown = 0;
  initStringInfo(&row);
  // The owner's rights of a view do not show what the view leaves out.
  const int count = answer->settings->user_id == GetUserId() ? answer->count : 0;
  for (int i = 0; i < count && shown < SHOWN_VALUES; ++i) {
    const TamisScalar* value = &answer->values[i];
    if (i == number) continue;
    appendStringInfo(&row, "%s%s = %s", shown++ == 0 ? ": " : ", ", readers[i].column,
                     ShownValue(value));
  }
  ereport(
      ERROR,
      (errcode(readers[number].type == kTamisTextType ? ERRCODE_CHARACTER_NOT_IN_REPERTOIRE
                                                      : ERRCODE_FDW_INVALID_DATA_TYPE),
       errmsg("server \"%s\": column \"%s\" has a value that %s", answer->settings->server_name,
              readers[number].column, why),
       errdetail("It is in row " UINT64_FORMAT " of the answer%s.", answer->row_number, row.data),
       readers[number].type == kTamisTextType
           ? errhint("Option invalid_text 'null' of the foreign table shows such texts as NULL.")
           : 0));
}
