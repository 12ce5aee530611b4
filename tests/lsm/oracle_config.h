// OracleConfig: the kind of database that a seed makes, and what is done to it.
#pragma once

#include <cstdint>
#include <string>

namespace tamis::lsm {

// The properties of a database, for all its lives, as a seed determines them.
struct OracleConfig {
  // All but the first have transactions.
  enum class Kind { kPlain, kCommitted, kPrepared, kUnprepared, kOptimistic };
  enum class Style { kLevel, kUniversal, kFifo, kRemote };
  // How the writes of several threads reach the memtables.
  enum class Writes { kGrouped, kAlone, kPipelined, kTwoQueues, kUnordered };

  // A prepared transaction keeps the log, and RocksDB's assertions do not bear its closing.
  bool HasUndecided() const { return kind == Kind::kPrepared || kind == Kind::kUnprepared; }

  uint64_t seed = 1;
  std::string directory;
  Kind kind = Kind::kPlain;
  bool wraps_filter = false;  // WrapStackableDB over a FilteredDB; else a FilteredDB over it
  Style style = Style::kLevel;
  Writes writes = Writes::kGrouped;
  bool flushes_together = false;  // the memtables of all families, atomically
  bool logs = true;               // the write-ahead log is on
  bool hints = false;             // memtables remember a place for each prefix of keys
  bool blobs = false;             // in one of the families, or in every second one of many
  bool has_model = false;         // acknowledged writes are remembered from life to life
  int families = 3;               // families that live as long as the database
  bool disk_fails = false;        // now and then
  bool loses_files = false;       // key files get lost and damaged
  std::string fault;              // a name of faults.h
  std::string Text() const;
};
OracleConfig ConfigOf(uint64_t seed);

}  // namespace tamis::lsm
