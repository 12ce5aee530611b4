// The SQLite virtual table over a table of a store.
//
//   SELECT tamis_open('shop.db');                       -- its tables appear in the temp schema
//   CREATE VIRTUAL TABLE orders USING tamis(            -- creates a table in the store
//     id int64, customer text, total decimal, key (id), index customer (customer));
//   SELECT * FROM orders WHERE customer = 'acme';       -- asks only regions that may have rows
//   DROP TABLE orders;                                  -- only detaches it from the connection
//
// The DROP TABLE of `tamis sql` is another one (tamis/cli/table_statements.h): it deletes the table
// with its rows from the store.
//
// How it works. xBestIndex puts every constraint that a server can evaluate into a SqlPlan. xFilter
// starts a search by the plan, and xNext fetches the rows of the search. The hidden column
// tamis_key, the encoded row key, is the primary key that SQLite needs in order to write.
//
// Writing. Each row is written atomically, a statement is not: the rows that it wrote before a
// failure stay written. UPDATE and DELETE change a row only if the columns that the statement read
// are unchanged since; otherwise they fail with SQLITE_BUSY. Between BEGIN and COMMIT writes wait
// in memory. ROLLBACK and ROLLBACK TO drop them. Reads do not see them: reading a row that has a
// waiting write is an error, since the result would be old. COMMIT sends the writes and reports
// those that failed.
#pragma once

#include "tamis/sql/session.h"
#include "tamis/sql/sqlite.h"

namespace tamis {

// Registers the module "tamis" on the connection. Returns an SQLite result code.
int RegisterTableModule(sqlite3* db, const std::shared_ptr<Session>& session);

}  // namespace tamis
