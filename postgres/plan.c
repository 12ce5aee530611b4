#include "plan.h"

#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "remote_sql.h"
#include "settings.h"
#include "table.h"
#include "versions.h"

// SQLite leaves its own test of a condition out for the first 16 only, and it would compare
// decimals as doubles.
#define MAX_DECIMAL_CONDITIONS 8
#define LOOKUP_COST 0.03  // of a row that an index finds, in the server
#define READ_COST 0.01    // of a row that is read and not sent
#define SORT_FACTOR 1.2
#define LIMIT_FACTOR 0.95  // the server reads no rows ahead

// A relation that the server can be asked for: a foreign table, or a stage above one.
typedef struct Planned {
  TamisSettings* settings;
  TamisSql sql;  // without parameters
  RelOptInfo* table;
  bool has_local_conditions;
  bool can_be_ordered;  // by the query's pathkeys
  bool is_ordered;      // the stage ORDER BY
  // The stage GROUP BY:
  bool is_grouped;
  List* targets;
  List* having;
} Planned;

static Oid UserOf(PlannerInfo* root, RelOptInfo* rel) {
#if PG_VERSION_NUM >= 160000
  return OidIsValid(rel->userid) ? rel->userid : GetUserId();
#else
  const RangeTblEntry* entry = planner_rt_fetch(rel->relid, root);
  return OidIsValid(entry->checkAsUser) ? entry->checkAsUser : GetUserId();
#endif
}

static bool IsDecimalCondition(const TamisSql* sql, Expr* clause) {
  List* vars = pull_var_clause(
      (Node*)clause, PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_RECURSE_PLACEHOLDERS);
  ListCell* cell;
  foreach (cell, vars) {
    const int column = TamisColumnOf(sql, lfirst(cell));
    if (column >= 0 && sql->table->columns[column].type == kTamisDecimal) return true;
  }
  return false;
}

// Deparses the clauses (RestrictInfos) to a template, and returns those that are checked here.
static List* DeparseClauses(TamisSql* sql, List* clauses, StringInfo where) {
  List* local = NIL;
  StringInfoData others;
  int decimals = 0;
  ListCell* cell;
  initStringInfo(&others);
  foreach (cell, clauses) {
    RestrictInfo* info = lfirst_node(RestrictInfo, cell);
    const bool is_decimal = IsDecimalCondition(sql, info->clause);
    StringInfo out = is_decimal ? where : &others;
    StringInfoData one;
    if (info->pseudoconstant) continue;
    initStringInfo(&one);
    const TamisReach reach = is_decimal && decimals == MAX_DECIMAL_CONDITIONS
                                 ? kTamisNotAtAll
                                 : TamisDeparseCondition(sql, info->clause, &one);
    if (reach != kTamisExactly) local = lappend(local, info);
    if (reach == kTamisNotAtAll) continue;
    appendStringInfo(out, "%s%s", out->len == 0 ? "" : " AND ", one.data);
    if (is_decimal) ++decimals;
  }
  appendStringInfo(where, "%s%s", where->len > 0 && others.len > 0 ? " AND " : "", others.data);
  return local;
}

// ---- Estimates

// The column that a clause compares with values; -1 for other clauses.
static int ComparedColumn(const TamisSql* sql, Expr* clause, bool* is_equality) {
  List* arguments = NIL;
  Oid comparison = InvalidOid;
  if (IsA(clause, OpExpr)) {
    arguments = ((OpExpr*)clause)->args;
    comparison = ((OpExpr*)clause)->opno;
  } else if (IsA(clause, ScalarArrayOpExpr) && ((ScalarArrayOpExpr*)clause)->useOr) {
    arguments = ((ScalarArrayOpExpr*)clause)->args;
    comparison = ((ScalarArrayOpExpr*)clause)->opno;
  }
  if (list_length(arguments) != 2) return -1;
  const char* name = get_opname(comparison);
  if (name == NULL || strcmp(name, "<>") == 0) return -1;
  *is_equality = strcmp(name, "=") == 0;
  const int column = TamisColumnOf(sql, linitial(arguments));
  return column >= 0 ? column : TamisColumnOf(sql, lsecond(arguments));
}

// Whether the key or an index finds the rows of the clauses.
static bool HasLookup(const Planned* relation, List* clauses) {
  const TamisTable* table = relation->sql.table;
  ListCell* cell;
  foreach (cell, clauses) {
    RestrictInfo* info = lfirst_node(RestrictInfo, cell);
    TamisSql sql = relation->sql;
    StringInfoData ignored;
    bool is_equality = false;
    const int column = ComparedColumn(&sql, info->clause, &is_equality);
    if (column < 0) continue;
    initStringInfo(&ignored);
    if (TamisDeparseCondition(&sql, info->clause, &ignored) == kTamisNotAtAll) continue;
    for (int i = 0; i < table->order_count; ++i) {
      if (table->orders[i].count > 0 && table->orders[i].columns[0] == column) return true;
    }
  }
  return false;
}

static void EstimateCost(const Planned* relation, RelOptInfo* rel, List* clauses, double rows,
                         Cost* startup, Cost* total) {
  const double read = HasLookup(relation, clauses) ? rows * (LOOKUP_COST / READ_COST) : rel->tuples;
  *startup = relation->settings->startup_cost + rel->baserestrictcost.startup;
  *total = *startup + Max(read, rows) * READ_COST +
           rows * (relation->settings->row_cost + rel->baserestrictcost.per_tuple + cpu_tuple_cost);
}

void TamisGetForeignRelSize(PlannerInfo* root, RelOptInfo* rel, Oid table_id) {
  Planned* relation = palloc0(sizeof(Planned));
  StringInfoData ignored;
  relation->settings = TamisSettingsOf(rel->serverid, UserOf(root, rel), table_id);
  relation->table = rel;
  relation->sql.root = root;
  relation->sql.rtindex = rel->relid;
  relation->sql.relids = rel->relids;
  relation->sql.table_id = table_id;
  relation->sql.table = TamisFindTable(relation->settings, TamisTableName(table_id));
  relation->sql.invalid_text_is_null = relation->settings->invalid_text_is_null;
  rel->fdw_private = relation;
  initStringInfo(&ignored);
  TamisSql sql = relation->sql;
  relation->has_local_conditions = DeparseClauses(&sql, rel->baserestrictinfo, &ignored) != NIL;
  // Never analyzed: the server's rough number.
  if (rel->tuples < 0) rel->tuples = relation->sql.table->estimated_rows;
  set_baserel_size_estimates(root, rel);
}

// ---- Orders

// The column that the pathkey orders, if the server orders it alike; -1 otherwise.
static int OrderedColumn(const Planned* relation, PathKey* key) {
  const TamisSql* sql = &relation->sql;
  ListCell* cell;
  if (key->pk_eclass->ec_has_volatile) return -1;
  foreach (cell, key->pk_eclass->ec_members) {
    EquivalenceMember* member = lfirst(cell);
    if (!bms_equal(member->em_relids, relation->table->relids)) continue;
    const int column = TamisColumnOf(sql, (Node*)member->em_expr);
    if (column < 0 || !TamisOrdersAlike(sql, column, key->pk_eclass->ec_collation)) continue;
    const Oid operators = GetDefaultOpClass(member->em_datatype, BTREE_AM_OID);
    if (OidIsValid(operators) && get_opclass_family(operators) == key->pk_opfamily) return column;
  }
  return -1;
}

// Whether the clauses that go down leave no row with NULL in the column.
static bool ExcludesNull(const Planned* relation, int column) {
  ListCell* cell;
  foreach (cell, relation->table->baserestrictinfo) {
    RestrictInfo* info = lfirst_node(RestrictInfo, cell);
    TamisSql sql = relation->sql;
    StringInfoData ignored;
    bool is_equality = false;
    if (ComparedColumn(&sql, info->clause, &is_equality) != column) continue;
    initStringInfo(&ignored);
    if (TamisDeparseCondition(&sql, info->clause, &ignored) == kTamisExactly) return true;
  }
  return false;
}

// " ORDER BY ..."; NULL where the server cannot give the order.
static bool IsDescending(const PathKey* key) {
#if PG_VERSION_NUM >= 180000
  return key->pk_cmptype == COMPARE_GT;
#else
  return key->pk_strategy == BTGreaterStrategyNumber;
#endif
}

static char* DeparseOrder(const Planned* relation, List* pathkeys) {
  StringInfoData order;
  ListCell* cell;
  initStringInfo(&order);
  foreach (cell, pathkeys) {
    PathKey* key = lfirst(cell);
    const int number = OrderedColumn(relation, key);
    if (number < 0) return NULL;
    const TamisColumn* column = &relation->sql.table->columns[number];
    const bool descending = IsDescending(key);
    appendStringInfoString(&order, order.len == 0 ? " ORDER BY " : ", ");
    TamisAppendName(&order, column->name);
    if (descending) appendStringInfoString(&order, " DESC");
    // To SQLite NULL is the least value. It sorts the rows itself for the other place of NULL.
    if (key->pk_nulls_first == descending && column->nullable && !ExcludesNull(relation, number)) {
      appendStringInfoString(&order, key->pk_nulls_first ? " NULLS FIRST" : " NULLS LAST");
    }
  }
  return order.data;
}

// Whether an index, or the key, has the rows in the order.
static bool IsIndexOrder(const Planned* relation, List* pathkeys) {
  const TamisTable* table = relation->sql.table;
  for (int i = 0; i < table->order_count; ++i) {
    const TamisOrder* order = &table->orders[i];
    int matched = 0;
    ListCell* cell;
    foreach (cell, pathkeys) {
      PathKey* key = lfirst(cell);
      const int column = OrderedColumn(relation, key);
      if (matched == order->count || order->columns[matched] != column) break;
      if (i == 0 && IsDescending(key)) break;
      ++matched;
    }
    if (matched == list_length(pathkeys) && order->has_all_rows) return true;
  }
  return false;
}

// ---- Paths of a table

static ForeignPath* MakePath(PlannerInfo* root, RelOptInfo* rel, double rows, Cost startup,
                             Cost total, List* pathkeys, Relids outer) {
  return create_foreignscan_path(root, rel, NULL, TAMIS_ROWS(rows), startup, total, pathkeys, outer,
                                 NULL, TAMIS_NO_RESTRICTIONS NIL);
}

static void AddOrderedPath(PlannerInfo* root, RelOptInfo* rel) {
  Planned* relation = rel->fdw_private;
  Cost startup = 0;
  Cost total = 0;
  if (root->query_pathkeys == NIL || DeparseOrder(relation, root->query_pathkeys) == NULL) return;
  relation->can_be_ordered = true;
  EstimateCost(relation, rel, rel->baserestrictinfo, rel->rows, &startup, &total);
  if (!IsIndexOrder(relation, root->query_pathkeys)) {
    total *= SORT_FACTOR;
    startup = startup + (total - startup) * 0.9;
  }
  add_path(rel, (Path*)MakePath(root, rel, rel->rows, startup, total, root->query_pathkeys,
                                rel->lateral_relids));
}

static void AddParameterizedPath(PlannerInfo* root, RelOptInfo* rel, ParamPathInfo* info) {
  Planned* relation = rel->fdw_private;
  Cost startup = 0;
  Cost total = 0;
  if (!HasLookup(relation, info->ppi_clauses)) return;
  EstimateCost(relation, rel, info->ppi_clauses, info->ppi_rows, &startup, &total);
  add_path(rel,
           (Path*)MakePath(root, rel, info->ppi_rows, startup, total, NIL, info->ppi_req_outer));
}

typedef struct WantedMember {
  const Planned* relation;
  int column;
} WantedMember;

static bool IsWantedMember(PlannerInfo* root, RelOptInfo* rel, EquivalenceClass* class,
                           EquivalenceMember* member, void* argument) {
  const WantedMember* wanted = argument;
  return TamisColumnOf(&wanted->relation->sql, (Node*)member->em_expr) == wanted->column;
}

// The clauses of joins by which an index or the key can find rows: one request for each outer row.
static List* LookupClauses(PlannerInfo* root, RelOptInfo* rel) {
  const Planned* relation = rel->fdw_private;
  const TamisTable* table = relation->sql.table;
  List* clauses = NIL;
  ListCell* cell;
  foreach (cell, rel->joininfo) {
    RestrictInfo* info = lfirst(cell);
    if (join_clause_is_movable_to(info, rel)) clauses = lappend(clauses, info);
  }
  for (int i = 0; rel->has_eclass_joins && i < table->order_count; ++i) {
    WantedMember wanted = {.relation = relation};
    if (table->orders[i].count == 0) continue;
    wanted.column = table->orders[i].columns[0];
    clauses =
        list_concat(clauses, generate_implied_equalities_for_column(
                                 root, rel, IsWantedMember, &wanted, rel->lateral_referencers));
  }
  return clauses;
}

static void AddParameterizedPaths(PlannerInfo* root, RelOptInfo* rel) {
  const Planned* relation = rel->fdw_private;
  List* done = NIL;
  ListCell* cell;
  foreach (cell, LookupClauses(root, rel)) {
    RestrictInfo* info = lfirst(cell);
    if (!HasLookup(relation, list_make1(info))) continue;
    Relids outer = bms_union(info->clause_relids, rel->lateral_relids);
    outer = bms_del_member(outer, (int)rel->relid);
    if (bms_is_empty(outer)) continue;
    ParamPathInfo* parameters = get_baserel_parampathinfo(root, rel, outer);
    if (list_member_ptr(done, parameters)) continue;
    done = lappend(done, parameters);
    AddParameterizedPath(root, rel, parameters);
  }
}

void TamisGetForeignPaths(PlannerInfo* root, RelOptInfo* rel, Oid table_id) {
  Planned* relation = rel->fdw_private;
  Cost startup = 0;
  Cost total = 0;
  EstimateCost(relation, rel, rel->baserestrictinfo, rel->rows, &startup, &total);
  add_path(rel, (Path*)MakePath(root, rel, rel->rows, startup, total, NIL, rel->lateral_relids));
  AddOrderedPath(root, rel);
  AddParameterizedPaths(root, rel);
}

// ---- Aggregates

static bool IsMinOrMax(Oid function) {
  switch (function) {
    case F_MIN_INT8:
    case F_MAX_INT8:
    case F_MIN_INT4:
    case F_MAX_INT4:
    case F_MIN_INT2:
    case F_MAX_INT2:
    case F_MIN_FLOAT8:
    case F_MAX_FLOAT8:
    case F_MIN_TEXT:
    case F_MAX_TEXT:
      return true;
    default:
      return false;
  }
}

static bool IsMax(Oid function) {
  return function == F_MAX_INT8 || function == F_MAX_INT4 || function == F_MAX_INT2 ||
         function == F_MAX_FLOAT8 || function == F_MAX_TEXT;
}

static void AppendSum(StringInfo out, const char* column) {
  appendStringInfo(out, "sum(%s / 4294967296), sum(%s %% 4294967296)", column, column);
}

// Appends the aggregate as columns of the server's rows. False: it is not what SQLite computes.
static bool DeparseAggregate(const TamisSql* sql, Aggref* aggregate, StringInfo out, List** outputs,
                             List** types) {
  if (aggregate->aggsplit != AGGSPLIT_SIMPLE || aggregate->aggfilter != NULL ||
      aggregate->aggorder != NIL || aggregate->aggkind != AGGKIND_NORMAL ||
      aggregate->aggvariadic) {
    return false;
  }
  if (aggregate->aggfnoid == F_COUNT_) {
    appendStringInfoString(out, "count(*)");
    *outputs = lappend_int(*outputs, kTamisOneColumn);
    *types = lappend_int(*types, kTamisInt64);
    return true;
  }
  if (list_length(aggregate->args) != 1) return false;
  const TargetEntry* argument = linitial_node(TargetEntry, aggregate->args);
  const int number = TamisColumnOf(sql, (Node*)argument->expr);
  if (number < 0) return false;
  const TamisType type = sql->table->columns[number].type;
  StringInfoData column;
  initStringInfo(&column);
  TamisAppendName(&column, sql->table->columns[number].name);
  if (aggregate->aggfnoid == F_COUNT_ANY) {
    const bool is_distinct = aggregate->aggdistinct != NIL;
    if (type == kTamisTextType && sql->invalid_text_is_null) return false;
    if (is_distinct && !TamisGroupsAlike(sql, number, aggregate->inputcollid)) return false;
    appendStringInfo(out, "count(%s%s)", is_distinct ? "DISTINCT " : "", column.data);
    *outputs = lappend_int(*outputs, kTamisOneColumn);
    *types = lappend_int(*types, kTamisInt64);
    return true;
  }
  if (aggregate->aggdistinct != NIL) return false;
  if (IsMinOrMax(aggregate->aggfnoid)) {
    if (!TamisOrdersAlike(sql, number, aggregate->inputcollid)) return false;
    appendStringInfo(out, "%s(%s)", IsMax(aggregate->aggfnoid) ? "max" : "min", column.data);
    *outputs = lappend_int(*outputs, kTamisOneColumn);
    *types = lappend_int(*types, type);
    return true;
  }
  if (aggregate->aggfnoid != F_SUM_INT8 && aggregate->aggfnoid != F_AVG_INT8) return false;
  AppendSum(out, column.data);
  *types = lappend_int(lappend_int(*types, kTamisInt64), kTamisInt64);
  if (aggregate->aggfnoid == F_AVG_INT8) {
    appendStringInfo(out, ", count(%s)", column.data);
    *types = lappend_int(*types, kTamisInt64);
    *outputs = lappend_int(*outputs, kTamisAverage);
  } else {
    *outputs = lappend_int(*outputs, kTamisSum);
  }
  return true;
}

// Appends an entry of the targets: a column of GROUP BY or an aggregate.
static bool DeparseTarget(const TamisSql* sql, Expr* expression, StringInfo out, List** outputs,
                          List** types) {
  if (IsA(expression, Aggref))
    return DeparseAggregate(sql, (Aggref*)expression, out, outputs, types);
  const int column = TamisColumnOf(sql, (Node*)expression);
  if (column < 0) return false;
  TamisAppendName(out, sql->table->columns[column].name);
  *outputs = lappend_int(*outputs, kTamisOneColumn);
  *types = lappend_int(*types, sql->table->columns[column].type);
  return true;
}

// Adds the aggregates in the expression to the targets.
static List* AddAggregates(List* targets, Node* expression) {
  List* parts = pull_var_clause(expression, PVC_INCLUDE_AGGREGATES | PVC_RECURSE_PLACEHOLDERS);
  ListCell* cell;
  foreach (cell, parts) {
    if (IsA(lfirst(cell), Aggref)) targets = add_to_flat_tlist(targets, list_make1(lfirst(cell)));
  }
  return targets;
}

static bool IsGroupColumn(const Query* query, Index reference) {
  return reference != 0 && get_sortgroupref_clause_noerr(reference, query->groupClause) != NULL;
}

// The targets of a grouped relation; NIL where something cannot be asked.
static List* GroupedTargets(PlannerInfo* root, Planned* relation, const PathTarget* target,
                            List* having) {
  const TamisSql* sql = &relation->sql;
  List* targets = NIL;
  ListCell* cell;
  int i = 0;
  foreach (cell, target->exprs) {
    Expr* expression = lfirst(cell);
    const Index reference = get_pathtarget_sortgroupref(target, i++);
    if (!IsGroupColumn(root->parse, reference)) {
      targets = AddAggregates(targets, (Node*)expression);
      continue;
    }
    const int column = TamisColumnOf(sql, (Node*)expression);
    if (column < 0 || !TamisGroupsAlike(sql, column, exprCollation((Node*)expression))) return NIL;
    TargetEntry* entry = makeTargetEntry(expression, list_length(targets) + 1, NULL, false);
    entry->ressortgroupref = reference;
    targets = lappend(targets, entry);
  }
  targets = AddAggregates(targets, (Node*)having);
  foreach (cell, targets) {
    StringInfoData ignored;
    List* outputs = NIL;
    List* types = NIL;
    initStringInfo(&ignored);
    if (!DeparseTarget(sql, lfirst_node(TargetEntry, cell)->expr, &ignored, &outputs, &types)) {
      return NIL;
    }
  }
  return targets;
}

// Whether a condition has no columns. The planner checks it above the scan of a table, and not
// above the scan of an upper relation.
static bool HasConditionWithoutColumns(const RelOptInfo* table) {
  ListCell* cell;
  foreach (cell, table->baserestrictinfo) {
    if (lfirst_node(RestrictInfo, cell)->pseudoconstant) return true;
  }
  return false;
}

static void AddGroupedPath(PlannerInfo* root, RelOptInfo* input, RelOptInfo* output,
                           GroupPathExtraData* extra) {
  Planned* below = input->fdw_private;
  Query* query = root->parse;
  if (query->groupingSets != NIL || below->has_local_conditions ||
      HasConditionWithoutColumns(below->table) || below->is_grouped || below->is_ordered ||
      (!query->groupClause && !query->hasAggs) ||
      (extra->patype != PARTITIONWISE_AGGREGATE_NONE &&
       extra->patype != PARTITIONWISE_AGGREGATE_FULL)) {
    return;
  }
  List* targets = GroupedTargets(root, below, output->reltarget, (List*)extra->havingQual);
  if (targets == NIL) return;
  Planned* relation = palloc0(sizeof(Planned));
  *relation = *below;
  relation->is_grouped = true;
  relation->targets = targets;
  relation->having = (List*)extra->havingQual;
  output->fdw_private = relation;
  List* groups = get_sortgrouplist_exprs(query->groupClause, relation->targets);
  double rows =
      query->groupClause == NIL ? 1 : estimate_num_groups(root, groups, input->rows, NULL, NULL);
  rows = clamp_row_est(rows * clauselist_selectivity(root, relation->having, 0, JOIN_INNER, NULL));
  Cost startup = 0;
  Cost total = 0;
  EstimateCost(below, below->table, below->table->baserestrictinfo, input->rows, &startup, &total);
  total = startup + (total - startup) * 0.5 + rows * below->settings->row_cost;
  ForeignPath* path = create_foreign_upper_path(root, output, output->reltarget, TAMIS_ROWS(rows),
                                                total, total, NIL, NULL, TAMIS_NO_RESTRICTIONS NIL);
  add_path(output, (Path*)path);
}

// ---- ORDER BY and LIMIT

static void NoteOrder(PlannerInfo* root, RelOptInfo* input, RelOptInfo* output) {
  Planned* below = input->fdw_private;
  if (below->is_grouped || !below->can_be_ordered) return;
  Planned* relation = palloc0(sizeof(Planned));
  *relation = *below;
  relation->is_ordered = true;
  output->fdw_private = relation;
}

// Whether LIMIT or OFFSET can be sent: a constant, or a parameter of the statement.
static bool CanLimit(Node* limit) {
  if (limit == NULL) return true;
  if (IsA(limit, Const)) {
    const Const* constant = (Const*)limit;
    return constant->consttype == INT8OID &&
           (constant->constisnull || DatumGetInt64(constant->constvalue) >= 0);
  }
  return IsA(limit, Param) && ((Param*)limit)->paramkind == PARAM_EXTERN &&
         ((Param*)limit)->paramtype == INT8OID;
}

static void AddLimitedPath(PlannerInfo* root, RelOptInfo* input, RelOptInfo* output,
                           FinalPathExtraData* extra) {
  Planned* below = input->fdw_private;
  Query* query = root->parse;
  if (query->commandType != CMD_SELECT || query->rowMarks != NIL || !extra->limit_needed ||
      query->hasTargetSRFs || query->limitOption == LIMIT_OPTION_WITH_TIES || below->is_grouped ||
      below->has_local_conditions || !CanLimit(query->limitCount) ||
      !CanLimit(query->limitOffset)) {
    return;
  }
  RelOptInfo* table = below->table;
  List* pathkeys = below->is_ordered ? root->sort_pathkeys : NIL;
  if (!below->is_ordered && query->sortClause != NIL) return;
  Cost startup = 0;
  Cost total = 0;
  double rows = table->rows;
  EstimateCost(below, table, table->baserestrictinfo, rows, &startup, &total);
  if (pathkeys != NIL && !IsIndexOrder(below, pathkeys)) startup = total;
  adjust_limit_rows_costs(&rows, &startup, &total, extra->offset_est, extra->count_est);
  startup *= LIMIT_FACTOR;
  total *= LIMIT_FACTOR;
  ForeignPath* path = create_foreign_upper_path(root, table, root->upper_targets[UPPERREL_FINAL],
                                                TAMIS_ROWS(rows), startup, total, pathkeys, NULL,
                                                TAMIS_NO_RESTRICTIONS list_make1(makeInteger(1)));
  add_path(output, (Path*)path);
}

void TamisGetForeignUpperPaths(PlannerInfo* root, UpperRelationKind stage, RelOptInfo* input,
                               RelOptInfo* output, void* extra) {
  if (input->fdw_private == NULL || output->fdw_private != NULL) return;
  switch (stage) {
    case UPPERREL_GROUP_AGG:
      return AddGroupedPath(root, input, output, extra);
    case UPPERREL_ORDERED:
      return NoteOrder(root, input, output);
    case UPPERREL_FINAL:
      return AddLimitedPath(root, input, output, extra);
    default:
      return;
  }
}

// ---- Plans

static List* UsedAttributes(RelOptInfo* rel, List* local, Oid table_id, int attribute_count) {
  Bitmapset* used = NULL;
  List* attributes = NIL;
  ListCell* cell;
  pull_varattnos((Node*)rel->reltarget->exprs, rel->relid, &used);
  foreach (cell, local) {
    pull_varattnos((Node*)lfirst_node(RestrictInfo, cell)->clause, rel->relid, &used);
  }
  const bool all = bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
  for (int attribute = 1; attribute <= attribute_count; ++attribute) {
    if (!all && !bms_is_member(attribute - FirstLowInvalidHeapAttributeNumber, used)) continue;
    if (get_attname(table_id, (AttrNumber)attribute, true) == NULL) continue;
    if (get_atttype(table_id, (AttrNumber)attribute) == InvalidOid) continue;  // dropped
    attributes = lappend_int(attributes, attribute);
  }
  return attributes;
}

static void AppendColumns(const TamisSql* sql, List* attributes, StringInfo out, List** types) {
  ListCell* cell;
  appendStringInfoString(out, "SELECT ");
  foreach (cell, attributes) {
    const int column = TamisColumnOfAttribute(sql->table, sql->table_id, lfirst_int(cell));
    if (cell != list_head(attributes)) appendStringInfoString(out, ", ");
    TamisAppendName(out, sql->table->columns[column].name);
    *types = lappend_int(*types, sql->table->columns[column].type);
  }
  if (attributes == NIL) appendStringInfoString(out, "NULL");
}

static void AppendTargets(const TamisSql* sql, List* targets, StringInfo out, StringInfo tail,
                          List** outputs, List** types) {
  ListCell* cell;
  appendStringInfoString(out, "SELECT ");
  foreach (cell, targets) {
    const TargetEntry* entry = lfirst_node(TargetEntry, cell);
    if (cell != list_head(targets)) appendStringInfoString(out, ", ");
    DeparseTarget(sql, entry->expr, out, outputs, types);
    if (IsA(entry->expr, Aggref)) continue;
    appendStringInfoString(tail, tail->len == 0 ? " GROUP BY " : ", ");
    List* ignored = NIL;
    DeparseTarget(sql, entry->expr, tail, &ignored, &ignored);
  }
}

static bool IsNoLimit(Node* limit) {
  return limit == NULL || (IsA(limit, Const) && ((Const*)limit)->constisnull);
}

static void AppendLimit(TamisSql* sql, const char* word, Node* limit, StringInfo tail) {
  appendStringInfo(tail, " %s ", word);
  TamisAppendLimit(TamisAddParameter(sql, (Expr*)limit, kTamisInt64), tail);
}

static void AppendFrom(const TamisSql* sql, StringInfo out) {
  appendStringInfoString(out, " FROM ");
  TamisAppendName(out, sql->table->name);
}

ForeignScan* TamisGetForeignPlan(PlannerInfo* root, RelOptInfo* rel, Oid table_id,
                                 ForeignPath* path, List* targets, List* clauses, Plan* outer) {
  const Planned* relation = rel->fdw_private;
  TamisSql sql = relation->sql;
  StringInfoData head;
  StringInfoData where;
  StringInfoData tail;
  List* attributes = NIL;
  List* outputs = NIL;
  List* types = NIL;
  List* local = NIL;
  // The conditions that go down are checked again when a row of another table of the statement has
  // changed meanwhile (EvalPlanQual).
  List* rechecked = NIL;
  initStringInfo(&head);
  initStringInfo(&where);
  initStringInfo(&tail);
  if (relation->is_grouped) {
    DeparseClauses(&sql, relation->table->baserestrictinfo, &where);
    AppendTargets(&sql, relation->targets, &head, &tail, &outputs, &types);
    local = relation->having;
  } else {
    List* checked = DeparseClauses(&sql, clauses, &where);
    attributes = UsedAttributes(rel, checked, sql.table_id, rel->max_attr);
    AppendColumns(&sql, attributes, &head, &types);
    local = extract_actual_clauses(checked, false);
    rechecked = extract_actual_clauses(list_difference_ptr(clauses, checked), false);
    if (path->path.pathkeys != NIL) {
      appendStringInfoString(&tail, DeparseOrder(relation, path->path.pathkeys));
    }
    if (path->fdw_private != NIL) {
      // SQLite has no OFFSET without LIMIT.
      if (!IsNoLimit(root->parse->limitCount)) {
        AppendLimit(&sql, "LIMIT", root->parse->limitCount, &tail);
      } else if (!IsNoLimit(root->parse->limitOffset)) {
        appendStringInfoString(&tail, " LIMIT -1");
      }
      if (!IsNoLimit(root->parse->limitOffset)) {
        AppendLimit(&sql, "OFFSET", root->parse->limitOffset, &tail);
      }
    }
  }
  AppendFrom(&sql, &head);
  List* private = list_make5(makeString(head.data), makeString(where.data), makeString(tail.data),
                             sql.types, attributes);
  private = lappend(lappend(private, outputs), makeInteger((int)sql.table->id));
  private = lappend(private, types);
  return make_foreignscan(targets, local, relation->is_grouped ? 0 : rel->relid, sql.parameters,
                          private, relation->is_grouped ? relation->targets : NIL, rechecked,
                          outer);
}

bool TamisIsForeignPathAsyncCapable(ForeignPath* path) {
  const Planned* relation = path->path.parent->fdw_private;
  return relation->settings->async_capable;
}
