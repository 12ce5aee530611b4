// What an SST file says of its keys.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/table_properties.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/lsm/key_file.h"

namespace tamis::lsm {

// Names the file wherever it lies; zeros when it has no name, which is nobody's.
FileIdentity IdentityOf(const rocksdb::TableProperties& properties);

Result<FileIdentity> ReadSstIdentity(rocksdb::Env* env, const std::string& path);

struct SstFile {
  FileIdentity identity{};
  uint64_t deletions = 0;
};

// visit(key) for each key that a reader without a snapshot can find in the file: what lies under a
// tombstone of the same file is passed over.
Result<SstFile> ReadSst(rocksdb::Env* env, const std::string& path,
                        const std::function<void(std::string_view)>& visit);

}  // namespace tamis::lsm
