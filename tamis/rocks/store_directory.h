// StoreDirectory: checks a directory before RocksDB opens it. Without the check RocksDB would make
// a new database beside files of another program, or beside a store whose file CURRENT is lost.
#pragma once

#include <rocksdb/options.h>

#include <memory>
#include <string>

#include "tamis/base/status.h"

namespace tamis {

// Ok when `directory` holds a store, or, with `create`, when one can be made there: it is empty, or
// holds one whose making was broken off. With `create` a directory that does not exist is made.
Status CheckStoreDirectory(const std::string& directory, bool create,
                           const rocksdb::DBOptions& options);

// The use of a directory by a store of this process. The lock (fcntl) of the file LOCK keeps other
// processes out, but not a second opening by this process: that would take the lock again, and
// release it for both when it closes. Threads: safe.
class DirectoryUse {
 public:
  // kFailedPrecondition while the process has the directory open the other way.
  static Result<std::unique_ptr<DirectoryUse>> Begin(const std::string& directory, bool read_only);
  ~DirectoryUse();
  DirectoryUse(const DirectoryUse&) = delete;
  DirectoryUse& operator=(const DirectoryUse&) = delete;

 private:
  DirectoryUse(std::string directory, bool read_only)
      : directory_(std::move(directory)), read_only_(read_only) {}

  const std::string directory_;  // canonical
  const bool read_only_;
};

}  // namespace tamis
