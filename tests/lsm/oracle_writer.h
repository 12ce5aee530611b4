// OracleWriter: writes records of every kind, in batches and transactions, and asks for what it has
// written.
#pragma once

#include <atomic>
#include <string>

#include "tests/lsm/oracle_database.h"
#include "tests/lsm/oracle_questions.h"

namespace tamis::lsm {

class OracleWriter {
 public:
  OracleWriter(OracleDatabase* database, OracleQuestions* questions)
      : database_(*database), questions_(*questions) {}

  // On a thread of its own, of OracleDatabase::kWriters, each of which has keys of its own.
  void Write(int thread, const std::atomic<bool>& stops);

 private:
  std::string NewName(int thread);

  OracleDatabase& database_;
  OracleQuestions& questions_;
};

}  // namespace tamis::lsm
