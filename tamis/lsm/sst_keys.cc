#include "tamis/lsm/sst_keys.h"

#include <rocksdb/merge_operator.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/unique_id.h>

#include <algorithm>
#include <memory>

namespace tamis::lsm {
namespace {

// Lets a file be read whose merge operator is not known: only its keys are wanted.
class AnyMerge : public rocksdb::MergeOperator {
 public:
  bool FullMergeV2(const MergeOperationInput&, MergeOperationOutput* out) const override {
    out->new_value.clear();
    return true;
  }
  const char* Name() const override { return "tamis.lsm.any"; }
};

Status CannotRead(const std::string& path, const rocksdb::Status& status) {
  return Unavailable("cannot read the keys of SST file \"" + path + "\": " + status.ToString());
}

}  // namespace

FileIdentity IdentityOf(const rocksdb::TableProperties& properties) {
  FileIdentity identity{};
  std::string id;
  if (rocksdb::GetUniqueIdFromTableProperties(properties, &id).ok() &&
      id.size() == identity.size()) {
    std::ranges::copy(id, identity.begin());
  }
  return identity;
}

Result<FileIdentity> ReadSstIdentity(rocksdb::Env* env, const std::string& path) {
  rocksdb::Options options;
  options.env = env;
  rocksdb::SstFileReader reader(options);
  if (const rocksdb::Status status = reader.Open(path); !status.ok()) {
    return CannotRead(path, status);
  }
  return IdentityOf(*reader.GetTableProperties());
}

Result<SstFile> ReadSst(rocksdb::Env* env, const std::string& path,
                        const std::function<void(std::string_view)>& visit) {
  rocksdb::Options options;
  options.env = env;
  options.merge_operator = std::make_shared<AnyMerge>();
  rocksdb::SstFileReader reader(options);
  if (const rocksdb::Status status = reader.Open(path); !status.ok()) {
    return CannotRead(path, status);
  }
  rocksdb::ReadOptions read;
  read.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> keys(reader.NewIterator(read));
  for (keys->SeekToFirst(); keys->Valid(); keys->Next()) {
    visit({keys->key().data(), keys->key().size()});
  }
  if (!keys->status().ok()) return CannotRead(path, keys->status());
  const auto properties = reader.GetTableProperties();
  return SstFile{.identity = IdentityOf(*properties), .deletions = properties->num_deletions};
}

}  // namespace tamis::lsm
