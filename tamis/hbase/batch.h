// Many rows at once: one call for each server that has some of them.
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

// A result for each action, in their order; each fails or succeeds alone. Of several actions of one
// row the order is not kept, and a Get sees the changes beside it or does not. Conditions are
// refused.
Task<std::vector<Result<Row>>> RunBatch(Session& session, std::string table,
                                        std::vector<std::variant<Get, Mutation>> actions,
                                        WriteOptions options, Deadline deadline);

}  // namespace tamis::hbase
