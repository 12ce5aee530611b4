// SQL functions that replace those of SQLite: instr, replace, trim, ltrim and rtrim.
//
// SQLite compares each place of a text with a whole argument, in one call that nothing interrupts:
// for two texts of megabytes that takes hours. These take time in proportion to their arguments.
// The characters to trim are at most kMostTrimmedBytes long.
#pragma once

#include <sqlite3.h>

#include <cstddef>

namespace tamis::server {

inline constexpr size_t kMostTrimmedBytes = 4096;

// Returns SQLite's result code.
int RegisterTextFunctions(sqlite3* db);

}  // namespace tamis::server
