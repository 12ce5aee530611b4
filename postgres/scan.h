// Execution of a scan: one request, and for a join one for each row outside.
#pragma once

#include "postgres.h"

#include "commands/explain.h"
#include "foreign/fdwapi.h"

void TamisBeginForeignScan(ForeignScanState* node, int flags);
TupleTableSlot* TamisIterateForeignScan(ForeignScanState* node);
void TamisReScanForeignScan(ForeignScanState* node);
void TamisEndForeignScan(ForeignScanState* node);
void TamisExplainForeignScan(ForeignScanState* node, ExplainState* explain);

// ANALYZE reads the whole table and keeps a sample.
bool TamisAnalyzeForeignTable(Relation relation, AcquireSampleRowsFunc* function,
                              BlockNumber* pages);
