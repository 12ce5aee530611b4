#include "changes.h"

#include "access/xact.h"
#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"

#include "answer.h"
#include "http.h"

#define MAX_CHANGES 1000000  // they wait in memory
#define MAX_BYTES ((Size)1 << 30)
#define INSERT_ROWS 500
#define INSERT_BYTES (512 * 1024)
#define INSERT_VALUES 30000  // SQLite's parameters

typedef struct Change {
  TamisSettings* settings;
  char* table;
  uint32 table_id;
  TamisChangeKind kind;
  char* sql;
  char* parameters;
  int count;
  int nest_level;
  CommandId command;
  Size bytes;
} Change;

static List* changes = NIL;  // in TopTransactionContext
static Size changes_bytes = 0;

static void ForgetChanges(void) {
  changes = NIL;  // with the transaction's memory
  changes_bytes = 0;
}

static char* KeepText(const char* text) {
  return text == NULL ? NULL : MemoryContextStrdup(TopTransactionContext, text);
}

TamisSettings* TamisKeepSettings(const TamisSettings* settings) {
  TamisSettings* kept = MemoryContextAlloc(TopTransactionContext, sizeof(TamisSettings));
  *kept = *settings;
  kept->server_name = KeepText(settings->server_name);
  kept->url = KeepText(settings->url);
  kept->ca = KeepText(settings->ca);
  kept->cert = KeepText(settings->cert);
  kept->key = KeepText(settings->key);
  kept->token = KeepText(settings->token);
  return kept;
}

void TamisAddChange(TamisSettings* settings, const char* table, uint32 table_id,
                    TamisChangeKind kind, const char* sql, const char* parameters, int count) {
  const Size bytes = strlen(parameters) + (kind == kTamisInsert ? 0 : strlen(sql));
  if (list_length(changes) == MAX_CHANGES || changes_bytes + bytes > MAX_BYTES) {
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                    errmsg("a transaction holds at most %d changes of foreign tables, and %zu "
                           "bytes of them",
                           MAX_CHANGES, MAX_BYTES),
                    errhint("Commit more often.")));
  }
  const MemoryContext before = MemoryContextSwitchTo(TopTransactionContext);
  Change* change = palloc0(sizeof(Change));
  change->settings = settings;
  change->table = (char*)table;
  change->table_id = table_id;
  change->kind = kind;
  change->sql = kind == kTamisInsert ? (char*)sql : pstrdup(sql);
  change->parameters = pstrdup(parameters);
  change->count = count;
  change->nest_level = GetCurrentTransactionNestLevel();
  // Later statements of the transaction see it, so that they have another number.
  change->command = GetCurrentCommandId(true);
  change->bytes = bytes;
  changes = lappend(changes, change);
  changes_bytes += bytes;
  MemoryContextSwitchTo(before);
}

int TamisChangeCount(void) { return list_length(changes); }

void TamisRefuseUnsentChanges(const TamisSettings* settings, const char* table, Snapshot snapshot) {
  ListCell* cell;
  foreach (cell, changes) {
    const Change* change = lfirst(cell);
    // The same store may have several addresses.
    if (strcmp(change->table, table) != 0) continue;
    if (snapshot != NULL && change->command >= snapshot->curcid) continue;
    ereport(
        ERROR,
        (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
         errmsg("cannot read table \"%s\" of server \"%s\": this transaction has changed it, and "
                "its changes are sent at COMMIT",
                table, settings->server_name),
         errhint("Commit first, or read the table before it is changed.")));
  }
}

// ---- Sending

typedef struct Sending {
  int first;              // the first of the changes that go together
  int rows;               // how many these are
  TamisRequest* request;  // until its answer was read
} Sending;

// Called for every error while a change is sent, of memory and interrupts too. Without an answer
// its outcome is unknown, whatever the error is.
static void NameChange(void* argument) {
  const Sending* sending = argument;
  const Change* change = list_nth(changes, sending->first);
  static const char* const kVerbs[] = {"INSERT into", "UPDATE of", "DELETE from"};
  const char* before = sending->first == 0 ? "none was made before" : "those before were made";
  if (sending->request != NULL && TamisMayHaveRun(sending->request) &&
      geterrcode() != ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN) {
    errcode(ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN);
    errcontext("the change was sent, and its outcome is unknown: it may have been made");
  }
  if (sending->rows <= 1) {
    errcontext("sending change %d of %d of the transaction, %s table \"%s\"; %s",
               sending->first + 1, list_length(changes), kVerbs[change->kind], change->table,
               before);
  } else {
    errcontext(
        "sending changes %d to %d of %d of the transaction, %s table \"%s\"; %s, and some "
        "of these may have been made too",
        sending->first + 1, sending->first + sending->rows, list_length(changes),
        kVerbs[change->kind], change->table, before);
  }
}

static void AppendRow(const Change* change, StringInfo sql, StringInfo parameters) {
  appendStringInfoString(sql,
                         parameters->len == 0 && sql->data[sql->len - 1] != ')' ? " (" : ", (");
  for (int i = 0; i < change->count; ++i) appendStringInfoString(sql, i == 0 ? "?" : ",?");
  appendStringInfoChar(sql, ')');
  appendStringInfo(parameters, "%s%s", parameters->len == 0 ? "" : ",", change->parameters);
}

// Whether the next change goes with the inserts that begin with `first`.
static bool GoesWith(const Change* first, const Change* next, int rows, int bytes) {
  return next->kind == kTamisInsert && next->sql == first->sql && rows < INSERT_ROWS &&
         bytes < INSERT_BYTES && (rows + 1) * first->count <= INSERT_VALUES;
}

// The statement of the changes from `first` on; returns how many these are.
static int MakeStatement(int first, StringInfo sql, StringInfo parameters) {
  const Change* change = list_nth(changes, first);
  int rows = 1;
  appendStringInfoString(sql, change->sql);
  if (change->kind != kTamisInsert) {
    appendStringInfoString(parameters, change->parameters);
    return 1;
  }
  AppendRow(change, sql, parameters);
  while (first + rows < list_length(changes) &&
         GoesWith(change, list_nth(changes, first + rows), rows, parameters->len)) {
    AppendRow(list_nth(changes, first + rows), sql, parameters);
    ++rows;
  }
  return rows;
}

static Jsonb* ReadOutcome(const Change* change, char* answer) {
  Jsonb* document = TamisReadDocument(answer);
  if (document == NULL || !TamisTrueMember(&document->root, "complete")) {
    ereport(ERROR,
            (errcode(ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN),
             errmsg("the answer of server \"%s\" is not complete: the outcome of the change is "
                    "unknown",
                    change->settings->server_name)));
  }
  return document;
}

static void CheckOutcome(const Change* change, int rows, Jsonb* document) {
  const double changed = TamisNumberMember(&document->root, "changes", -1);
  if (changed == (double)rows) return;
  if (change->kind == kTamisInsert) {
    ereport(ERROR, (errcode(ERRCODE_FDW_ERROR),
                    errmsg("server \"%s\" wrote %.0f of %d rows to table \"%s\"",
                           change->settings->server_name, changed, rows, change->table)));
  }
  ereport(ERROR,
          (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
           errmsg("a row of table \"%s\" was changed by another client since this transaction "
                  "read it",
                  change->table),
           errhint("Run the transaction again.")));
}

static void SendNext(Sending* sending) {
  MemoryContext context =
      AllocSetContextCreate(TopTransactionContext, "tamis change", ALLOCSET_DEFAULT_SIZES);
  const MemoryContext before = MemoryContextSwitchTo(context);
  const Change* change = list_nth(changes, sending->first);
  StringInfoData sql;
  StringInfoData parameters;
  initStringInfo(&sql);
  initStringInfo(&parameters);
  sending->rows = MakeStatement(sending->first, &sql, &parameters);
  const TamisStatement statement = {.sql = sql.data,
                                    .parameters = parameters.data,
                                    .table = change->table,
                                    .table_id = change->table_id};
  sending->request = TamisBegin(
      change->settings, (TamisCall){.path = "/v1/sql",
                                    .body = TamisRequestBody(change->settings, statement, false),
                                    .is_change = true});
  Jsonb* outcome = ReadOutcome(change, TamisWholeAnswer(sending->request));
  sending->request = NULL;
  CheckOutcome(change, sending->rows, outcome);
  MemoryContextSwitchTo(before);
  MemoryContextDelete(context);
  sending->first += sending->rows;
  sending->rows = 0;
}

void TamisSendChanges(void) {
  Sending sending = {0};
  ErrorContextCallback context = {
      .previous = error_context_stack, .callback = NameChange, .arg = &sending};
  error_context_stack = &context;
  while (sending.first < list_length(changes)) SendNext(&sending);
  error_context_stack = context.previous;
  list_free(changes);
  ForgetChanges();
}

// ---- The transaction's events

static void OnTransaction(XactEvent event, void* argument) {
  switch (event) {
    case XACT_EVENT_PRE_COMMIT:
      if (changes != NIL) TamisSendChanges();
      break;
    case XACT_EVENT_PRE_PREPARE:
      if (changes == NIL) break;
      ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                      errmsg("cannot PREPARE a transaction that has changed foreign tables of "
                             "tamis_fdw: the store has no prepared transactions")));
    case XACT_EVENT_ABORT:
    case XACT_EVENT_COMMIT:
    case XACT_EVENT_PREPARE:
      ForgetChanges();
      break;
    default:
      break;
  }
}

// The changes of a subtransaction are the last ones.
static void OnSubtransaction(SubXactEvent event, SubTransactionId id, SubTransactionId parent,
                             void* argument) {
  const int level = GetCurrentTransactionNestLevel();
  int kept = list_length(changes);
  if (event != SUBXACT_EVENT_ABORT_SUB && event != SUBXACT_EVENT_COMMIT_SUB) return;
  for (; kept > 0; --kept) {
    Change* change = list_nth(changes, kept - 1);
    if (change->nest_level < level) break;
    if (event == SUBXACT_EVENT_COMMIT_SUB) change->nest_level = level - 1;
    if (event == SUBXACT_EVENT_ABORT_SUB) changes_bytes -= change->bytes;
  }
  if (event == SUBXACT_EVENT_ABORT_SUB) changes = list_truncate(changes, kept);
}

void TamisRegisterChanges(void) {
  RegisterXactCallback(OnTransaction, NULL);
  RegisterSubXactCallback(OnSubtransaction, NULL);
}
