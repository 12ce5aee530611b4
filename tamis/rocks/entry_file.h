// EntryFile: a table file of index entries, written in the order of their keys beside the store's
// own files and then taken into the store. Entries that come so go neither through the log nor
// through a memtable.
//
//   EntryFile file(store, region_id);
//   for (...) TAMIS_RETURN_IF_ERROR(file.Add(key, value));
//   TAMIS_RETURN_IF_ERROR(file.TakeIn());
//
// Threads: exclusive access.
#pragma once

#include <rocksdb/sst_file_writer.h>

#include <cstdint>
#include <memory>
#include <string>

#include "tamis/base/status.h"
#include "tamis/rocks/store.h"

namespace tamis {

class EntryFile {
 public:
  // The file has entries of one region, which has no other such file at that time. `store` must
  // outlive the object.
  EntryFile(Store* store, uint64_t region_id);
  // Deletes the file, unless the store has it.
  ~EntryFile();
  EntryFile(const EntryFile&) = delete;
  EntryFile& operator=(const EntryFile&) = delete;

  // REQUIRES: the key is above the one before.
  Status Add(const std::string& key, std::string_view value);
  // Nothing is done where no entry was added. After an error the entries may be in the store or
  // not.
  Status TakeIn();

  // Deletes the files that an earlier process left unfinished in the directory of the store.
  static void DeleteLeftovers(const Store& store);

 private:
  Store* const store_;
  const std::string path_;
  std::unique_ptr<rocksdb::SstFileWriter> writer_;  // from the first Add on
};

}  // namespace tamis
