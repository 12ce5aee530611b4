// The table-valued functions: tamis_explain('SQL'), tamis_regions('t'), tamis_indexes('t'),
// tamis_servers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tamis/sql/session.h"

struct sqlite3;

namespace tamis {

// Returns an SQLite result code.
int RegisterTableFunctions(sqlite3* db, const std::shared_ptr<Session>& session);

// Runs the statement for its searches: queries as they are, the searches of UPDATE and DELETE
// without the writes. One Explain a search, in the order in which they ended.
Result<std::vector<Explain>> ExplainSql(sqlite3* db, const std::shared_ptr<Session>& session,
                                        const std::string& sql);

// Counters added up; the texts of the first few searches only, since a join may make thousands.
Explain SumOf(const std::vector<Explain>& searches);

}  // namespace tamis
