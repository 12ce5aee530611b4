// StoreDirectory: what lies in a directory, looked at before RocksDB opens it, since that would
// make a new store beside files that it does not know, or whose first file is lost.
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

// The use of a directory by a store of this process. The lock of the file LOCK keeps other
// processes away from it, but not this one: a second opening takes it once more, and lets go of it
// for both. Threads: safe.
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
