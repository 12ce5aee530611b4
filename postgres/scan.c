#include "scan.h"

#include "catalog/pg_type.h"
#include "commands/vacuum.h"
#include "executor/execAsync.h"
#include "executor/executor.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/rel.h"
#include "utils/sampling.h"

#include "answer.h"
#include "changes.h"
#include "plan.h"
#include "remote_sql.h"

// The sums over all requests of the scan.
typedef struct Totals {
  uint64 requests;
  uint64 stopped;  // before their last records
  uint64 searches;
  StringInfoData indexes;
  double regions, asked, by_filter, by_cells, by_range, by_key;
  double servers, servers_asked, entries, rows, false_positives;
} Totals;

typedef struct Reading {
  TamisSettings* settings;
  const char* table;  // in the store
  List* private;
  List* expressions;  // ExprState
  Oid* expression_types;
  List* outputs;
  int reader_count;
  TamisReader* readers;   // readers of each value of a row, for aggregates too
  int* attributes;        // the attribute of each value; NULL for aggregates
  MemoryContext context;  // memory of the current request
  TamisAnswer* answer;
  bool explain;
  Totals totals;
} Reading;

static const char* PartText(const Reading* scan, TamisPlanPart part) {
  return strVal(list_nth(scan->private, part));
}

static List* Part(const Reading* scan, TamisPlanPart part) {
  return (List*)list_nth(scan->private, part);
}

// ---- Beginning

static RangeTblEntry* EntryOf(const ForeignScan* plan, EState* estate) {
#if PG_VERSION_NUM >= 160000
  const Bitmapset* relations = plan->fs_base_relids;
#else
  const Bitmapset* relations = plan->fs_relids;
#endif
  const int index =
      plan->scan.scanrelid > 0 ? (int)plan->scan.scanrelid : bms_next_member(relations, -1);
  return exec_rt_fetch(index, estate);
}

static Oid UserOf(const ForeignScan* plan, const RangeTblEntry* entry) {
#if PG_VERSION_NUM >= 160000
  return OidIsValid(plan->checkAsUser) ? plan->checkAsUser : GetUserId();
#else
  return OidIsValid(entry->checkAsUser) ? entry->checkAsUser : GetUserId();
#endif
}

static void MakeTableReaders(Reading* scan, ForeignScanState* node, List* types) {
  const TupleDesc row = RelationGetDescr(node->ss.ss_currentRelation);
  List* attributes = Part(scan, kTamisAttributes);
  scan->reader_count = list_length(attributes);
  scan->readers = palloc0(sizeof(TamisReader) * Max(scan->reader_count, 1));
  scan->attributes = palloc0(sizeof(int) * Max(scan->reader_count, 1));
  for (int i = 0; i < scan->reader_count; ++i) {
    const int attribute = list_nth_int(attributes, i);
    const Form_pg_attribute form = TupleDescAttr(row, attribute - 1);
    scan->attributes[i] = attribute;
    scan->readers[i] =
        TamisMakeReader((TamisType)list_nth_int(types, i), form->atttypid, form->atttypmod,
                        NameStr(form->attname), scan->settings->invalid_text_is_null);
  }
}

// A sum and an average are read as the integers that they are made of.
static void MakeTargetReaders(Reading* scan, ForeignScan* plan, List* types) {
  int at = 0;
  ListCell* target;
  ListCell* output;
  scan->reader_count = list_length(types);
  scan->readers = palloc0(sizeof(TamisReader) * Max(scan->reader_count, 1));
  forboth(target, plan->fdw_scan_tlist, output, scan->outputs) {
    const TargetEntry* entry = lfirst_node(TargetEntry, target);
    const bool is_plain = lfirst_int(output) == kTamisOneColumn;
    const int parts = is_plain ? 1 : lfirst_int(output) == kTamisSum ? 2 : 3;
    for (int i = 0; i < parts; ++i, ++at) {
      scan->readers[at] = TamisMakeReader((TamisType)list_nth_int(types, at),
                                          is_plain ? exprType((Node*)entry->expr) : INT8OID,
                                          is_plain ? exprTypmod((Node*)entry->expr) : -1,
                                          "(aggregate)", scan->settings->invalid_text_is_null);
    }
  }
}

void TamisBeginForeignScan(ForeignScanState* node, int flags) {
  ForeignScan* plan = (ForeignScan*)node->ss.ps.plan;
  EState* estate = node->ss.ps.state;
  Reading* scan = palloc0(sizeof(Reading));
  const RangeTblEntry* entry = EntryOf(plan, estate);
  node->fdw_state = scan;
  scan->private = plan->fdw_private;
  initStringInfo(&scan->totals.indexes);
  if ((flags & EXEC_FLAG_EXPLAIN_ONLY) != 0) return;
  scan->settings =
      TamisSettingsOf(GetForeignTable(entry->relid)->serverid, UserOf(plan, entry), entry->relid);
  scan->table = TamisTableName(entry->relid);
  scan->outputs = Part(scan, kTamisOutputs);
  scan->explain = estate->es_instrument != 0;
  List* types = Part(scan, kTamisColumnTypes);
  if (plan->scan.scanrelid > 0) {
    MakeTableReaders(scan, node, types);
  } else {
    MakeTargetReaders(scan, plan, types);
  }
  scan->expressions = ExecInitExprList(plan->fdw_exprs, &node->ss.ps);
  scan->expression_types = palloc0(sizeof(Oid) * Max(list_length(plan->fdw_exprs), 1));
  for (int i = 0; i < list_length(plan->fdw_exprs); ++i) {
    scan->expression_types[i] = exprType(list_nth(plan->fdw_exprs, i));
  }
  scan->context =
      AllocSetContextCreate(estate->es_query_cxt, "tamis request", ALLOCSET_SMALL_SIZES);
}

// ---- The request

static TamisArgument* Arguments(const Reading* scan, ExprContext* context) {
  List* types = Part(scan, kTamisTypes);
  const int count = list_length(types);
  TamisArgument* arguments = palloc0(sizeof(TamisArgument) * Max(count, 1));
  for (int i = 0; i < count; ++i) {
    arguments[i].type = (TamisType)list_nth_int(types, i);
    arguments[i].pg_type = scan->expression_types[i];
    arguments[i].value =
        ExecEvalExpr((ExprState*)list_nth(scan->expressions, i), context, &arguments[i].is_null);
  }
  return arguments;
}

static void AppendSql(const Reading* scan, const TamisArgument* arguments, List* expressions,
                      StringInfo sql, StringInfo parameters) {
  List* types = Part(scan, kTamisTypes);
  appendStringInfoString(sql, PartText(scan, kTamisHead));
  if (*PartText(scan, kTamisWhere) != '\0') {
    appendStringInfoString(sql, " WHERE ");
    TamisExpand(PartText(scan, kTamisWhere), arguments, expressions, types, sql, parameters);
  }
  TamisExpand(PartText(scan, kTamisTail), arguments, expressions, types, sql, parameters);
}

static void Ask(ForeignScanState* node) {
  Reading* scan = node->fdw_state;
  StringInfoData sql;
  StringInfoData parameters;
  // The changes that a statement sees were made before it.
  if (scan->totals.requests == 0) {
    TamisRefuseUnsentChanges(scan->settings, scan->table, node->ss.ps.state->es_snapshot);
  }
  const MemoryContext before = MemoryContextSwitchTo(scan->context);
  initStringInfo(&sql);
  initStringInfo(&parameters);
  AppendSql(scan, Arguments(scan, node->ss.ps.ps_ExprContext), NIL, &sql, &parameters);
  const TamisStatement statement = {
      .sql = sql.data,
      .parameters = parameters.data,
      .table = scan->table,
      .table_id = (uint32)intVal(list_nth(scan->private, kTamisTableId))};
  scan->answer = TamisAsk(scan->settings, statement, Part(scan, kTamisColumnTypes), scan->explain);
  MemoryContextSwitchTo(before);
  ++scan->totals.requests;
}

static void AddSearch(Totals* totals, JsonbContainer* search) {
  const char* index = TamisTextMember(search, "index");
  if (index != NULL && *index == '\0') index = "(rows)";
  if (index != NULL && strstr(totals->indexes.data, index) == NULL) {
    appendStringInfo(&totals->indexes, "%s%s", totals->indexes.len == 0 ? "" : ", ", index);
  }
  ++totals->searches;
#define ADD(member, name) totals->member += TamisNumberMember(search, name, 0)
  ADD(regions, "regions_total");
  ADD(asked, "regions_asked");
  ADD(by_filter, "regions_excluded_by_filter");
  ADD(by_cells, "regions_excluded_by_cells");
  ADD(by_range, "regions_excluded_by_range");
  ADD(by_key, "regions_excluded_by_key");
  ADD(servers, "servers_total");
  ADD(servers_asked, "servers_asked");
  ADD(entries, "entries_read");
  ADD(rows, "rows_read");
  ADD(false_positives, "false_positive_regions");
#undef ADD
}

static void AddToTotals(Reading* scan) {
  int count = 0;
  if (!scan->explain || scan->answer == NULL) return;
  if (!scan->answer->is_complete) {
    ++scan->totals.stopped;
    return;
  }
  JsonbValue* searches =
      TamisElements(TamisMember(&scan->answer->last_record->root, "searches"), &count);
  for (int i = 0; i < count; ++i) {
    if (searches[i].type == jbvBinary) AddSearch(&scan->totals, searches[i].val.binary.data);
  }
}

static void EndRequest(Reading* scan) {
  if (scan->context == NULL) return;
  AddToTotals(scan);
  scan->answer = NULL;
  MemoryContextReset(scan->context);
}

// ---- Rows

static Datum Value(Reading* scan, int number, bool* is_null) {
  const char* why = NULL;
  const Datum value =
      TamisReadValue(&scan->readers[number], &scan->answer->values[number], is_null, &why);
  if (why != NULL) TamisRaiseValue(scan->answer, number, scan->readers, why);
  return value;
}

// The exact sum of the quotients and remainders by 2^32 that begin at `number`.
static Datum Sum(Reading* scan, int number, bool* is_null) {
  bool ignored = false;
  const int64 quotients = DatumGetInt64(Value(scan, number, is_null));
  const int64 remainders = DatumGetInt64(Value(scan, number + 1, &ignored));
  if (*is_null) return (Datum)0;
  const Datum high = DirectFunctionCall2(numeric_mul, NumericGetDatum(int64_to_numeric(quotients)),
                                         NumericGetDatum(int64_to_numeric(INT64CONST(4294967296))));
  return DirectFunctionCall2(numeric_add, high, NumericGetDatum(int64_to_numeric(remainders)));
}

static void FillTargets(Reading* scan, TupleTableSlot* slot) {
  int at = 0;
  int target = 0;
  ListCell* output;
  foreach (output, scan->outputs) {
    bool* is_null = &slot->tts_isnull[target];
    Datum value;
    if (lfirst_int(output) == kTamisOneColumn) {
      value = Value(scan, at++, is_null);
    } else {
      value = Sum(scan, at, is_null);
      at += 2;
      if (lfirst_int(output) == kTamisAverage) {
        bool ignored = false;
        const int64 count = DatumGetInt64(Value(scan, at++, &ignored));
        if (!*is_null) {
          value = DirectFunctionCall2(numeric_div, value, NumericGetDatum(int64_to_numeric(count)));
        }
      }
    }
    slot->tts_values[target++] = value;
  }
}

static void FillAttributes(Reading* scan, TupleTableSlot* slot) {
  const int count = slot->tts_tupleDescriptor->natts;
  memset(slot->tts_values, 0, sizeof(Datum) * count);
  memset(slot->tts_isnull, true, sizeof(bool) * count);
  for (int i = 0; i < scan->reader_count; ++i) {
    const int at = scan->attributes[i] - 1;
    slot->tts_values[at] = Value(scan, i, &slot->tts_isnull[at]);
  }
}

static bool RowIsReady(const Reading* scan) {
  const MemoryContext before = MemoryContextSwitchTo(scan->context);
  const bool is_ready = TamisRowIsReady(scan->answer);
  MemoryContextSwitchTo(before);
  return is_ready;
}

TupleTableSlot* TamisIterateForeignScan(ForeignScanState* node) {
  Reading* scan = node->fdw_state;
  TupleTableSlot* slot = node->ss.ss_ScanTupleSlot;
  ExecClearTuple(slot);
  if (scan->answer == NULL) Ask(node);
  // To an Append an empty slot says then that no row is here yet, or that there is none.
  if (node->ss.ps.async_capable && !RowIsReady(scan)) return slot;
  const MemoryContext before = MemoryContextSwitchTo(scan->context);
  const bool has_row = TamisNextRow(scan->answer);
  MemoryContextSwitchTo(before);
  if (!has_row) return slot;
  if (scan->attributes != NULL) {
    FillAttributes(scan, slot);
  } else {
    FillTargets(scan, slot);
  }
  return ExecStoreVirtualTuple(slot);
}

void TamisReScanForeignScan(ForeignScanState* node) { EndRequest(node->fdw_state); }

void TamisEndForeignScan(ForeignScanState* node) {
  if (node->fdw_state != NULL) EndRequest(node->fdw_state);
}

// ---- Append

// Gives the Append a row or the end, or says that it has to wait.
static void Produce(AsyncRequest* request) {
  ForeignScanState* node = (ForeignScanState*)request->requestee;
  Reading* scan = node->fdw_state;
  if (scan->answer == NULL) {
    const MemoryContext before =
        MemoryContextSwitchTo(node->ss.ps.ps_ExprContext->ecxt_per_tuple_memory);
    Ask(node);
    MemoryContextSwitchTo(before);
  }
  while (RowIsReady(scan)) {
    TupleTableSlot* slot = request->requestee->ExecProcNodeReal(request->requestee);
    if (!TupIsNull(slot) || scan->answer->is_complete) {
      ExecAsyncRequestDone(request, TupIsNull(slot) ? NULL : slot);
      return;
    }
  }
  ExecAsyncRequestPending(request);
}

void TamisForeignAsyncRequest(AsyncRequest* request) { Produce(request); }

void TamisForeignAsyncNotify(AsyncRequest* request) { Produce(request); }

void TamisForeignAsyncConfigureWait(AsyncRequest* request) {
  AppendState* append = (AppendState*)request->requestor;
  const Reading* scan = ((ForeignScanState*)request->requestee)->fdw_state;
  while (request->callback_pending) {
    const int socket = TamisSocketOfSent(scan->answer->request);
    if (socket != PGINVALID_SOCKET) {
      AddWaitEventToSet(append->as_eventset, WL_SOCKET_READABLE, socket, NULL, request);
      return;
    }
    // A row has come meanwhile.
    request->callback_pending = false;
    Produce(request);
    if (request->callback_pending) continue;
    ExecAsyncResponse(request);
    if (request->requestee->instrument != NULL) {
      InstrUpdateTupleCount(request->requestee->instrument, TupIsNull(request->result) ? 0.0 : 1.0);
    }
  }
}

// ---- EXPLAIN

static void ExplainTotals(const Totals* totals, ExplainState* explain) {
  ExplainPropertyInteger("Requests", NULL, (int64)totals->requests, explain);
  if (totals->stopped > 0) {
    ExplainPropertyInteger("Requests Stopped Early", NULL, (int64)totals->stopped, explain);
  }
  if (totals->searches == 0) return;
  if (totals->indexes.len > 0) ExplainPropertyText("Index", totals->indexes.data, explain);
  ExplainPropertyText(
      "Servers", psprintf("%.0f of %.0f asked", totals->servers_asked, totals->servers), explain);
  ExplainPropertyText(
      "Regions",
      psprintf(
          "%.0f of %.0f asked, excluded: %.0f by filter, %.0f by cells, %.0f by range, %.0f by "
          "key",
          totals->asked, totals->regions, totals->by_filter, totals->by_cells, totals->by_range,
          totals->by_key),
      explain);
  ExplainPropertyText(
      "Read", psprintf("%.0f index entries, %.0f rows", totals->entries, totals->rows), explain);
}

void TamisExplainForeignScan(ForeignScanState* node, ExplainState* explain) {
  Reading* scan = node->fdw_state;
  const ForeignScan* plan = (const ForeignScan*)node->ss.ps.plan;
  if (plan->scan.scanrelid == 0) {
    const RangeTblEntry* entry = EntryOf(plan, node->ss.ps.state);
    ExplainPropertyText("Relations", psprintf("Aggregate on (%s)", get_rel_name(entry->relid)),
                        explain);
  }
  if (explain->verbose) {
    StringInfoData sql;
    initStringInfo(&sql);
    AppendSql(scan, NULL, plan->fdw_exprs, &sql, NULL);
    ExplainPropertyText("Remote SQL", sql.data, explain);
  }
  if (!explain->analyze) return;
  // A scan that was not read to its end has not told yet.
  if (scan->answer != NULL) EndRequest(scan);
  ExplainTotals(&scan->totals, explain);
}

// ---- ANALYZE

static int SampleRows(Relation relation, int level, HeapTuple* sample, int wanted,
                      double* total_rows, double* dead_rows) {
  const Oid table_id = RelationGetRelid(relation);
  const TupleDesc row = RelationGetDescr(relation);
  TamisSettings* settings =
      TamisSettingsOf(GetForeignTable(table_id)->serverid, relation->rd_rel->relowner, table_id);
  const TamisTable* table = TamisFindTable(settings, TamisTableName(table_id));
  MemoryContext context =
      AllocSetContextCreate(CurrentMemoryContext, "tamis sample", ALLOCSET_DEFAULT_SIZES);
  MemoryContext per_row = AllocSetContextCreate(context, "tamis row", ALLOCSET_SMALL_SIZES);
  const MemoryContext before = MemoryContextSwitchTo(context);
  TamisReader* readers = palloc0(sizeof(TamisReader) * Max(row->natts, 1));
  Datum* values = palloc0(sizeof(Datum) * Max(row->natts, 1));
  bool* nulls = palloc0(sizeof(bool) * Max(row->natts, 1));
  int* places = palloc0(sizeof(int) * Max(row->natts, 1));
  List* types = NIL;
  StringInfoData sql;
  ReservoirStateData reservoir;
  double to_skip = -1;
  int kept = 0;
  TamisRefuseUnsentChanges(settings, table->name, NULL);
  initStringInfo(&sql);
  appendStringInfoString(&sql, "SELECT ");
  for (int i = 0; i < row->natts; ++i) {
    const Form_pg_attribute form = TupleDescAttr(row, i);
    if (form->attisdropped) continue;
    const int column = TamisColumnOfAttribute(table, table_id, i + 1);
    const int at = list_length(types);
    readers[at] = TamisMakeReader(table->columns[column].type, form->atttypid, form->atttypmod,
                                  NameStr(form->attname), settings->invalid_text_is_null);
    places[at] = i;
    if (at > 0) appendStringInfoString(&sql, ", ");
    TamisAppendName(&sql, table->columns[column].name);
    types = lappend_int(types, table->columns[column].type);
  }
  if (types == NIL) appendStringInfoString(&sql, "NULL");
  appendStringInfoString(&sql, " FROM ");
  TamisAppendName(&sql, table->name);
  reservoir_init_selection_state(&reservoir, wanted);
  const TamisStatement statement = {
      .sql = sql.data, .parameters = "", .table = table->name, .table_id = table->id};
  TamisAnswer* answer = TamisAsk(settings, statement, types, false);
  while (TamisNextRow(answer)) {
    int place = kept;
    TAMIS_VACUUM_DELAY_POINT();
    if (kept == wanted) {
      if (to_skip < 0)
        to_skip = reservoir_get_next_S(&reservoir, (double)answer->row_number - 1, wanted);
      if (to_skip-- > 0) continue;
      place = (int)(wanted * sampler_random_fract(&reservoir.randstate));
      heap_freetuple(sample[place]);
    } else {
      ++kept;
    }
    MemoryContextSwitchTo(per_row);
    memset(nulls, true, sizeof(bool) * row->natts);
    for (int i = 0; i < list_length(types); ++i) {
      const char* why = NULL;
      values[places[i]] = TamisReadValue(&readers[i], &answer->values[i], &nulls[places[i]], &why);
      if (why != NULL) TamisRaiseValue(answer, i, readers, why);
    }
    MemoryContextSwitchTo(before);
    sample[place] = heap_form_tuple(row, values, nulls);
    MemoryContextSwitchTo(context);
    MemoryContextReset(per_row);
  }
  *total_rows = (double)answer->row_number;
  *dead_rows = 0;
  MemoryContextSwitchTo(before);
  MemoryContextDelete(context);
  ereport(level, (errmsg("\"%s\": table contains %.0f rows; %d rows in sample",
                         RelationGetRelationName(relation), *total_rows, kept)));
  return kept;
}

bool TamisAnalyzeForeignTable(Relation relation, AcquireSampleRowsFunc* function,
                              BlockNumber* pages) {
  const Oid table_id = RelationGetRelid(relation);
  TamisSettings* settings =
      TamisSettingsOf(GetForeignTable(table_id)->serverid, relation->rd_rel->relowner, table_id);
  const TamisTable* table = TamisFindTable(settings, TamisTableName(table_id));
  *function = SampleRows;
  *pages = (BlockNumber)(table->estimated_rows * 100 / BLCKSZ) + 1;
  return true;
}
