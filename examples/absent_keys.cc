// A RocksDB that is mostly asked for keys that it does not have: opened through FilteredDB, it
// denies nearly all of them without a look at its files. Opened without, it is a RocksDB as before.
//
// Shows: the one line that changes, what the filter says of itself, and why nothing is denied while
// it still counts. usage: absent_keys DIRECTORY (a new one)
#include <rocksdb/db.h>

#include <cstdio>
#include <memory>
#include <string>

#include "tamis/lsm/filtered_db.h"

namespace {

constexpr int kKeys = 100'000;

// Even numbers are there.
std::string KeyOf(int i) { return "user" + std::to_string(i); }

bool Holds(rocksdb::DB* db, int i) {
  std::string value;
  return db->Get(rocksdb::ReadOptions(), KeyOf(i), &value).ok();
}

int Fail(const std::string& what) {
  std::fprintf(stderr, "absent_keys: %s\n", what.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return Fail("usage: absent_keys DIRECTORY");
  const std::string path = argv[1];
  rocksdb::Options options;
  options.create_if_missing = true;
  options.error_if_exists = true;
  options.memtable_whole_key_filtering = true;
  options.memtable_prefix_bloom_size_ratio = 0.05;
  {
    // rocksdb::DB::Open(options, path, &db) before.
    auto db = tamis::lsm::FilteredDB::Open({}, options, path);
    if (!db.ok()) return Fail(db.status().ToString());
    for (int i = 0; i < kKeys; ++i) {
      const auto put = (*db)->Put(rocksdb::WriteOptions(), KeyOf(2 * i), "somebody");
      if (!put.ok()) return Fail("cannot put: " + put.ToString());
      // A sorted run for each tenth of them.
      if (i % (kKeys / 10) == 0) (void)(*db)->Flush(rocksdb::FlushOptions());
    }
    // A database that had files already answers "perhaps" to everything until these are counted.
    (*db)->filter().WaitUntilCounted();
    int found = 0;
    int wrong = 0;
    for (int i = 0; i < 2 * kKeys; ++i) (i % 2 == 0 ? found : wrong) += Holds(db->get(), i);
    std::printf("%d keys: found %d, and %d that were never put\n", kKeys, found, wrong);
    std::string state;
    uint64_t excluded = 0;
    (*db)->GetIntProperty("tamis.lsm.excluded", &excluded);
    (*db)->GetProperty("tamis.lsm", &state);
    std::printf("nearly all of the others were denied at once: %s\n",
                excluded > kKeys * 0.98 ? "yes" : "no");
    std::printf("%s", state.c_str());
    const rocksdb::Status closed = (*db)->Close();
    if (!closed.ok()) return Fail("cannot close it: " + closed.ToString());
  }
  rocksdb::DB* plain = nullptr;
  options.error_if_exists = false;
  const rocksdb::Status opened = rocksdb::DB::Open(options, path, &plain);
  if (!opened.ok()) return Fail("cannot open it without the filter: " + opened.ToString());
  const std::unique_ptr<rocksdb::DB> owned(plain);
  std::printf("without the filter: %s\n",
              Holds(plain, 2) && !Holds(plain, 3) ? "the same answers" : "WRONG");
  return 0;
}
