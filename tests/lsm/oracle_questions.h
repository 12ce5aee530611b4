// OracleQuestions: asks the filter and the database beside each other, in every way there is, and
// counts and says where they differ.
#pragma once

#include <rocksdb/db.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "tamis/base/random.h"
#include "tests/lsm/oracle_database.h"

namespace tamis::lsm {

class OracleQuestions {
 public:
  explicit OracleQuestions(OracleDatabase* database) : database_(*database) {}

  // REQUIRES: no other thread writes the key, or `snapshot` is older than the calls that do.
  void Ask(rocksdb::ColumnFamilyHandle* family, const std::string& key, const char* how,
           const rocksdb::Snapshot* snapshot = nullptr);
  // A MultiGet of keys of the writer's, held against what was acknowledged.
  void AskModel(Random* random, int thread);
  // The same for every key. REQUIRES: nothing is written.
  void AskWholeModel();
  // Asks for each key that the family has. REQUIRES: no other thread writes the family, or a
  // snapshot is given.
  void AskAll(rocksdb::ColumnFamilyHandle* family, const rocksdb::Snapshot* snapshot,
              const char* how);
  // On a thread of its own, with snapshots and iterators that are held for long.
  void ReadAlong(const std::atomic<bool>& stops);

 private:
  void Missed(rocksdb::ColumnFamilyHandle* family, const std::string& key, const char* how);
  void Different(const std::string& key, const char* how, const rocksdb::Status& ours,
                 const rocksdb::Status& base);
  void Compare(Random* random, const rocksdb::Snapshot* snapshot);
  // The numbers of keys of one kind, each with its family.
  using ModelKeys = std::vector<std::pair<size_t, uint64_t>>;
  void AskModelFor(char kind, const OracleCounts::Model& model, const ModelKeys& keys,
                   const char* how);

  OracleDatabase& database_;
};

}  // namespace tamis::lsm
