// Operations on many rows: one call for each server that has some of them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/operations.h"
#include "tamis/hbase/row.h"
#include "tamis/hbase/task.h"
#include "tamis/hbase/write_options.h"

namespace tamis::hbase {

class Session;

// Returns a result for each action, in the order of the actions; each succeeds or fails alone.
// Several actions on the same row run in any order, and a Get may or may not see the changes in the
// same batch. Conditions are refused.
Task<std::vector<Result<Row>>> RunBatch(Session& session, std::string table,
                                        std::vector<std::variant<Get, Mutation>> actions,
                                        WriteOptions options, Deadline deadline);

}  // namespace tamis::hbase
