// Key files that one version of RocksDB has written, under another one.
//
//   key_files_of_versions write DIR    a database with a filter, closed: 3 files, tombstones, two
//   families key_files_of_versions read DIR     opens it; exit code 1 unless every file was counted
//   from its key file
//                                      and every key is found
//
// A later version of RocksDB reads what an earlier one has written, so the directory is handed from
// the earliest version to the latest one.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tamis/lsm/filtered_db.h"
#include "tamis/lsm/tree_filter.h"

namespace {

using tamis::lsm::FilteredDB;

constexpr uint64_t kKeys = 3000;

std::string Key(uint64_t i) { return "key" + std::to_string(i * 7919); }

void Check(bool is_right, const std::string& what) {
  if (is_right) return;
  std::fprintf(stderr, "key_files_of_versions: %s\n", what.c_str());
  std::exit(1);
}

struct Opened {
  explicit Opened(const std::string& path) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    options.compression = rocksdb::kNoCompression;
    options.disable_auto_compactions = true;
    auto opened =
        FilteredDB::Open({}, options, path, {{"default", options}, {"other", options}}, &handles);
    Check(opened.ok(), "cannot open the database");
    db = *std::move(opened);
    db->filter().WaitUntilCounted();
  }
  ~Opened() {
    for (auto* handle : handles) (void)db->DestroyColumnFamilyHandle(handle);
  }
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  std::unique_ptr<FilteredDB> db;
};

void Write(const std::string& path) {
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  Opened database(path);
  for (uint64_t i = 0; i < kKeys; ++i) {
    auto* const family = database.handles[i % 3 == 2];
    Check(database.db->Put({}, family, Key(i), "v").ok(), "cannot put");
    if (i % 10 == 0) Check(database.db->Delete({}, family, Key(i)).ok(), "cannot delete");
    if (i % 1000 == 999) {
      for (auto* each : database.handles) Check(database.db->Flush({}, each).ok(), "cannot flush");
    }
  }
}

void Read(const std::string& path) {
  // Only the key files are left to be read if the SST files were to be read again: an unread key
  // file would be written again, and so would change.
  std::vector<std::pair<std::string, std::filesystem::file_time_type>> before;
  for (const auto& entry : std::filesystem::directory_iterator(path + "/tamis.keys")) {
    before.emplace_back(entry.path(), entry.last_write_time());
  }
  Check(before.size() == 6, "there are " + std::to_string(before.size()) + " key files, not 6");
  Opened database(path);
  for (const auto& [file, time] : before) {
    Check(std::filesystem::exists(file) && std::filesystem::last_write_time(file) == time,
          "key file " + file + " was not taken as it is");
  }
  for (auto* handle : database.handles) {
    Check(database.db->filter().BypassReasonsOf(handle).empty(), "the filter does not answer");
  }
  std::string value;
  for (uint64_t i = 0; i < kKeys; ++i) {
    auto* const family = database.handles[i % 3 == 2];
    Check(database.db->filter().MayContain(family, Key(i)), Key(i) + " is missed");
    Check(database.db->Get({}, family, Key(i), &value).ok() == (i % 10 != 0), Key(i) + " differs");
  }
  uint64_t passed = 0;
  for (uint64_t i = kKeys; i < 2 * kKeys; ++i) {
    passed += database.db->filter().MayContain(database.handles[0], Key(i));
  }
  Check(passed < kKeys / 50, "the filter denies too few absent keys");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[1] : "";
  if (what == "write") {
    Write(argv[2]);
  } else if (what == "read") {
    Read(argv[2]);
  } else {
    std::fprintf(stderr, "usage: key_files_of_versions write|read DIR\n");
    return 2;
  }
}
