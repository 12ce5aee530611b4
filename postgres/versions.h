// The differences between PostgreSQL 15, 16, 17 and 18 that more than one file needs.
#pragma once

#include "postgres.h"

#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

// Stands behind a declaration, where pg_attribute_noreturn stood before version 18.
#define TAMIS_NORETURN __attribute__((noreturn))

// Arguments of create_foreignscan_path and create_foreign_upper_path.
#if PG_VERSION_NUM >= 180000
#define TAMIS_ROWS(rows) (rows), 0  // no disabled nodes
#define TAMIS_VACUUM_DELAY_POINT() vacuum_delay_point(true)
#else
#define TAMIS_ROWS(rows) (rows)
#define TAMIS_VACUUM_DELAY_POINT() vacuum_delay_point()
#endif
#if PG_VERSION_NUM >= 170000
#define TAMIS_NO_RESTRICTIONS NIL,
#else
#define TAMIS_NO_RESTRICTIONS
#endif
