// OracleMishaps: what else happens to a database: flushes, compactions, ingestion and imports,
// families and files that come and go, key files that get lost, disks that fail.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/lsm/oracle_database.h"
#include "tests/lsm/oracle_questions.h"

namespace tamis::lsm {

class OracleMishaps {
 public:
  OracleMishaps(OracleDatabase* database, OracleQuestions* questions)
      : database_(*database), questions_(*questions) {}

  // One of them.
  void Disturb();

 private:
  void CompactRange();
  void CompactFiles();
  struct SstKey {
    uint64_t number;
    bool is_put;  // else a tombstone
  };
  // Returns the file's path.
  std::string MakeSst(char kind, std::vector<SstKey>* keys);
  // Holds the model uncertain, ingests, and asks for the keys where they are then.
  void IngestAndAsk(const std::vector<SstKey>& keys, const std::vector<size_t>& families,
                    const std::function<rocksdb::Status()>& ingest);
  void Ingest();
  void Import();
  void WaitUntilCounted(rocksdb::ColumnFamilyHandle* handle);
  std::string NewName();
  void ChangeFamilies();
  void DropFiles();
  void LoseKeyFile();
  void FailDisk();
  rocksdb::ColumnFamilyHandle* AnyFamily() {
    return database_.fixed[database_.random.Uniform(database_.fixed.size())];
  }

  OracleDatabase& database_;
  OracleQuestions& questions_;
  bool keeps_files_ = false;
};

}  // namespace tamis::lsm
