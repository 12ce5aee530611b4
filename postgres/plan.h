// Planning of a scan: which conditions, columns, order, aggregates and limit go to the server.
#pragma once

#include "postgres.h"

#include "foreign/fdwapi.h"

// The parts of a plan's fdw_private, in this order.
typedef enum TamisPlanPart {
  kTamisHead,        // String: SELECT ... FROM ...
  kTamisWhere,       // String: a template (remote_sql.h), may be empty
  kTamisTail,        // String: GROUP BY, ORDER BY, LIMIT; a template
  kTamisTypes,       // IntList: the TamisType of each parameter of fdw_exprs
  kTamisAttributes,  // IntList: the attribute that each value of a row is; NIL for aggregates
  kTamisOutputs,     // IntList: the TamisOutput of each entry of an aggregate's fdw_scan_tlist
  kTamisTableId,     // Integer: the table's id in the store
  kTamisColumnTypes  // IntList: the TamisType of each value of a row; kTamisOther: any
} TamisPlanPart;

// How an entry is made of the values of a row.
typedef enum TamisOutput {
  kTamisOneColumn,  // one value
  kTamisSum,        // for bigint: two values, quotients and remainders by 2^32, exact as numeric
  kTamisAverage     // for avg: the values of kTamisSum and the count of values that are not NULL
} TamisOutput;

void TamisGetForeignRelSize(PlannerInfo* root, RelOptInfo* rel, Oid table_id);
void TamisGetForeignPaths(PlannerInfo* root, RelOptInfo* rel, Oid table_id);
ForeignScan* TamisGetForeignPlan(PlannerInfo* root, RelOptInfo* rel, Oid table_id,
                                 ForeignPath* path, List* targets, List* clauses, Plan* outer);
// Whether an Append may wait for several scans at once.
bool TamisIsForeignPathAsyncCapable(ForeignPath* path);
void TamisGetForeignUpperPaths(PlannerInfo* root, UpperRelationKind stage, RelOptInfo* input,
                               RelOptInfo* output, void* extra);
