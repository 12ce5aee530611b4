// Reads the keys of an SST file.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/table_properties.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/lsm/key_file.h"

namespace tamis::lsm {

// A name of the file that stays when it is moved or copied; zeros when RocksDB gave it none. Zeros
// identify no file.
FileIdentity IdentityOf(const rocksdb::TableProperties& properties);

// A merge operator for reading the keys of files whose own merge operator is not known here.
std::shared_ptr<rocksdb::MergeOperator> MakeAnyMerge();

struct SstHead {
  FileIdentity identity{};
  uint64_t entries = 0;  // keys, each with all its versions
};
Result<SstHead> ReadSstHead(rocksdb::Env* env, const std::string& path);

// Calls visit(key) for each key of which the file holds a value or a merge operand, for some keys
// more than once. A value below a tombstone of the same file counts, since a snapshot or an
// undecided transaction may still see it. Returns the file's identity.
Result<FileIdentity> ReadSst(rocksdb::Env* env, const std::string& path,
                             const std::function<void(std::string_view)>& visit);

}  // namespace tamis::lsm
