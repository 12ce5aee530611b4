// StoreDirectory: what lies in a directory, looked at before RocksDB opens it, since that would
// make a new store beside files that it does not know, or whose first file is lost.
#pragma once

#include <rocksdb/options.h>

#include <string>

#include "tamis/base/status.h"

namespace tamis {

// Ok when `directory` holds a store, or, with `create`, when one can be made there: it is empty, or
// holds one whose making was broken off. With `create` a directory that does not exist is made.
Status CheckStoreDirectory(const std::string& directory, bool create,
                           const rocksdb::DBOptions& options);

}  // namespace tamis
