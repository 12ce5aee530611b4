// OpenTransactions: those transactions of a PostgreSQL server that were open at one moment, so that
// one can wait until each has ended.
//
// A program adds a key to the filter within its transaction, before the commit. A rebuild that
// began after the add does not get it from there, and a snapshot that is taken before the commit
// does not show the row: it would be in neither. So the rows are read when every transaction that
// was open when the rebuild began has ended. The oldest transaction id (xmin) does not tell: a
// transaction has none before it writes, and may have added before. Every open
// transaction holds the lock of its virtual id; a prepared one holds no such lock and is queried
// separately.
//
// This class runs psql, like the commands that read the rows.
//
// Threads: exclusive access.
#pragma once

#include <string>
#include <vector>

#include "tamis/base/status.h"

namespace tamis {

class OpenTransactions {
 public:
  // `database`: a name, a connection string or a URL, as psql takes it. kFailedPrecondition on a
  // standby, which shows neither the transactions nor the end of one in time.
  static Result<OpenTransactions> Of(const std::string& database);

  // Looks again. True: all have ended.
  Result<bool> HaveEnded();
  // One of those that are still open, for a person.
  const std::string& example() const { return example_; }
  size_t size() const { return ids_.size(); }

 private:
  explicit OpenTransactions(std::string database) : database_(std::move(database)) {}
  Status Look(std::vector<std::string>* ids, std::vector<std::string>* descriptions) const;

  const std::string database_;
  bool prepared_ = false;  // the virtual ids are gone, and prepared transactions are waited for
  std::vector<std::string> ids_;
  std::string example_;
};

}  // namespace tamis
