#include "tests/lsm/oracle_mishaps.h"

#include <rocksdb/convenience.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/utilities/checkpoint.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>

#include "tamis/lsm/rocksdb_version.h"

namespace tamis::lsm {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::Status;
using Style = OracleConfig::Style;

}  // namespace

void OracleMishaps::Disturb() {
  const uint64_t choice = database_.random.Uniform(100);
  // Universal compactions of ingested files that are newer than a memtable which is being flushed
  // fail RocksDB's own check, after which nothing is ever installed again.
  const bool may_ingest =
      !database_.config.HasUndecided() && database_.config.style != Style::kUniversal;
  if (choice < 18) {
    ++database_.counts.flushes;
    (void)database_.db->Flush({}, AnyFamily());
  } else if (choice < 25) {
    if (database_.config.style != Style::kFifo) CompactRange();
  } else if (choice < 40) {
    if (database_.config.style != Style::kFifo) CompactFiles();
  } else if (choice < 52) {
    if (may_ingest) Ingest();
  } else if (choice < 55) {
    Import();
  } else if (choice < 60) {
    ChangeFamilies();
  } else if (choice < 64) {
    if (database_.drops_files && database_.config.style != Style::kFifo) DropFiles();
  } else if (choice < 68) {
    if (std::exchange(keeps_files_, !keeps_files_)) {
      (void)EnableFileDeletions(database_.db.get());
    } else {
      (void)database_.db->DisableFileDeletions();
    }
  } else if (choice < 71) {
    (void)database_.db->SetOptions(
        AnyFamily(), {{"disable_auto_compactions", database_.random.OneIn(4) ? "true" : "false"}});
  } else if (choice < 75) {
    if (database_.config.loses_files) LoseKeyFile();
  } else if (choice < 78) {
    if (database_.config.disk_fails) FailDisk();
  } else {
    // Nothing happens for a while: what was begun comes to its end, too.
    std::this_thread::sleep_for(std::chrono::milliseconds(database_.random.Uniform(30)));
  }
}

void OracleMishaps::CompactRange() {
  rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = database_.random.OneIn(2);
  options.max_subcompactions = static_cast<uint32_t>(database_.random.Uniform(4));
  if (database_.random.OneIn(8)) {
    options.change_level = true;
    // Files that are moved to level 0 together may fail RocksDB's own check, after which nothing
    // is ever installed again.
    options.target_level = 1 + static_cast<int>(database_.random.Uniform(5));
  }
  if (database_.random.OneIn(2)) {
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  }
  const std::string from =
      OracleDatabase::Numbered('k', database_.random.Uniform(OracleDatabase::kKeys));
  const std::string to =
      OracleDatabase::Numbered('k', database_.random.Uniform(OracleDatabase::kKeys));
  const Slice begin = from;
  const Slice end = to;
  const bool is_whole = database_.random.OneIn(2);
  ++database_.counts.compactions;
  (void)database_.db->CompactRange(options, AnyFamily(), is_whole ? nullptr : &begin,
                                   is_whole || from >= to ? nullptr : &end);
}

void OracleMishaps::CompactFiles() {
  ColumnFamilyHandle* const family = AnyFamily();
  rocksdb::ColumnFamilyMetaData metadata;
  database_.db->GetColumnFamilyMetaData(family, &metadata);
  std::vector<std::string> names;
  int deepest = 0;
  for (const auto& level : metadata.levels) {
    for (const auto& file : level.files) {
      if (!database_.random.OneIn(3) || names.size() > 3) continue;
      names.push_back(file.name);
      deepest = level.level;
    }
  }
  if (names.empty()) return;
  const int to = std::min(6, deepest + static_cast<int>(database_.random.Uniform(3)));
  if (database_.db->CompactFiles(rocksdb::CompactionOptions(), family, names, to).ok()) {
    ++database_.counts.files_compacted;
  }
}

std::string OracleMishaps::MakeSst(char kind, std::vector<SstKey>* keys) {
  const std::string path =
      database_.config.directory + "/in" + std::to_string(database_.next_name++) + ".sst";
  rocksdb::Options options;
  options.merge_operator = database_.options.merge_operator;
  rocksdb::SstFileWriter writer({}, options);
  if (!writer.Open(path).ok()) return path;
  for (uint64_t i = database_.random.Uniform(OracleDatabase::kKeys);
       i < OracleDatabase::kKeys && keys->size() < 60; i += 1 + database_.random.Uniform(4)) {
    keys->push_back({.number = i, .is_put = !database_.random.OneIn(5)});
    const std::string key = OracleDatabase::Numbered(kind, i);
    (void)(keys->back().is_put ? writer.Put(key, "ingested") : writer.Delete(key));
  }
  (void)writer.Finish();
  return path;
}

void OracleMishaps::IngestAndAsk(const std::vector<SstKey>& keys,
                                 const std::vector<size_t>& families,
                                 const std::function<Status()>& ingest) {
  const auto note = [&](bool is_known) {
    if (!database_.config.has_model) return;
    for (const size_t family : families) {
      for (const SstKey& key : keys) {
        database_.counts.ingested[family][key.number] = !is_known    ? OracleCounts::kUnknown
                                                        : key.is_put ? OracleCounts::kThere
                                                                     : OracleCounts::kNotThere;
      }
    }
  };
  note(false);
  if (ingest().ok()) note(true);
  for (const SstKey& key : keys) {
    questions_.Ask(database_.fixed[families[database_.random.Uniform(families.size())]],
                   OracleDatabase::Numbered('i', key.number), "who ingested it");
  }
}

void OracleMishaps::Ingest() {
  const bool is_behind = database_.random.OneIn(6);
  std::vector<SstKey> keys;
  const std::string path = MakeSst(is_behind ? 'u' : 'i', &keys);
  rocksdb::IngestExternalFileOptions options;
  options.move_files = database_.random.OneIn(2);
  options.failed_move_fall_back_to_copy = true;
  ++database_.counts.ingestions;
  if (is_behind) {
    // Missed until it is counted: these keys are asked for at the end.
    (void)database_.base->IngestExternalFile(AnyFamily(), {path}, options);
  } else if (database_.random.OneIn(3)) {
    rocksdb::IngestExternalFileArg into[2];
    for (int i = 0; i < 2; ++i) {
      into[i].column_family = database_.fixed[static_cast<size_t>(i)];
      into[i].external_files = {path};
      into[i].options = options;
      into[i].options.move_files = false;
    }
    IngestAndAsk(keys, {0, 1}, [&] {
      return database_.db->IngestExternalFiles({into[0], into[1]});
    });
  } else {
    const size_t family = database_.random.Uniform(database_.fixed.size());
    IngestAndAsk(keys, {family}, [&] {
      return database_.db->IngestExternalFile(database_.fixed[family], {path}, options);
    });
  }
  std::error_code error;
  std::filesystem::remove(path, error);
}

void OracleMishaps::Import() {
  rocksdb::Checkpoint* made = nullptr;
  if (!rocksdb::Checkpoint::Create(database_.base, &made).ok()) return;
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  const std::string exported = database_.config.directory + "/export";
  std::error_code error;
  std::filesystem::remove_all(exported, error);
  const rocksdb::Snapshot* const snapshot =
      database_.random.OneIn(2) ? database_.base->GetSnapshot() : nullptr;
  rocksdb::ExportImportFilesMetaData* metadata = nullptr;
  ColumnFamilyHandle* handle = nullptr;
  if (checkpoint->ExportColumnFamily(database_.fixed[1], exported, &metadata).ok()) {
    const bool is_behind = database_.random.OneIn(3);
    rocksdb::ColumnFamilyOptions options = database_.options;
    if (is_behind) database_.filter->Attach(&options);
    rocksdb::DB* const into = is_behind ? database_.base : database_.db.get();
    const Status status = into->CreateColumnFamilyWithImport(
        options, NewName(), rocksdb::ImportColumnFamilyOptions(), *metadata, &handle);
    if (status.ok()) {
      ++database_.counts.imports;
      if (is_behind && database_.random.OneIn(2) && database_.config.style != Style::kFifo) {
        (void)into->CompactRange({}, handle, nullptr, nullptr);
      }
      if (is_behind) database_.filter->Show(handle);
      const bool is_dropped = database_.random.OneIn(3);
      if (is_dropped) {
        // Most often before it is counted.
        (void)(database_.random.OneIn(2) ? database_.base : database_.db.get())
            ->DropColumnFamily(handle);
      }
      questions_.AskAll(handle, nullptr, "who imported it");
      if (snapshot != nullptr)
        questions_.AskAll(handle, snapshot, "a snapshot from before the import");
      database_.filter->WaitUntilCounted();
      if (is_dropped || database_.random.OneIn(2)) WaitUntilCounted(handle);
      questions_.AskAll(handle, nullptr, "who imported it before");
      if (snapshot != nullptr)
        questions_.AskAll(handle, snapshot, "a snapshot from before the import");
      if (is_dropped) {
        (void)database_.db->DestroyColumnFamilyHandle(handle);
      } else {
        database_.temporary.push_back(handle);
      }
    }
  }
  delete metadata;
  if (snapshot != nullptr) database_.base->ReleaseSnapshot(snapshot);
  std::filesystem::remove_all(exported, error);
}

// Waits until the filter answers for the family; the filter has no event for that, so it is polled.
// Gives up if the family keeps passing through.
void OracleMishaps::WaitUntilCounted(ColumnFamilyHandle* handle) {
  for (int i = 0; i < 1000 && !database_.filter->BypassReasonsOf(handle).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::string OracleMishaps::NewName() { return "t" + std::to_string(database_.random.Uniform(6)); }

void OracleMishaps::ChangeFamilies() {
  ++database_.counts.families;
  if (database_.temporary.size() > 2 ||
      (!database_.temporary.empty() && database_.random.OneIn(2))) {
    ColumnFamilyHandle* const handle = database_.temporary.front();
    database_.temporary.erase(database_.temporary.begin());
    if (handle->GetName()[0] == 't') {
      (void)database_.db->DropColumnFamily(handle);
      questions_.AskAll(handle, nullptr, "who dropped it");
    }
    (void)database_.db->DestroyColumnFamilyHandle(handle);
    return;
  }
  const bool is_behind = database_.random.OneIn(3);
  rocksdb::ColumnFamilyOptions options = database_.options;
  ColumnFamilyHandle* handle = nullptr;
  if (is_behind && database_.random.OneIn(2)) database_.filter->Attach(&options);
  rocksdb::DB* const into = is_behind ? database_.base : database_.db.get();
  if (!into->CreateColumnFamily(options, NewName(), &handle).ok()) return;
  rocksdb::WriteOptions write;
  write.disableWAL = !database_.config.logs;
  for (int i = 0; i < 50; ++i) {
    (void)database_.db->Put(
        write, handle,
        OracleDatabase::Numbered('k', database_.random.Uniform(OracleDatabase::kKeys)), "v");
  }
  if (database_.random.OneIn(2)) (void)database_.db->Flush({}, handle);
  questions_.AskAll(handle, nullptr, "who made it");
  if (is_behind) database_.filter->Show(handle);
  questions_.AskAll(handle, nullptr, "who showed it");
  database_.temporary.push_back(handle);
}

void OracleMishaps::DropFiles() {
  const uint64_t first = database_.random.Uniform(OracleDatabase::kKeys);
  const std::string from = OracleDatabase::Numbered('k', first);
  const std::string to = OracleDatabase::Numbered('k', first + 500);
  const Slice begin = from;
  const Slice end = to;
  ++database_.counts.files_dropped;
  (void)rocksdb::DeleteFilesInRange(database_.base, AnyFamily(), &begin, &end);
}

void OracleMishaps::LoseKeyFile() {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(database_.keys_path, error)) {
    files.push_back(entry.path());
  }
  if (files.empty()) return;
  ++database_.counts.lost_key_files;
  const auto& path = files[database_.random.Uniform(files.size())];
  switch (database_.random.Uniform(4)) {
    case 0:
      std::filesystem::remove(path, error);
      break;
    case 1:
      std::filesystem::rename(path, files[database_.random.Uniform(files.size())], error);
      break;
    case 2:
      std::filesystem::resize_file(path, database_.random.Uniform(5000), error);
      break;
    default: {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(database_.random.Uniform(4000)));
      file.put(static_cast<char>(database_.random()));
    }
  }
}

void OracleMishaps::FailDisk() {
  using Mood = FaultyFileSystem::Mood;
  ++database_.counts.disk_faults;
  database_.disk->SetMood(database_.random.OneIn(2) ? Mood::kFull : Mood::kFailing);
  (void)database_.db->Flush({}, AnyFamily());
  // So long the others write to a disk that fails.
  std::this_thread::sleep_for(std::chrono::milliseconds(database_.random.Uniform(50)));
  database_.disk->SetMood(Mood::kWell);
  // Resume is refused while RocksDB recovers by itself; no event tells when that ends.
  for (int i = 0; i < 50 && !database_.db->Resume().ok(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace tamis::lsm
