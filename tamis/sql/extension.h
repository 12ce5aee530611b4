// Everything that Tamis adds to an SQLite connection, for the `tamis` program and for the loadable
// extension:
//
//   tamis_open('STORE')          opens a store; its tables appear
//   CREATE VIRTUAL TABLE t USING tamis(...)
//   tamis_explain('SQL')         what the searches of a statement did, a row a search
//   tamis_regions('t'), tamis_indexes('t'), tamis_servers
#pragma once

#include <memory>

#include "tamis/sql/session.h"

struct sqlite3;
struct sqlite3_api_routines;

namespace tamis {

// Registers it all. `api` is what SQLite gives an extension's entry point. When the session has an
// engine, its tables are attached at once.
Status Extend(sqlite3* db, const sqlite3_api_routines* api, std::shared_ptr<Session> session);

// Attaches the tables of the session's store as temp tables, except those whose name another table
// of the connection has already. For a connection that is extended.
Status AttachTables(sqlite3* db, const std::shared_ptr<Session>& session);

}  // namespace tamis
