// OracleCounts: what an oracle did and found, in all lives.
#pragma once

#include <atomic>
#include <cstdint>

namespace tamis::lsm {

// In memory that outlives the process.
struct OracleCounts {
  std::atomic<uint64_t> lives, checks, denied, missed, different, inexact, exact, snapshots,
      iterators, flushes, compactions, files_compacted, ingestions, imports, families,
      files_dropped, transactions, disk_faults, lost_key_files, writes, killed, asserted;
};

}  // namespace tamis::lsm
