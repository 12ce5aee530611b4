// SQLite's interface as an extension sees it: every sqlite3_* call goes through the table of
// functions that the host hands over, so that one code serves the `tamis` program and hosts that
// bring their own SQLite (the sqlite3 shell, Python). Included instead of <sqlite3.h> here.
#pragma once

#include <sqlite3ext.h>

extern const sqlite3_api_routines* sqlite3_api;  // NOLINT: SQLite's own macros use this name
