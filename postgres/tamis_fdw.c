// tamis_fdw: foreign tables in a Tamis store, which a `tamis serve` answers for (docs/POSTGRES.md).
#include "postgres.h"

#include "fmgr.h"
#include "foreign/fdwapi.h"
#include "mb/pg_wchar.h"

#include "changes.h"
#include "import.h"
#include "modify.h"
#include "plan.h"
#include "scan.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(tamis_fdw_handler);

void _PG_init(void) { TamisRegisterChanges(); }

Datum tamis_fdw_handler(PG_FUNCTION_ARGS) {
  FdwRoutine* routine = makeNode(FdwRoutine);
  if (GetDatabaseEncoding() != PG_UTF8) {
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("tamis_fdw needs a database with encoding UTF8, and this one has %s",
                           GetDatabaseEncodingName())));
  }
  routine->GetForeignRelSize = TamisGetForeignRelSize;
  routine->GetForeignPaths = TamisGetForeignPaths;
  routine->GetForeignPlan = TamisGetForeignPlan;
  routine->GetForeignUpperPaths = TamisGetForeignUpperPaths;
  routine->BeginForeignScan = TamisBeginForeignScan;
  routine->IterateForeignScan = TamisIterateForeignScan;
  routine->ReScanForeignScan = TamisReScanForeignScan;
  routine->EndForeignScan = TamisEndForeignScan;
  routine->ExplainForeignScan = TamisExplainForeignScan;
  routine->IsForeignPathAsyncCapable = TamisIsForeignPathAsyncCapable;
  routine->ForeignAsyncRequest = TamisForeignAsyncRequest;
  routine->ForeignAsyncConfigureWait = TamisForeignAsyncConfigureWait;
  routine->ForeignAsyncNotify = TamisForeignAsyncNotify;
  routine->AnalyzeForeignTable = TamisAnalyzeForeignTable;
  routine->ImportForeignSchema = TamisImportForeignSchema;
  routine->IsForeignRelUpdatable = TamisIsForeignRelUpdatable;
  routine->AddForeignUpdateTargets = TamisAddForeignUpdateTargets;
  routine->PlanForeignModify = TamisPlanForeignModify;
  routine->BeginForeignModify = TamisBeginForeignModify;
  routine->ExecForeignInsert = TamisExecForeignInsert;
  routine->ExecForeignUpdate = TamisExecForeignUpdate;
  routine->ExecForeignDelete = TamisExecForeignDelete;
  routine->EndForeignModify = TamisEndForeignModify;
  routine->BeginForeignInsert = TamisBeginForeignInsert;
  routine->EndForeignInsert = TamisEndForeignInsert;
  routine->ExplainForeignModify = TamisExplainForeignModify;
  PG_RETURN_POINTER(routine);
}
