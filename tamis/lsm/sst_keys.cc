#include "tamis/lsm/sst_keys.h"

#include <rocksdb/comparator.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/unique_id.h>

#include <algorithm>
#include <memory>

namespace tamis::lsm {
namespace {

using rocksdb::Slice;

class AnyMerge : public rocksdb::MergeOperator {
 public:
  bool FullMergeV2(const MergeOperationInput&, MergeOperationOutput* out) const override {
    out->new_value.clear();
    return true;
  }
  const char* Name() const override { return "tamis.lsm.any"; }
};

// For an iterator from the first key to the last, which compares only to tell whether an entry is
// of the same key as the one before it: none is, once we say so, and a tombstone hides nothing.
class NeverEqual : public rocksdb::Comparator {
 public:
  void Begin() { begun_ = true; }
  int Compare(const Slice& a, const Slice& b) const override {
    const int order = a.compare(b);
    return order == 0 && begun_ ? 1 : order;
  }
  int CompareWithoutTimestamp(const Slice& a, bool, const Slice& b, bool) const override {
    return Compare(a, b);
  }
  bool Equal(const Slice& a, const Slice& b) const override { return Compare(a, b) == 0; }
  bool EqualWithoutTimestamp(const Slice& a, const Slice& b) const override { return Equal(a, b); }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
  const char* Name() const override { return rocksdb::BytewiseComparator()->Name(); }

 private:
  bool begun_ = false;
};

// RocksDB's iterator asserts that the keys ascend. Files of early versions name no comparator.
bool IsBytewise(const rocksdb::TableProperties& properties) {
  return properties.comparator_name.empty() ||
         properties.comparator_name == rocksdb::BytewiseComparator()->Name();
}

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

std::shared_ptr<rocksdb::MergeOperator> MakeAnyMerge() { return std::make_shared<AnyMerge>(); }

Result<SstHead> ReadSstHead(rocksdb::Env* env, const std::string& path) {
  rocksdb::Options options;
  options.env = env;
  rocksdb::SstFileReader reader(options);
  if (const rocksdb::Status status = reader.Open(path); !status.ok()) {
    return CannotRead(path, status);
  }
  const auto properties = reader.GetTableProperties();
  return SstHead{IdentityOf(*properties), properties->num_entries};
}

Result<FileIdentity> ReadSst(rocksdb::Env* env, const std::string& path,
                             const std::function<void(std::string_view)>& visit) {
  rocksdb::Options options;
  options.env = env;
  options.merge_operator = MakeAnyMerge();
  NeverEqual never_equal;
  options.comparator = &never_equal;
  rocksdb::SstFileReader reader(options);
  if (const rocksdb::Status status = reader.Open(path); !status.ok()) {
    return CannotRead(path, status);
  }
  rocksdb::ReadOptions read;
  read.fill_cache = false;
  never_equal.Begin();
  const auto properties = reader.GetTableProperties();
  if (!IsBytewise(*properties)) {
    return CannotRead(path, rocksdb::Status::NotSupported("it is ordered by comparator \"" +
                                                          properties->comparator_name + "\""));
  }
  const std::unique_ptr<rocksdb::Iterator> keys(reader.NewIterator(read));
  for (keys->SeekToFirst(); keys->Valid(); keys->Next()) {
    visit({keys->key().data(), keys->key().size()});
  }
  if (!keys->status().ok()) return CannotRead(path, keys->status());
  return IdentityOf(*properties);
}

}  // namespace tamis::lsm
