// Execution of a scan: one request, and for a join one for each row outside.
#pragma once

#include "postgres.h"

#include "foreign/fdwapi.h"
#include "nodes/execnodes.h"

#include "versions.h"

void TamisBeginForeignScan(ForeignScanState* node, int flags);
TupleTableSlot* TamisIterateForeignScan(ForeignScanState* node);
void TamisReScanForeignScan(ForeignScanState* node);
void TamisEndForeignScan(ForeignScanState* node);
void TamisExplainForeignScan(ForeignScanState* node, ExplainState* explain);

// An Append asks all of its scans, and takes rows as they come.
void TamisForeignAsyncRequest(AsyncRequest* request);
void TamisForeignAsyncConfigureWait(AsyncRequest* request);
void TamisForeignAsyncNotify(AsyncRequest* request);

// ANALYZE reads the whole table and keeps a sample.
bool TamisAnalyzeForeignTable(Relation relation, AcquireSampleRowsFunc* function,
                              BlockNumber* pages);
