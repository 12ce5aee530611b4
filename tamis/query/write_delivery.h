// WriteDelivery: the writes of one Apply call on their way: sent to the servers that have their
// regions, each write again until somebody has taken or refused it.
#pragma once

#include <vector>

#include "tamis/query/query_context.h"
#include "tamis/query/write.h"

namespace tamis {

// One status a write, in order. Blocks; must not be called from an executor's task.
std::vector<Status> ApplyWrites(QueryContext* context, SchemaPtr schema,
                                const std::vector<Write>& writes);

}  // namespace tamis
