// INSERT, UPDATE and DELETE: rows become changes (changes.h).
//
// UPDATE and DELETE name the row by its key and all of its columns as the statement read them, so
// that a row that another client has changed since is an error. For that they read the whole row.
#pragma once

#include "postgres.h"

#include "foreign/fdwapi.h"

#include "versions.h"

int TamisIsForeignRelUpdatable(Relation relation);
void TamisAddForeignUpdateTargets(PlannerInfo* root, Index index, RangeTblEntry* entry,
                                  Relation relation);
List* TamisPlanForeignModify(PlannerInfo* root, ModifyTable* plan, Index index, int number);
void TamisBeginForeignModify(ModifyTableState* state, ResultRelInfo* relation, List* private,
                             int number, int flags);
TupleTableSlot* TamisExecForeignInsert(EState* estate, ResultRelInfo* relation,
                                       TupleTableSlot* slot, TupleTableSlot* plan_slot);
TupleTableSlot* TamisExecForeignUpdate(EState* estate, ResultRelInfo* relation,
                                       TupleTableSlot* slot, TupleTableSlot* plan_slot);
TupleTableSlot* TamisExecForeignDelete(EState* estate, ResultRelInfo* relation,
                                       TupleTableSlot* slot, TupleTableSlot* plan_slot);
void TamisEndForeignModify(EState* estate, ResultRelInfo* relation);
void TamisBeginForeignInsert(ModifyTableState* state, ResultRelInfo* relation);
void TamisEndForeignInsert(EState* estate, ResultRelInfo* relation);
void TamisExplainForeignModify(ModifyTableState* state, ResultRelInfo* relation, List* private,
                               int number, ExplainState* explain);
