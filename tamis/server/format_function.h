// The SQL functions format and printf, which replace those of SQLite and give the same results.
//
// SQLite repeats a character as often as a precision says, `%.*c`, after the result has become too
// long, too: minutes in one call that nothing interrupts. Here the widths and precisions are added
// up first, and a result that would be longer than SQLITE_LIMIT_LENGTH is an error at once;
// SQLite gives NULL.
#pragma once

#include <sqlite3.h>

namespace tamis::server {

// Returns SQLite's result code. The functions use a database of their own in memory.
int RegisterFormatFunctions(sqlite3* db);

}  // namespace tamis::server
