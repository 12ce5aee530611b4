// An SQLite database in memory whose tables are those of a session's store.
#pragma once

#include <sqlite3.h>

#include <memory>

#include "tamis/base/status.h"
#include "tamis/sql/session.h"

namespace tamis::server {

// Opens the database, extended by extension.h. Statements end when session->cancelled is set. *db
// is to be closed by sqlite3_close, after a failure, too.
Status OpenMemoryDatabase(const std::shared_ptr<Session>& session, sqlite3** db);

}  // namespace tamis::server
