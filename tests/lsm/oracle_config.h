// OracleConfig: the kind of database that a seed makes, and what is done to it.
#pragma once

#include <cstdint>
#include <string>

namespace tamis::lsm {

// The properties of a database, for all its lives, as a seed determines them.
struct OracleConfig {
  // All but the first have transactions. kWrapped: TransactionDB::WrapStackableDB over FilteredDB;
  // the others: a FilteredDB over the database of transactions.
  enum class Kind { kPlain, kCommitted, kPrepared, kUnprepared, kOptimistic, kWrapped };
  enum class Style { kLevel, kUniversal, kFifo, kRemote };

  uint64_t seed = 1;
  std::string directory;
  Kind kind = Kind::kPlain;
  Style style = Style::kLevel;
  bool logs = true;          // the write-ahead log is on
  bool blobs = false;        // in one of the families, or in every second one of many
  bool has_model = false;    // what was acknowledged is remembered from life to life
  int families = 3;          // those that live as long as the database
  bool disk_fails = false;   // now and then
  bool loses_files = false;  // key files get lost and damaged
  std::string fault;         // of faults.h
  std::string Text() const;
};
OracleConfig ConfigOf(uint64_t seed);

}  // namespace tamis::lsm
