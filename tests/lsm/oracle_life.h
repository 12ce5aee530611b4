// OracleLife: one life of a process that does to a database whatever can be done to one, on many
// threads, and holds every answer of the filter against the database's own.
//
// It may be killed at any moment; the next life begins with what is found then.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tamis::lsm {

// What a seed makes of a database, for all its lives.
struct OracleConfig {
  enum class Kind { kPlain, kCommitted, kPrepared, kUnprepared };  // the last three: transactions
  enum class Style { kLevel, kUniversal, kFifo, kRemote };

  uint64_t seed = 1;
  std::string directory;
  Kind kind = Kind::kPlain;
  Style style = Style::kLevel;
  bool logs = true;          // the write-ahead log is on
  bool blobs = false;        // in one of the families
  bool disk_fails = false;   // now and then
  bool loses_files = false;  // key files get lost and damaged
  std::string fault;         // of faults.h
  std::string Text() const;
};
OracleConfig ConfigOf(uint64_t seed);

// In memory that outlives the process.
struct OracleCounts {
  std::atomic<uint64_t> lives, checks, denied, missed, different, inexact, exact, snapshots,
      iterators, flushes, compactions, files_compacted, ingestions, imports, families,
      files_dropped, transactions, disk_faults, lost_key_files, writes, killed, asserted;
};

// Runs for so long; false when an answer was wrong, which is said on stderr.
bool RunLife(const OracleConfig& config, uint64_t life, double seconds, OracleCounts* counts);

}  // namespace tamis::lsm
