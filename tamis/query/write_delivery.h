// WriteDelivery: sends the writes of one Apply call to the servers that have their regions; each
// write again until a server has carried it out or refused it.
#pragma once

#include <atomic>
#include <vector>

#include "tamis/query/query_context.h"
#include "tamis/query/write.h"

namespace tamis {

// Returns one status for each write, in order. Blocks; must not be called from an executor's task.
// Once `cancelled` is true, it sends nothing more and waits for no answer: a write with kCancelled
// was not carried out; one with kDeadlineExceeded may have been.
std::vector<Status> ApplyWrites(QueryContext* context, SchemaPtr schema,
                                const std::vector<Write>& writes,
                                const std::atomic<bool>* cancelled = nullptr);

}  // namespace tamis
