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

// Names the file wherever it lies; zeros when it has no name, which is nobody's.
FileIdentity IdentityOf(const rocksdb::TableProperties& properties);

// Lets files be read whose merge operator is not known, where only keys are wanted.
std::shared_ptr<rocksdb::MergeOperator> MakeAnyMerge();

struct SstHead {
  FileIdentity identity{};
  uint64_t entries = 0;  // keys, each with all its versions
};
Result<SstHead> ReadSstHead(rocksdb::Env* env, const std::string& path);

// visit(key) for each key of which the file holds a value or a merge operand, also under a
// tombstone of the same file, where a snapshot or a transaction that is not decided may still see
// it; for some keys more than once. The file's identity.
Result<FileIdentity> ReadSst(rocksdb::Env* env, const std::string& path,
                             const std::function<void(std::string_view)>& visit);

}  // namespace tamis::lsm
