#include "tests/lsm/oracle_life.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tamis/lsm/key_file.h"
#include "tamis/lsm/sst_keys.h"
#include "tests/lsm/flush_window.h"
#include "tests/lsm/oracle_database.h"
#include "tests/lsm/oracle_mishaps.h"
#include "tests/lsm/oracle_questions.h"
#include "tests/lsm/oracle_writer.h"

namespace tamis::lsm {
namespace {

using rocksdb::ColumnFamilyHandle;

class Life {
 public:
  Life(const OracleConfig& config, uint64_t life, OracleCounts* counts)
      : database_(config, life, counts) {}

  bool Run(double seconds) {
    if (!database_.Open([this] { window_.Pass(stops_); })) return false;
    if (database_.config.has_model) questions_.AskWholeModel();
    // Flushes, compactions, ingestion, or a kill, before and between the decisions.
    while (!database_.recovered.empty()) {
      for (uint64_t i = database_.random.Uniform(20); i > 0; --i) mishaps_.Disturb();
      database_.DecideRecovered();
    }
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
    std::vector<std::thread> threads;
    for (int i = 0; i < OracleDatabase::kWriters; ++i) {
      threads.emplace_back([this, i] { writer_.Write(i, stops_); });
    }
    threads.emplace_back([this] { questions_.ReadAlong(stops_); });
    threads.emplace_back([this] { window_.FlushWhereWanted(stops_); });
    OracleCounts& counts = database_.counts;
    while (std::chrono::steady_clock::now() < end && counts.missed == 0) mishaps_.Disturb();
    stops_ = true;
    for (std::thread& thread : threads) thread.join();
    if (!database_.config.fault.empty()) return counts.missed == 0;
    Finish();
    return counts.missed == 0 && counts.different == 0 && counts.inexact == 0;
  }

 private:
  void Finish() {
    (void)EnableFileDeletions(database_.db.get());
    for (ColumnFamilyHandle* family : database_.fixed) {
      (void)database_.db->SetOptions(family, {{"disable_auto_compactions", "true"}});
    }
    // Waits for the compactions that run: remote ones end without an event, so what one installs
    // after the last look at the live files would be unknown.
    if (database_.db->PauseBackgroundWork().ok()) (void)database_.db->ContinueBackgroundWork();
    database_.filter->WaitUntilCounted();
    database_.filter->WaitUntilReconciled();
    for (auto* handles : {&database_.fixed, &database_.temporary}) {
      for (ColumnFamilyHandle* handle : *handles)
        questions_.AskAll(handle, nullptr, "who looks at the end");
    }
    if (database_.config.has_model) questions_.AskWholeModel();
    const TreeFilter::Figures figures = database_.filter->tree().figures();
    if (database_.config.loses_files) return;
    bool is_exact = database_.filter->tree().IsExact() && figures.filter.missed == 0;
    if (!is_exact) {
      std::fprintf(stderr, "INEXACT %s: %llu missed removals, %llu stale copies\n",
                   database_.config.Text().c_str(),
                   static_cast<unsigned long long>(figures.filter.missed),
                   static_cast<unsigned long long>(figures.stale));
    }
    is_exact = HaveKeyFilesAllKeys() && is_exact;
    ++(is_exact ? database_.counts.exact : database_.counts.inexact);
  }

  // The filter was compared with the contents of the SST files; a key of which a file holds nothing
  // but a tombstone cannot be read back.
  bool HaveKeyFilesAllKeys() {
    std::vector<rocksdb::LiveFileMetaData> files;
    database_.db->GetLiveFilesMetaData(&files);
    for (const rocksdb::LiveFileMetaData& file : files) {
      uint32_t family = 0;
      bool is_known = false;
      for (const auto* handles : {&database_.fixed, &database_.temporary}) {
        for (ColumnFamilyHandle* handle : *handles) {
          if (handle->GetName() != file.column_family_name) continue;
          family = handle->GetID();
          is_known = database_.filter->BypassReasonsOf(handle).empty();
        }
      }
      const auto keys =
          KeyFile::Open(database_.db->GetEnv()->GetFileSystem().get(),
                        database_.keys_path + "/" + std::to_string(file.file_number) + ".keys");
      if (!is_known) continue;
      std::vector<uint64_t> hashes;
      std::vector<uint64_t> read;
      const bool is_read = ReadSst(database_.db->GetEnv(), file.db_path + file.name, [&](auto key) {
                             read.push_back(database_.filter->tree().HashOf(family, key));
                           }).ok();
      if (!is_read) continue;
      if (!keys.ok() || !keys->Append(0, KeyFile::kSections, &hashes).ok()) {
        std::fprintf(stderr, "file %s has no key file\n", file.name.c_str());
        return false;
      }
      std::ranges::sort(read);
      read.erase(std::unique(read.begin(), read.end()), read.end());
      if (!std::ranges::includes(hashes, read) ||
          hashes.size() > read.size() + file.num_deletions) {
        std::fprintf(stderr, "file %s: %zu hashes for %zu keys and %llu tombstones\n",
                     file.name.c_str(), hashes.size(), read.size(),
                     static_cast<unsigned long long>(file.num_deletions));
        return false;
      }
    }
    return true;
  }

  OracleDatabase database_;
  OracleQuestions questions_{&database_};
  OracleWriter writer_{&database_, &questions_};
  OracleMishaps mishaps_{&database_, &questions_};
  FlushWindow window_{&database_};
  std::atomic<bool> stops_{false};
};

}  // namespace

bool RunLife(const OracleConfig& config, uint64_t life, double seconds, OracleCounts* counts) {
  return Life(config, life, counts).Run(seconds);
}

}  // namespace tamis::lsm
