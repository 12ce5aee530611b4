// WriteDelivery: the writes of one Apply call on their way: sent to the servers that have their
// regions, each write again until somebody has taken or refused it.
#pragma once

#include <atomic>
#include <vector>

#include "tamis/query/query_context.h"
#include "tamis/query/write.h"

namespace tamis {

// One status a write, in order. Blocks; must not be called from an executor's task. Once
// `cancelled` is true, nothing is sent any more and nobody is waited for: kCancelled was not done,
// kDeadlineExceeded may stand.
std::vector<Status> ApplyWrites(QueryContext* context, SchemaPtr schema,
                                const std::vector<Write>& writes,
                                const std::atomic<bool>* cancelled = nullptr);

}  // namespace tamis
