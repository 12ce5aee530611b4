// OracleConfig: the kind of database that a seed makes, and what is done to it.
#pragma once

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

}  // namespace tamis::lsm
