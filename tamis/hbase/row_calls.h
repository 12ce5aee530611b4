// Operations on one row, and coprocessor calls, as coroutines.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/operations.h"
#include "tamis/hbase/region_call.h"
#include "tamis/hbase/row.h"
#include "tamis/hbase/task.h"
#include "tamis/hbase/write_options.h"

namespace tamis::hbase {

class Session;

Task<Result<Row>> GetRow(Session& session, std::string table, Get get, Deadline deadline);
Task<Result<MutateResult>> MutateRow(Session& session, std::string table, Mutation mutation,
                                     WriteOptions options, Deadline deadline);
// Applies all mutations or none. REQUIRES: all are of one row.
Task<Result<MutateResult>> MutateRowTogether(Session& session, std::string table,
                                             std::vector<Mutation> mutations, WriteOptions options,
                                             Deadline deadline);
Task<Result<std::string>> ExecService(Session& session, std::string table, std::string row,
                                      ServiceCall call, Deadline deadline);
// Makes one try at this server and reports whether it has the region.
Task<ServiceReply> ExecServiceAt(Session& session, ServerName server, std::string region_name,
                                 ServiceCall call, Deadline deadline);
Task<ServiceReply> ExecRegionServerService(Session& session, ServerName server, ServiceCall call,
                                           Deadline deadline);

}  // namespace tamis::hbase
