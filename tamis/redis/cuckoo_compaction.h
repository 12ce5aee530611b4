// CompactPiece: one piece of the compaction of a cuckoo chain. A compaction goes through the tables
// from the newest to the second one, moves tags into free slots of older tables, and drops newest
// tables that are empty. The result follows from the bytes and the arguments alone, so that a
// replica that is given the same pieces has the same bytes.
//
// Errors: none; it takes no memory. Threads: it needs exclusive access to the tables.
#pragma once

#include <cstdint>
#include <vector>

#include "tamis/redis/byte_array.h"
#include "tamis/redis/cuckoo_tables.h"

namespace tamis::redis {

// How many slots a bucket counts as that is searched for a free slot: a line of memory.
inline constexpr uint64_t kLookSlots = 64;

struct CompactedPiece {
  uint64_t next = 0;     // position at which the next piece begins; 0 = the compaction is done
  bool changed = false;  // a byte of the tables, or their number
};

// Begins at `position` (CuckooTables); 0, or a position behind the end, is the beginning. Passes
// `slots` slots, and does at most one tag more. Ends with the first table that keeps a tag unless
// `go_on_after_stuck_tag`. For `dropped` see CuckooTables::DropEmpty.
CompactedPiece CompactPiece(CuckooTables* tables, uint64_t position, uint64_t slots,
                            bool go_on_after_stuck_tag, std::vector<ByteArray>* dropped);

}  // namespace tamis::redis
