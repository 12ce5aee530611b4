// The rows of the table function tamis_aggregate: groups that the region servers have made.
//
//   SELECT g1, count, sum FROM tamis_aggregate('packages', 'section', 'installed_size');
//   SELECT "column", min, max FROM tamis_aggregate('packages', '', 'version, installed_size');
//
//   SELECT count FROM tamis_aggregate('packages', '', '', 'section = ''libs''');
//
// The arguments are the table, the columns of the groups and the columns of which totals are
// wanted, both separated by commas, and the condition of the rows that count (condition.h); the
// last two are optional. There is a row for each group and column
// of the totals, or for each group if there are no totals.
//
// Threads: as the session.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/sql/session.h"
#include "tamis/table/row.h"

namespace tamis {

// A list of columns, written as in CREATE TABLE.
std::string AggregateColumns();
// kInvalidArgument: there is no such column, or an int64 sum does not fit in 64 bits.
Result<std::vector<Row>> AggregateRows(Session* session, const std::vector<std::string>& arguments);

}  // namespace tamis
