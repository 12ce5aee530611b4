// OracleCounts: what an oracle did and found, in all lives.
#pragma once

#include <atomic>
#include <cstdint>

namespace tamis::lsm {

// In memory that outlives the process.
struct OracleCounts {
  std::atomic<uint64_t> lives, checks, denied, missed, different, inexact, exact, snapshots,
      iterators, flushes, compactions, files_compacted, ingestions, imports, families,
      files_dropped, transactions, disk_faults, lost_key_files, writes, killed, asserted, prepared,
      recovered, refused, lost;

  // The last life's knowledge of each numbered key of each family.
  enum Known : uint8_t { kUnknown, kThere, kNotThere };
  static constexpr uint32_t kModelFamilies = 20;
  static constexpr uint32_t kModelKeys = 4000;
  using Model = std::atomic<Known>[kModelFamilies][kModelKeys];
  Model written;   // keys 'k'
  Model ingested;  // keys 'i'
};

}  // namespace tamis::lsm
