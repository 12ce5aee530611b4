#include "tamis/rocks/entry_file.h"

#include <vector>

#include "tamis/base/waits_for_memory.h"

namespace tamis {
namespace {

// RocksDB leaves files of such names alone.
constexpr std::string_view kSuffix = ".entries";

std::string PathOf(const Store& store, const std::string& name) {
  return store.options().directory + "/" + name;
}

}  // namespace

EntryFile::EntryFile(Store* store, uint64_t region_id)
    : store_(store),
      path_(PathOf(*store, "region-" + std::to_string(region_id) + std::string(kSuffix))) {}

EntryFile::~EntryFile() {
  if (!writer_) return;
  const WaitsForMemory waits;  // RocksDB's errors allocate
  writer_.reset();
  // A file that cannot be deleted goes at the next opening.
  (void)store_->db()->GetEnv()->DeleteFile(path_);
}

Status EntryFile::Add(const std::string& key, std::string_view value) {
  const auto refused = [this](const rocksdb::Status& status) {
    return FromRocks(status, "write index entries to file \"" + path_ + "\"");
  };
  const WaitsForMemory waits;
  if (!writer_) {
    const rocksdb::Options options = store_->db()->GetOptions(store_->index());
    writer_ = std::make_unique<rocksdb::SstFileWriter>(rocksdb::EnvOptions(options), options,
                                                       store_->index());
    const rocksdb::Status opened = writer_->Open(path_);
    if (!opened.ok()) return refused(opened);
  }
  return refused(writer_->Put(key, rocksdb::Slice(value.data(), value.size())));
}

Status EntryFile::TakeIn() {
  if (!writer_) return Status::Ok();
  {
    const WaitsForMemory waits;
    const rocksdb::Status finished = writer_->Finish();
    if (!finished.ok()) return FromRocks(finished, "write file \"" + path_ + "\"");
  }
  TAMIS_RETURN_IF_ERROR(store_->TakeIn(path_));
  writer_.reset();  // the store has the file
  return Status::Ok();
}

void EntryFile::DeleteLeftovers(const Store& store) {
  rocksdb::Env* env = store.db()->GetEnv();
  std::vector<std::string> names;
  if (!env->GetChildren(store.options().directory, &names).ok()) return;
  for (const std::string& name : names) {
    if (name.ends_with(kSuffix)) (void)env->DeleteFile(PathOf(store, name));
  }
}

}  // namespace tamis
