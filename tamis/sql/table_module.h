// The SQLite virtual table over a table of a store.
//
//   SELECT tamis_open('shop.db');                       -- its tables appear in the temp schema
//   CREATE VIRTUAL TABLE orders USING tamis(            -- or make one; it stays in the store
//     id int64, customer text, total decimal, key (id), index customer (customer));
//   SELECT * FROM orders WHERE customer = 'acme';       -- asks only the servers that may hold one
//   DROP TABLE orders;                                  -- only detaches it from this connection
//
// How it works. xBestIndex turns every constraint that can be sent into a SqlPlan, xFilter the plan
// into a search, xNext fetches its rows. A hidden column tamis_key, the encoded row key, is the
// primary key that SQLite needs in order to write.
//
// Writing. A row is atomic; a statement is not: what stood before a failure stands. UPDATE and
// DELETE are done on the condition that the columns that the statement read are still what it read,
// else they fail with SQLITE_BUSY. Between BEGIN and COMMIT writes wait in memory: ROLLBACK and
// savepoints drop them, reads do not see them, and reading a row that has one waiting is an error,
// since its answer would be old; COMMIT sends them and reports what failed.
#pragma once

#include "tamis/sql/session.h"
#include "tamis/sql/sqlite.h"

namespace tamis {

// Registers the module "tamis" on the connection. Returns an SQLite result code.
int RegisterTableModule(sqlite3* db, const std::shared_ptr<Session>& session);

// Attaches the tables of the session's store as temp tables, except where a table of that name is
// there already.
Status AttachTables(sqlite3* db, Session* session);

}  // namespace tamis
