#include "tamis/rocks/store_directory.h"

#include <rocksdb/db.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "tamis/rocks/store.h"
#include "tamis/rocks/store_log.h"

namespace tamis {
namespace {

namespace fs = std::filesystem;

// A file that RocksDB has by the time that it can hold data.
bool IsData(const std::string& name) { return name.ends_with(".sst") || name.ends_with(".log"); }

// Files that an interrupted creation of a store leaves before CURRENT is there.
bool IsBeginning(const std::string& name) {
  return name.starts_with("MANIFEST-") || name.starts_with("OPTIONS-") || name == "LOCK" ||
         name == "LOG" || name.starts_with("LOG.old") || name == "IDENTITY" ||
         name.ends_with(".dbtmp");
}

Status NoStore(const std::string& doing) {
  return NotFound("cannot " + doing +
                  ": there is none; check the name, or make a store with tamis import, tamis table "
                  "create or tamis sql --create");
}

Status CheckFamilies(const std::string& directory, const std::string& doing,
                     const rocksdb::DBOptions& options) {
  std::vector<std::string> names;
  const rocksdb::Status listed = rocksdb::DB::ListColumnFamilies(options, directory, &names);
  if (!listed.ok()) return FromRocks(listed, doing);
  const std::set<std::string> ours = {"default", "rows", "index", "meta"};
  const bool foreign =
      std::ranges::any_of(names, [&](const std::string& name) { return !ours.contains(name); });
  if (!foreign && std::ranges::find(names, "meta") != names.end()) return Status::Ok();
  Status refused = FailedPrecondition(
      "cannot " + doing + ": it is a RocksDB database of something else; name another directory");
  if (foreign) return refused;
  // A store whose making was broken off is empty.
  rocksdb::Options to_read(options, rocksdb::ColumnFamilyOptions());
  to_read.info_log = std::make_shared<StoreLog>("");
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened = rocksdb::DB::OpenForReadOnly(to_read, directory, &db);
  const std::unique_ptr<rocksdb::DB> owned(db);
  if (!opened.ok()) return FromRocks(opened, doing);
  return db->GetLatestSequenceNumber() == 0 ? Status::Ok() : refused;
}

}  // namespace

Status CheckStoreDirectory(const std::string& directory, bool create,
                           const rocksdb::DBOptions& options) {
  const std::string doing = "open store \"" + directory + "\"";
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (status.type() == fs::file_type::not_found) {
    if (!create) {
      return NoStore(doing);
    }
    if (fs::create_directory(directory, error)) return Status::Ok();
  }
  if (error) return FailedPrecondition("cannot " + doing + ": " + error.message());
  if (status.type() != fs::file_type::directory) {
    return FailedPrecondition("cannot " + doing + ": it is not a directory");
  }
  std::vector<std::string> names;
  fs::directory_iterator it(directory, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) {
    return FailedPrecondition("cannot " + doing + ": " + error.message() +
                              "; ask for the right to read and write there");
  }
  if (std::ranges::find(names, "CURRENT") != names.end()) {
    return CheckFamilies(directory, doing, options);
  }
  if (std::ranges::any_of(names, IsData) && std::ranges::any_of(names, IsBeginning)) {
    return DataLoss("cannot " + doing + ": its file CURRENT is missing; restore the store from a " +
                    "backup");
  }
  if (!std::ranges::all_of(names, IsBeginning)) {
    return FailedPrecondition("cannot " + doing +
                              ": the directory holds other files and no store; name another one");
  }
  if (create) return Status::Ok();
  return NoStore(doing);
}

namespace {

// How the stores of this process use a directory.
struct Uses {
  size_t readers = 0;
  size_t writers = 0;  // RocksDB lets one succeed
};

struct AllUses {
  std::mutex mutex;
  std::map<std::string, Uses> of_directory;

  static AllUses& Get() {
    static AllUses& uses = *new AllUses;  // a store may end after static objects
    return uses;
  }
};

}  // namespace

Result<std::unique_ptr<DirectoryUse>> DirectoryUse::Begin(const std::string& directory,
                                                          bool read_only) {
  std::error_code ignored;
  const std::string canonical = fs::weakly_canonical(directory, ignored).string();
  AllUses& all = AllUses::Get();
  std::lock_guard lock(all.mutex);
  Uses& uses = all.of_directory[canonical];
  if (read_only ? uses.writers > 0 : uses.readers > 0) {
    return FailedPrecondition("cannot open store \"" + directory + "\" for " +
                              (read_only ? "reading only: this process has it open for writing"
                                         : "writing: this process has it open for reading only"));
  }
  std::unique_ptr<DirectoryUse> use(new DirectoryUse(canonical, read_only));
  ++(read_only ? uses.readers : uses.writers);
  return use;
}

DirectoryUse::~DirectoryUse() {
  AllUses& all = AllUses::Get();
  std::lock_guard lock(all.mutex);
  const auto uses = all.of_directory.find(directory_);
  --(read_only_ ? uses->second.readers : uses->second.writers);
  if (uses->second.readers + uses->second.writers == 0) all.of_directory.erase(uses);
}

}  // namespace tamis
