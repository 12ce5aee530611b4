#include "modify.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/inherit.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "changes.h"
#include "values.h"

#define WHOLE_ROW "wholerow"

typedef struct Modify {
  TamisSettings* settings;  // until the end of the transaction, as `table` and `insert`
  const TamisTable* table;
  const char* name;
  const char* insert;  // INSERT INTO ... VALUES
  int attribute_count;
  int* columns;   // a column for each attribute; -1: dropped
  List* targets;  // the attributes that are set
  List* named;    // by an UPDATE; its trigger may set others
  AttrNumber whole_row;
  MemoryContext context;  // memory of one row
  HTAB* changed;          // the keys of the rows that an UPDATE or a DELETE has changed
  bool is_statement;      // not COPY, nor rows of a partitioned table
  int rows;               // that became changes
} Modify;

int TamisIsForeignRelUpdatable(Relation relation) {
  const Oid table_id = RelationGetRelid(relation);
  return TamisIsUpdatable(GetForeignTable(table_id)->serverid, table_id)
             ? (1 << CMD_INSERT) | (1 << CMD_UPDATE) | (1 << CMD_DELETE)
             : 0;
}

void TamisAddForeignUpdateTargets(PlannerInfo* root, Index index, RangeTblEntry* entry,
                                  Relation relation) {
  // For UPDATE the planner adds it itself.
  if (root->parse->commandType != CMD_DELETE) return;
  // Its type is record, as the type of the planner's own: partitions share it.
  add_row_identity_var(root, makeVar((int)index, InvalidAttrNumber, RECORDOID, -1, InvalidOid, 0),
                       index, WHOLE_ROW);
}

// ---- Planning

static void RefuseOnConflict(const ModifyTable* plan) {
  if (plan == NULL || plan->onConflictAction == ONCONFLICT_NONE) return;
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("ON CONFLICT is not possible on a foreign table of tamis_fdw: its changes "
                         "are sent at COMMIT, and the conflict is not known before"),
                  errhint("UPDATE the row, and INSERT it if there is none.")));
}

static List* AllAttributes(Relation relation) {
  const TupleDesc row = RelationGetDescr(relation);
  List* attributes = NIL;
  for (int i = 1; i <= row->natts; ++i) {
    const Form_pg_attribute form = TupleDescAttr(row, i - 1);
    if (!form->attisdropped) attributes = lappend_int(attributes, i);
  }
  return attributes;
}

static List* UpdatedAttributes(PlannerInfo* root, Index index) {
  RelOptInfo* rel = find_base_rel(root, (int)index);
  Bitmapset* updated = get_rel_all_updated_cols(root, rel);
  List* attributes = NIL;
  int column = -1;
  while ((column = bms_next_member(updated, column)) >= 0) {
    attributes = lappend_int(attributes, column + FirstLowInvalidHeapAttributeNumber);
  }
  return attributes;
}

List* TamisPlanForeignModify(PlannerInfo* root, ModifyTable* plan, Index index, int number) {
  const RangeTblEntry* entry = planner_rt_fetch(index, root);
  Relation relation = table_open(entry->relid, NoLock);
  const bool all = plan->operation == CMD_INSERT ||
                   (relation->trigdesc != NULL && relation->trigdesc->trig_update_before_row);
  List* targets = NIL;
  List* named = NIL;
  RefuseOnConflict(plan);
  if (plan->operation == CMD_UPDATE) named = UpdatedAttributes(root, index);
  if (plan->operation != CMD_DELETE) targets = all ? AllAttributes(relation) : named;
  table_close(relation, NoLock);
  return list_make2(targets, named);
}

// ---- Beginning

static Oid UserOf(EState* estate, ResultRelInfo* relation) {
#if PG_VERSION_NUM >= 160000
  const Oid user = ExecGetResultRelCheckAsUser(relation, estate);
#else
  const ResultRelInfo* root =
      relation->ri_RootResultRelInfo != NULL ? relation->ri_RootResultRelInfo : relation;
  const Oid user = root->ri_RangeTableIndex == 0
                       ? InvalidOid
                       : exec_rt_fetch(root->ri_RangeTableIndex, estate)->checkAsUser;
#endif
  return OidIsValid(user) ? user : GetUserId();
}

static const char* KeepName(const char* name) {
  return MemoryContextStrdup(TopTransactionContext, name);
}

static const TamisColumn* ColumnOf(const Modify* modify, int attribute) {
  return &modify->table->columns[modify->columns[attribute - 1]];
}

static bool IsKey(const TamisTable* table, int column) {
  for (int i = 0; i < table->orders[0].count; ++i) {
    if (table->orders[0].columns[i] == column) return true;
  }
  return false;
}

// The attributes that an INSERT sends: a computed column is none.
static List* WithoutComputed(const Modify* modify, List* attributes) {
  List* others = NIL;
  ListCell* cell;
  foreach (cell, attributes) {
    if (!ColumnOf(modify, lfirst_int(cell))->computed)
      others = lappend_int(others, lfirst_int(cell));
  }
  return others;
}

static const char* InsertText(const Modify* modify) {
  StringInfoData sql;
  const char* separator = "(";
  ListCell* cell;
  initStringInfo(&sql);
  appendStringInfoString(&sql, "INSERT INTO ");
  TamisAppendName(&sql, modify->name);
  foreach (cell, WithoutComputed(modify, modify->targets)) {
    appendStringInfoString(&sql, separator);
    TamisAppendName(&sql, ColumnOf(modify, lfirst_int(cell))->name);
    separator = ", ";
  }
  appendStringInfoString(&sql, ") VALUES");
  return KeepName(sql.data);
}

// A column that both PostgreSQL and the store compute is not sent.
static List* WithoutGenerated(const Modify* modify, TupleDesc row, List* attributes) {
  List* others = NIL;
  ListCell* cell;
  foreach (cell, attributes) {
    const int attribute = lfirst_int(cell);
    if (TupleDescAttr(row, attribute - 1)->attgenerated == '\0' ||
        !ColumnOf(modify, attribute)->computed) {
      others = lappend_int(others, attribute);
    }
  }
  return others;
}

static Modify* MakeModify(EState* estate, ResultRelInfo* relation, List* targets) {
  const Oid table_id = RelationGetRelid(relation->ri_RelationDesc);
  const TupleDesc row = RelationGetDescr(relation->ri_RelationDesc);
  Modify* modify = palloc0(sizeof(Modify));
  modify->settings = TamisKeepSettings(
      TamisSettingsOf(GetForeignTable(table_id)->serverid, UserOf(estate, relation), table_id));
  modify->name = KeepName(TamisTableName(table_id));
  modify->table = TamisFindTable(modify->settings, modify->name);
  modify->attribute_count = row->natts;
  modify->columns = palloc(sizeof(int) * Max(row->natts, 1));
  for (int i = 0; i < row->natts; ++i) {
    modify->columns[i] = TupleDescAttr(row, i)->attisdropped
                             ? -1
                             : TamisColumnOfAttribute(modify->table, table_id, i + 1);
  }
  modify->targets = WithoutGenerated(modify, row, targets);
  modify->context =
      AllocSetContextCreate(estate->es_query_cxt, "tamis change", ALLOCSET_SMALL_SIZES);
  return modify;
}

// Whether the attribute has the value of the store, and not a rounded one.
static bool IsExact(const Modify* modify, const ResultRelInfo* relation, int attribute) {
  const Form_pg_attribute form =
      TupleDescAttr(RelationGetDescr(relation->ri_RelationDesc), attribute - 1);
  int32 typmod = form->atttypmod;
  const Oid base = getBaseTypeAndTypmod(form->atttypid, &typmod);
  return typmod < 0 && TamisIsSame(base, ColumnOf(modify, attribute)->type);
}

// A key that is rounded, or written in another form, may be that of another row.
static void RefuseInexactKey(const Modify* modify, const ResultRelInfo* relation, int attribute) {
  const Form_pg_attribute form =
      TupleDescAttr(RelationGetDescr(relation->ri_RelationDesc), attribute - 1);
  ereport(ERROR,
          (errcode(ERRCODE_FDW_INVALID_DATA_TYPE),
           errmsg("cannot change rows of table \"%s\": column \"%s\", which is in the key, is %s, "
                  "which need not be the value of the store",
                  modify->name, NameStr(form->attname),
                  format_type_with_typemod(form->atttypid, form->atttypmod)),
           errhint("Declare it as %s.", TamisSqlType(ColumnOf(modify, attribute)->type))));
}

// UPDATE and DELETE name a row by its key.
static void CheckKey(const Modify* modify, const ResultRelInfo* relation) {
  const TamisOrder* key = &modify->table->orders[0];
  for (int i = 0; i < key->count; ++i) {
    bool found = false;
    for (int j = 0; j < modify->attribute_count; ++j) {
      if (modify->columns[j] != key->columns[i]) continue;
      found = true;
      if (!IsExact(modify, relation, j + 1)) RefuseInexactKey(modify, relation, j + 1);
    }
    if (found) continue;
    ereport(ERROR,
            (errcode(ERRCODE_FDW_COLUMN_NAME_NOT_FOUND),
             errmsg("cannot change rows of table \"%s\": the foreign table has no column for "
                    "\"%s\", which is in the key",
                    modify->name, modify->table->columns[key->columns[i]].name)));
  }
}

void TamisBeginForeignModify(ModifyTableState* state, ResultRelInfo* relation, List* private,
                             int number, int flags) {
  EState* estate = state->ps.state;
  if ((flags & EXEC_FLAG_EXPLAIN_ONLY) != 0) return;
  Modify* modify = MakeModify(estate, relation, linitial(private));
  modify->is_statement = true;
  modify->named = lsecond(private);
  if (state->operation == CMD_INSERT) {
    modify->insert = InsertText(modify);
  } else {
    CheckKey(modify, relation);
    modify->whole_row =
        ExecFindJunkAttributeInTlist(outerPlanState(state)->plan->targetlist, WHOLE_ROW);
    if (!AttributeNumberIsValid(modify->whole_row)) elog(ERROR, "could not find the whole row");
  }
  relation->ri_FdwState = modify;
}

void TamisBeginForeignInsert(ModifyTableState* state, ResultRelInfo* relation) {
  EState* estate = state->ps.state;
  RefuseOnConflict((const ModifyTable*)state->ps.plan);
  if (relation->ri_FdwState != NULL) {
    ereport(ERROR,
            (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
             errmsg("cannot move rows into foreign table \"%s\", which the same UPDATE changes",
                    RelationGetRelationName(relation->ri_RelationDesc)),
             errhint("Exclude its rows by a condition of the partition's key.")));
  }
  Modify* modify = MakeModify(estate, relation, AllAttributes(relation->ri_RelationDesc));
  modify->insert = InsertText(modify);
  relation->ri_FdwState = modify;
}

// ---- Rows

static void AppendValue(const Modify* modify, Oid pg_type, int attribute, Datum value, bool is_null,
                        StringInfo parameters) {
  const TamisColumn* column = ColumnOf(modify, attribute);
  if (parameters->len > 0) appendStringInfoChar(parameters, ',');
  if (is_null) {
    appendStringInfoString(parameters, "null");
  } else if (TamisAppendParameter(parameters, column->type, getBaseType(pg_type), value) !=
             kTamisInside) {
    ereport(ERROR,
            (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
             errmsg("column \"%s\" of table \"%s\" cannot hold %s", column->name, modify->name,
                    column->type == kTamisTimestamp
                        ? "infinity and times outside of the years 0 to 9999"
                        : "NaN and infinity")));
  }
}

static Oid TypeOf(const ResultRelInfo* relation, int attribute) {
  return TupleDescAttr(RelationGetDescr(relation->ri_RelationDesc), attribute - 1)->atttypid;
}

static void RefuseComputed(const Modify* modify, int attribute) {
  ereport(ERROR, (errcode(ERRCODE_GENERATED_ALWAYS),
                  errmsg("column \"%s\" of table \"%s\" is computed by the store and cannot be set",
                         ColumnOf(modify, attribute)->name, modify->name)));
}

static MemoryContext BeginRow(Modify* modify) {
  MemoryContextReset(modify->context);
  return MemoryContextSwitchTo(modify->context);
}

TupleTableSlot* TamisExecForeignInsert(EState* estate, ResultRelInfo* relation,
                                       TupleTableSlot* slot, TupleTableSlot* plan_slot) {
  Modify* modify = relation->ri_FdwState;
  StringInfoData parameters;
  int count = 0;
  ListCell* cell;
  slot_getallattrs(slot);
  const MemoryContext before = BeginRow(modify);
  initStringInfo(&parameters);
  foreach (cell, modify->targets) {
    const int attribute = lfirst_int(cell);
    const bool is_null = slot->tts_isnull[attribute - 1];
    if (ColumnOf(modify, attribute)->computed) {
      if (!is_null) RefuseComputed(modify, attribute);
      continue;
    }
    AppendValue(modify, TypeOf(relation, attribute), attribute, slot->tts_values[attribute - 1],
                is_null, &parameters);
    ++count;
  }
  ++modify->rows;
  TamisAddChange(modify->settings, modify->name, modify->table->id, kTamisInsert, modify->insert,
                 parameters.data, count);
  MemoryContextSwitchTo(before);
  return slot;
}

// The row as the statement has read it.
static void ReadOldRow(const Modify* modify, ResultRelInfo* relation, TupleTableSlot* plan_slot,
                       Datum** values, bool** nulls) {
  bool is_null = false;
  const TupleDesc row = RelationGetDescr(relation->ri_RelationDesc);
  const Datum whole = ExecGetJunkAttribute(plan_slot, modify->whole_row, &is_null);
  if (is_null) elog(ERROR, "the whole row is NULL");
  HeapTupleHeader header = DatumGetHeapTupleHeader(whole);
  HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};
  *values = palloc(sizeof(Datum) * Max(row->natts, 1));
  *nulls = palloc(sizeof(bool) * Max(row->natts, 1));
  heap_deform_tuple(&tuple, row, *values, *nulls);
}

// The order of conditions: SQLite leaves its own test, which rounds decimals, out for the first 16.
static int RankOf(const Modify* modify, int attribute) {
  if (IsKey(modify->table, modify->columns[attribute - 1])) return 0;
  return ColumnOf(modify, attribute)->type == kTamisDecimal ? 1 : 2;
}

static void AppendOldValue(const Modify* modify, const ResultRelInfo* relation, int attribute,
                           Datum value, bool is_null, StringInfo sql, StringInfo parameters) {
  const TamisColumn* column = ColumnOf(modify, attribute);
  const bool is_key = RankOf(modify, attribute) == 0;
  StringInfoData json;
  if (column->computed || (!is_key && !IsExact(modify, relation, attribute))) return;
  // It may stand for a text that PostgreSQL cannot hold.
  const bool may_be_a_text =
      is_null && column->type == kTamisTextType && modify->settings->invalid_text_is_null;
  if (may_be_a_text && is_key) {
    ereport(ERROR,
            (errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
             errmsg("cannot change a row of table \"%s\" whose key is a text that PostgreSQL "
                    "cannot hold",
                    modify->name)));
  }
  if (may_be_a_text) return;
  initStringInfo(&json);
  if (!is_null && !is_key &&
      TamisAppendParameter(&json, column->type, getBaseType(TypeOf(relation, attribute)), value) !=
          kTamisInside) {
    return;  // a time that the store shows and no condition finds
  }
  appendStringInfoString(sql, sql->data[sql->len - 1] == ' ' ? "" : " AND ");
  TamisAppendName(sql, column->name);
  if (is_null) {
    appendStringInfoString(sql, " IS NULL");
    return;
  }
  appendStringInfoString(sql, " = ?");
  AppendValue(modify, TypeOf(relation, attribute), attribute, value, false, parameters);
}

static void AppendOldRow(const Modify* modify, const ResultRelInfo* relation, const Datum* values,
                         const bool* nulls, StringInfo sql, StringInfo parameters) {
  appendStringInfoString(sql, " WHERE ");
  for (int rank = 0; rank <= 2; ++rank) {
    for (int i = 1; i <= modify->attribute_count; ++i) {
      if (modify->columns[i - 1] < 0 || RankOf(modify, i) != rank) continue;
      AppendOldValue(modify, relation, i, values[i - 1], nulls[i - 1], sql, parameters);
    }
  }
}

static uint32 HashKey(const void* key, Size size) {
  const char* text = *(const char* const*)key;
  return hash_bytes((const unsigned char*)text, (int)strlen(text));
}

static int CompareKeys(const void* a, const void* b, Size size) {
  return strcmp(*(const char* const*)a, *(const char* const*)b);
}

static HTAB* MakeChangedRows(MemoryContext context) {
  HASHCTL control = {.keysize = sizeof(char*),
                     .entrysize = sizeof(char*),
                     .hash = HashKey,
                     .match = CompareKeys,
                     .hcxt = context};
  return hash_create("rows changed by a statement", 64, &control,
                     HASH_ELEM | HASH_FUNCTION | HASH_COMPARE | HASH_CONTEXT);
}

// Whether the statement has changed the row already: where UPDATE ... FROM finds a row twice,
// PostgreSQL takes the first time.
static bool IsChangedAgain(Modify* modify, EState* estate, const ResultRelInfo* relation,
                           const Datum* values, const bool* nulls) {
  StringInfoData key;
  bool found = false;
  initStringInfo(&key);
  for (int i = 1; i <= modify->attribute_count; ++i) {
    if (modify->columns[i - 1] < 0 || RankOf(modify, i) != 0) continue;
    AppendValue(modify, TypeOf(relation, i), i, values[i - 1], nulls[i - 1], &key);
  }
  if (modify->changed == NULL) modify->changed = MakeChangedRows(estate->es_query_cxt);
  char** entry = hash_search(modify->changed, &key.data, HASH_ENTER, &found);
  if (!found) *entry = MemoryContextStrdup(estate->es_query_cxt, key.data);
  return found;
}

// Whether a trigger has left the attribute as it was.
static bool IsUnchanged(const TupleTableSlot* slot, int attribute, const Datum* values,
                        const bool* nulls) {
  const Form_pg_attribute form = TupleDescAttr(slot->tts_tupleDescriptor, attribute - 1);
  const int i = attribute - 1;
  if (slot->tts_isnull[i] || nulls[i]) return slot->tts_isnull[i] && nulls[i];
  return datum_image_eq(slot->tts_values[i], values[i], form->attbyval, form->attlen);
}

// The change of a row that was read before.
typedef struct RowChange {
  MemoryContext before;
  StringInfoData sql;
  StringInfoData parameters;
  Datum* values;  // the row that was read
  bool* nulls;
} RowChange;

// False: the statement has changed the row already, and nothing is to be sent.
static bool BeginChange(Modify* modify, EState* estate, ResultRelInfo* relation,
                        TupleTableSlot* plan_slot, RowChange* change) {
  change->before = BeginRow(modify);
  initStringInfo(&change->sql);
  initStringInfo(&change->parameters);
  ReadOldRow(modify, relation, plan_slot, &change->values, &change->nulls);
  if (!IsChangedAgain(modify, estate, relation, change->values, change->nulls)) return true;
  MemoryContextSwitchTo(change->before);
  return false;
}

// With the condition that the row is still as it was read.
static void EndChange(Modify* modify, ResultRelInfo* relation, TamisChangeKind kind,
                      RowChange* change) {
  AppendOldRow(modify, relation, change->values, change->nulls, &change->sql, &change->parameters);
  ++modify->rows;
  TamisAddChange(modify->settings, modify->name, modify->table->id, kind, change->sql.data,
                 change->parameters.data, 0);
  MemoryContextSwitchTo(change->before);
}

TupleTableSlot* TamisExecForeignUpdate(EState* estate, ResultRelInfo* relation,
                                       TupleTableSlot* slot, TupleTableSlot* plan_slot) {
  Modify* modify = relation->ri_FdwState;
  RowChange change;
  const char* separator = " SET ";
  ListCell* cell;
  slot_getallattrs(slot);
  if (!BeginChange(modify, estate, relation, plan_slot, &change)) return NULL;
  appendStringInfoString(&change.sql, "UPDATE ");
  TamisAppendName(&change.sql, modify->name);
  foreach (cell, modify->targets) {
    const int attribute = lfirst_int(cell);
    if (!list_member_int(modify->named, attribute) &&
        IsUnchanged(slot, attribute, change.values, change.nulls)) {
      continue;
    }
    if (ColumnOf(modify, attribute)->computed) RefuseComputed(modify, attribute);
    appendStringInfoString(&change.sql, separator);
    TamisAppendName(&change.sql, ColumnOf(modify, attribute)->name);
    appendStringInfoString(&change.sql, " = ?");
    AppendValue(modify, TypeOf(relation, attribute), attribute, slot->tts_values[attribute - 1],
                slot->tts_isnull[attribute - 1], &change.parameters);
    separator = ", ";
  }
  EndChange(modify, relation, kTamisUpdate, &change);
  return slot;
}

TupleTableSlot* TamisExecForeignDelete(EState* estate, ResultRelInfo* relation,
                                       TupleTableSlot* slot, TupleTableSlot* plan_slot) {
  Modify* modify = relation->ri_FdwState;
  RowChange change;
  if (!BeginChange(modify, estate, relation, plan_slot, &change)) return NULL;
  appendStringInfoString(&change.sql, "DELETE FROM ");
  TamisAppendName(&change.sql, modify->name);
  EndChange(modify, relation, kTamisDelete, &change);
  // For RETURNING.
  ExecClearTuple(slot);
  memcpy(slot->tts_values, change.values, sizeof(Datum) * modify->attribute_count);
  memcpy(slot->tts_isnull, change.nulls, sizeof(bool) * modify->attribute_count);
  return ExecStoreVirtualTuple(slot);
}

// ---- Ending

// Whether the statement is a transaction of its own, and not one in a function.
static bool IsAutocommit(const EState* estate, const ResultRelInfo* relation) {
  return !IsTransactionBlock() && GetCurrentTransactionNestLevel() == 1 &&
         estate->es_sourceText == debug_query_string && relation->ri_TrigDesc == NULL;
}

// A single row is sent here, so that its error is the statement's in the extended protocol too.
void TamisEndForeignModify(EState* estate, ResultRelInfo* relation) {
  const Modify* modify = relation->ri_FdwState;
  if (modify == NULL || !modify->is_statement || modify->rows != 1 || TamisChangeCount() != 1)
    return;
  if (IsAutocommit(estate, relation)) TamisSendChanges();
}

void TamisEndForeignInsert(EState* estate, ResultRelInfo* relation) {}

void TamisExplainForeignModify(ModifyTableState* state, ResultRelInfo* relation, List* private,
                               int number, ExplainState* explain) {
  static const char* const kSent = "at COMMIT; a single row in autocommit at once";
  if (explain->verbose) ExplainPropertyText("Changes Sent", kSent, explain);
}
