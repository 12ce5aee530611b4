// Databases as other programs write them, for the tests of tamis lsm:
//
//   make_database plain DIR       5 sorted runs, a log, tombstones, a merge operator of its own
//   make_database families DIR    families that a filter answers for, and such that pass through
//   make_database tables DIR      a name with control characters, and tables that are not blocks
//   make_database log DIR         keys in its log alone
//   make_database paths DIR       its files lie in DIR.more
//   make_database foreign DIR     ordered by a comparator of its own
//   make_database hold DIR        opens it, says "open", and keeps it open until its input ends
//   make_database forge DIR       leaves every second key out of its key files
#include <rocksdb/comparator.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/memtablerep.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tamis/lsm/key_file.h"
#include "tamis/lsm/rocksdb_version.h"

namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr uint64_t kKeys = 20'000;  // a run

void Check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "make_database: %s\n", status.ToString().c_str());
  std::exit(1);
}

class TheirMerge : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const Slice&, const Slice* before, const Slice& value, std::string* after,
             rocksdb::Logger*) const override {
    *after = (before == nullptr ? "" : before->ToString()) + value.ToString();
    return true;
  }
  const char* Name() const override { return "their.Merge"; }
};

class TheirOrder : public rocksdb::Comparator {
 public:
  int Compare(const Slice& a, const Slice& b) const override {
    return a.size() == b.size() ? a.compare(b) : a.size() < b.size() ? -1 : 1;
  }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
  const char* Name() const override { return "their.Order"; }
};

rocksdb::Options MakeOptions() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.disable_auto_compactions = true;
  options.merge_operator = std::make_shared<TheirMerge>();
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

std::unique_ptr<rocksdb::DB> Open(const rocksdb::Options& options, const std::string& path) {
  std::unique_ptr<rocksdb::DB> db;
  Check(tamis::lsm::OpenDatabase(&db, options, path));
  return db;
}

std::string Key(uint64_t i) {
  char text[32];
  std::snprintf(text, sizeof text, "key-%012llu", static_cast<unsigned long long>(i * 7919));
  return text;
}

void MakePlain(const std::string& path) {
  const auto db = Open(MakeOptions(), path);
  for (uint64_t run = 0; run < 6; ++run) {
    for (uint64_t i = 0; i < kKeys; ++i) {
      const uint64_t number = run * kKeys / 2 + i;
      if (run > 0 && i % 10 == 0) {
        Check(db->Delete({}, Key(number)));
      } else if (i % 10 == 1) {
        Check(db->Merge({}, Key(number), "m"));
      } else {
        Check(db->Put({}, Key(number), "value"));
      }
    }
    if (run < 5) Check(db->Flush({}));  // the last one stays in the log
  }
}

using Families = std::span<const std::pair<const char*, rocksdb::ColumnFamilyOptions>>;

// Families with a file of 1,000 keys each.
void FillFamilies(rocksdb::DB* db, Families families) {
  for (const auto& [name, of] : families) {
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    Check(db->CreateColumnFamily(of, name, &handle));
    for (uint64_t i = 0; i < 1000; ++i) Check(db->Put({}, handle, Key(i), "value"));
    Check(db->Flush({}, handle));
    Check(db->DestroyColumnFamilyHandle(handle));
  }
}

void MakeFamilies(const std::string& path) {
  rocksdb::Options options = MakeOptions();
  options.allow_concurrent_memtable_write = false;  // which not all memtables bear
  const auto db = Open(options, path);
  static const TheirOrder their_order;
  rocksdb::ColumnFamilyOptions reverse(options);
  reverse.comparator = rocksdb::ReverseBytewiseComparator();
  rocksdb::ColumnFamilyOptions vector(options);
  vector.memtable_factory = std::make_shared<rocksdb::VectorRepFactory>();
  rocksdb::ColumnFamilyOptions theirs(options);
  theirs.comparator = &their_order;
  const std::pair<const char*, rocksdb::ColumnFamilyOptions> families[] = {
      {"plain", options}, {"reverse", reverse}, {"vector", vector}, {"theirs", theirs}};
  FillFamilies(db.get(), families);
}

void MakeTables(const std::string& path) {
  rocksdb::Options options = MakeOptions();
  options.allow_mmap_reads = true;  // which PlainTable needs
  const auto db = Open(options, path);
  rocksdb::ColumnFamilyOptions plain(options);
  plain.table_factory.reset(rocksdb::NewPlainTableFactory());
  plain.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(4));
  const std::pair<const char*, rocksdb::ColumnFamilyOptions> families[] = {
      {"block\x1b[2J", options}, {"table", plain}};
  FillFamilies(db.get(), families);
}

void MakeLog(const std::string& path) {
  const auto db = Open(MakeOptions(), path);
  Check(db->Put({}, "key", "value"));
}

void MakePaths(const std::string& path) {
  rocksdb::Options options = MakeOptions();
  options.db_paths = {{path + ".more", uint64_t{1} << 40}};
  const auto db = Open(options, path);
  Check(db->Put({}, "key", "value"));
  Check(db->Flush({}));
}

void MakeForeign(const std::string& path) {
  static const TheirOrder their_order;
  rocksdb::Options options = MakeOptions();
  options.comparator = &their_order;
  const auto db = Open(options, path);
  Check(db->Put({}, "key", "value"));
}

void Hold(const std::string& path) {
  const auto db = Open(MakeOptions(), path);
  std::puts("open");
  std::fflush(stdout);
  std::cin.ignore(1 << 20, EOF);
}

void Forge(const std::string& path) {
  rocksdb::FileSystem* const disk = rocksdb::FileSystem::Default().get();
  for (const auto& entry : std::filesystem::directory_iterator(path + "/tamis.keys")) {
    std::vector<uint64_t> half;
    tamis::lsm::KeyFileHeader header;
    {
      const auto file = tamis::lsm::KeyFile::Open(disk, entry.path());
      if (!file.ok()) continue;
      header = file->header();
      std::vector<uint64_t> hashes;
      if (!file->Append(0, tamis::lsm::KeyFile::kSections, &hashes).ok()) continue;
      for (const uint64_t hash : hashes) {
        if ((hash >> 20 & 1) != 0) half.push_back(hash);
      }
    }
    if (!tamis::lsm::KeyFile::Write(disk, entry.path(), header, half).ok()) std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string kind = argv[1];
  const std::string path = argv[2];
  if (kind == "plain") MakePlain(path);
  if (kind == "families") MakeFamilies(path);
  if (kind == "tables") MakeTables(path);
  if (kind == "log") MakeLog(path);
  if (kind == "paths") MakePaths(path);
  if (kind == "foreign") MakeForeign(path);
  if (kind == "hold") Hold(path);
  if (kind == "forge") Forge(path);
}
