#include "tests/lsm/oracle_life.h"

#include <rocksdb/convenience.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/universal_compaction.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/utilities/transaction_db.h>
#include <rocksdb/wide_columns.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <list>
#include <thread>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/lsm/filtered_db.h"
#include "tamis/lsm/key_file.h"
#include "tamis/lsm/sst_keys.h"
#include "tests/lsm/faulty_file_system.h"

namespace tamis::lsm {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::Status;
using Kind = OracleConfig::Kind;
using Style = OracleConfig::Style;

constexpr uint32_t kKeys = 4000;
constexpr int kWriters = 2;
const std::vector<std::string> kFamilies = {rocksdb::kDefaultColumnFamilyName, "a", "b"};

class LastOperand : public rocksdb::MergeOperator {
 public:
  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override {
    // GetEntity merges into what it has read, without an operand.
    if (!in.operand_list.empty()) out->new_value = in.operand_list.back().ToString();
    if (in.operand_list.empty() && in.existing_value)
      out->new_value = in.existing_value->ToString();
    return true;
  }
  bool PartialMergeMulti(const Slice&, const std::deque<Slice>& operands, std::string* value,
                         rocksdb::Logger*) const override {
    *value = operands.back().ToString();
    return true;
  }
  const char* Name() const override { return "LastOperand"; }
};

// Compactions by what could be another machine: no event tells of what they write.
class OtherMachine : public rocksdb::CompactionService {
 public:
  explicit OtherMachine(std::string path) : path_(std::move(path)) {}
  const char* Name() const override { return "OtherMachine"; }
  rocksdb::CompactionServiceJobStatus StartV2(const rocksdb::CompactionServiceJobInfo& info,
                                              const std::string& input) override {
    const std::lock_guard lock(mutex_);
    inputs_[info.job_id] = input;
    return rocksdb::CompactionServiceJobStatus::kSuccess;
  }
  rocksdb::CompactionServiceJobStatus WaitForCompleteV2(
      const rocksdb::CompactionServiceJobInfo& info, std::string* result) override {
    std::string input;
    {
      const std::lock_guard lock(mutex_);
      input = std::move(inputs_[info.job_id]);
      inputs_.erase(info.job_id);
    }
    rocksdb::CompactionServiceOptionsOverride options;
    options.merge_operator = std::make_shared<LastOperand>();
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory());
    const std::string output = path_ + "/" + std::to_string(next_.fetch_add(1));
    const Status status = rocksdb::DB::OpenAndCompact(info.db_name, output, input, result, options);
    return status.ok() ? rocksdb::CompactionServiceJobStatus::kSuccess
                       : rocksdb::CompactionServiceJobStatus::kFailure;
  }

 private:
  const std::string path_;
  std::mutex mutex_;
  std::map<uint64_t, std::string> inputs_;
  std::atomic<uint64_t> next_{0};
};

std::string Numbered(char kind, uint64_t i) {
  char text[24];
  std::snprintf(text, sizeof text, "%c%05u", kind, static_cast<uint32_t>(i));
  return text;
}

class Life {
 public:
  Life(const OracleConfig& config, uint64_t life, OracleCounts* counts)
      : config_(config),
        seed_(config.seed * 1000 + life),
        counts_(*counts),
        path_(config.directory + "/db"),
        keys_path_(path_ + "/tamis.keys"),
        random_(seed_),
        drops_files_(config.style == Style::kFifo || config.seed % 3 == 0) {}
  ~Life() { Close(); }

  bool Run(double seconds) {
    if (!Open()) return false;
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
    std::vector<std::thread> threads;
    for (int i = 0; i < kWriters; ++i) threads.emplace_back([this, i] { Write(i); });
    threads.emplace_back([this] { ReadAlong(); });
    threads.emplace_back([this] { FlushWhereWanted(); });
    while (std::chrono::steady_clock::now() < end && counts_.missed == 0) Disturb();
    stops_ = true;
    for (std::thread& thread : threads) thread.join();
    if (!config_.fault.empty()) return counts_.missed == 0;
    Finish();
    return counts_.missed == 0 && counts_.different == 0 && counts_.inexact == 0;
  }

 private:
  // --- opening and closing ---------------------------------------------------------------------

  rocksdb::Options MakeOptions() {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    options.write_buffer_size = 48 << 10;
    options.max_write_buffer_number = 4;
    options.target_file_size_base = 32 << 10;
    options.max_bytes_for_level_base = 96 << 10;
    options.max_bytes_for_level_multiplier = 4;
    options.level0_file_num_compaction_trigger = 3;
    options.level0_slowdown_writes_trigger = 200;
    options.level0_stop_writes_trigger = 400;
    options.max_background_jobs = 3;
    options.max_subcompactions = 2;
    options.compression = rocksdb::kNoCompression;
    options.merge_operator = std::make_shared<LastOperand>();
    // Without persist_stats_to_disk, which stock RocksDB does not bear: at its closing it frees the
    // family of the statistics first, and then deletes the file that its manifest names for it; and
    // killed while it makes that family it may not open again.
    if (config_.style == Style::kUniversal) {
      options.compaction_style = rocksdb::kCompactionStyleUniversal;
    }
    if (config_.style == Style::kFifo) {
      options.compaction_style = rocksdb::kCompactionStyleFIFO;
      options.compaction_options_fifo.max_table_files_size = 256 << 10;
      options.max_background_compactions = 1;  // two of them may choose the same file
      options.max_background_flushes = 1;
    }
    if (config_.style == Style::kRemote) {
      std::filesystem::create_directories(config_.directory + "/remote");
      options.compaction_service = std::make_shared<OtherMachine>(config_.directory + "/remote");
    }
    if (config_.disk_fails) {
      disk_ = std::make_shared<FaultyFileSystem>();
      env_ = rocksdb::NewCompositeEnv(disk_);
      options.env = env_.get();
    }
    return options;
  }

  bool Open() {
    options_ = MakeOptions();
    Faults faults;
    for (const auto& [name, fault] : kFaults) faults.*fault = name == config_.fault;
    faults.between_questions = [this] { FlushBetweenQuestions(); };
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    std::vector<std::string> names;
    if (!rocksdb::DB::ListColumnFamilies(options_, path_, &names).ok()) names = kFamilies;
    for (const std::string& name : kFamilies) {
      families.emplace_back(name, options_);
      families.back().options.enable_blob_files = config_.blobs && name == "b";
      families.back().options.min_blob_size = 40;
      families.back().options.enable_blob_garbage_collection = true;
    }
    for (const std::string& name : names) {
      if (name[0] == 't') families.emplace_back(name, options_);
    }
    filter_ = *DatabaseFilter::Create({.directory = keys_path_, .faults = faults});
    rocksdb::DBOptions db_options(options_);
    filter_->Attach(&db_options, &families);
    std::vector<ColumnFamilyHandle*> handles;
    rocksdb::DB* opened = nullptr;
    Status status;
    if (config_.kind == Kind::kPlain) {
      status = rocksdb::DB::Open(db_options, path_, families, &handles, &opened);
    } else {
      rocksdb::TransactionDBOptions transactions;
      transactions.write_policy = config_.kind == Kind::kCommitted  ? rocksdb::WRITE_COMMITTED
                                  : config_.kind == Kind::kPrepared ? rocksdb::WRITE_PREPARED
                                                                    : rocksdb::WRITE_UNPREPARED;
      transactions.default_lock_timeout = 50;
      status = rocksdb::TransactionDB::Open(db_options, transactions, path_, families, &handles,
                                            &transactions_);
      opened = transactions_;
    }
    if (!status.ok()) {
      std::fprintf(stderr, "cannot open: %s\n", status.ToString().c_str());
      return false;
    }
    db_ = std::make_unique<FilteredDB>(opened, filter_, handles);
    base_ = opened;
    for (size_t i = 0; i < handles.size(); ++i) {
      (i < kFamilies.size() ? fixed_ : temporary_).push_back(handles[i]);
    }
    if (transactions_ != nullptr) {
      std::vector<rocksdb::Transaction*> prepared;
      transactions_->GetAllPreparedTransactions(&prepared);
      for (rocksdb::Transaction* transaction : prepared) {
        (void)(random_.OneIn(2) ? transaction->Commit() : transaction->Rollback());
        delete transaction;
      }
    }
    ++counts_.lives;
    return true;
  }

  void Close() {
    if (db_ == nullptr) return;
    for (auto* handles : {&fixed_, &temporary_}) {
      for (ColumnFamilyHandle* handle : *handles) (void)db_->DestroyColumnFamilyHandle(handle);
    }
    filter_->Stop();
    // Whose assertions do not bear transactions that are prepared and not decided; and which,
    // closed while it recovers from a fault by itself, may come to no end (RocksDB's issue 11440).
    const bool is_undecided = config_.kind == Kind::kPrepared || config_.kind == Kind::kUnprepared;
    if (is_undecided || config_.disk_fails) {
      (void)db_.release();
      (void)env_.release();
    }
    db_.reset();
  }

  // --- what is asked ---------------------------------------------------------------------------

  void Missed(ColumnFamilyHandle* family, const std::string& key, const char* how) {
    if (counts_.missed.fetch_add(1) < 5) {
      std::fprintf(stderr, "MISSED %s: key \"%s\" of family \"%s\" is there, by %s\n",
                   config_.Text().c_str(), key.c_str(), family->GetName().c_str(), how);
    }
  }
  void Different(const std::string& key, const char* how, const Status& ours, const Status& base) {
    if (counts_.different.fetch_add(1) < 5) {
      std::fprintf(stderr, "DIFFERENT %s: key \"%s\", by %s: %s, the base says %s\n",
                   config_.Text().c_str(), key.c_str(), how, ours.ToString().c_str(),
                   base.ToString().c_str());
    }
  }

  // REQUIRES: nobody else writes the key, or the snapshot is held since before.
  void Ask(ColumnFamilyHandle* family, const std::string& key, const char* how,
           const rocksdb::Snapshot* snapshot = nullptr) {
    const bool may = filter_->MayContain(family, key);
    ++counts_.checks;
    if (may) return;
    ++counts_.denied;
    rocksdb::ReadOptions read;
    read.snapshot = snapshot;
    std::string value;
    if (base_->Get(read, family, key, &value).ok()) Missed(family, key, how);
  }

  // Each key that is there. REQUIRES: nobody else writes the family, or a snapshot.
  void AskAll(ColumnFamilyHandle* family, const rocksdb::Snapshot* snapshot, const char* how) {
    rocksdb::ReadOptions read;
    read.snapshot = snapshot;
    const std::unique_ptr<rocksdb::Iterator> keys(base_->NewIterator(read, family));
    for (keys->SeekToFirst(); keys->Valid(); keys->Next()) {
      ++counts_.checks;
      if (!filter_->MayContain(family, keys->key())) Missed(family, keys->key().ToString(), how);
    }
  }

  static std::string RandomKey(Random* random) {
    static constexpr char kKinds[] = "kkkkizzse";
    const char kind = kKinds[random->Uniform(sizeof kKinds - 1)];
    return Numbered(kind, random->Uniform(kind == 'z' ? 90000 : kKeys));
  }

  enum How { kGet, kGetString, kGetEntity, kMayExist, kMultiGet, kOfFamily, kOfFamilies, kHows };

  struct Batch {
    How how;
    std::vector<std::string> texts;
    std::vector<Slice> keys;
    std::vector<ColumnFamilyHandle*> families;
  };
  struct Answers {
    std::vector<Status> statuses;
    std::vector<std::string> values;
  };

  static Answers Read(rocksdb::DB* db, const rocksdb::ReadOptions& read, Batch& batch) {
    const size_t count = batch.keys.size();
    Answers answers{std::vector<Status>(count), std::vector<std::string>(count)};
    std::vector<rocksdb::PinnableSlice> found(count);
    switch (batch.how) {
      case kGet:
        answers.statuses[0] = db->Get(read, batch.families[0], batch.keys[0], &found[0]);
        break;
      case kGetString:
        answers.statuses[0] = db->Get(read, batch.families[0], batch.keys[0], &answers.values[0]);
        break;
      case kGetEntity: {
        rocksdb::PinnableWideColumns columns;
        answers.statuses[0] = db->GetEntity(read, batch.families[0], batch.keys[0], &columns);
        for (const auto& column : columns.columns()) {
          answers.values[0] += column.value().ToString() + ",";
        }
        break;
      }
      case kMayExist: {  // with false positives, of which the base has others than we
        std::string value;
        if (!db->KeyMayExist(read, batch.families[0], batch.keys[0], &value)) {
          answers.statuses[0] = Status::NotFound();
        } else {
          answers.statuses[0] = db->Get(read, batch.families[0], batch.keys[0], &found[0]);
        }
        break;
      }
      case kMultiGet:
        answers.statuses = db->MultiGet(read, batch.families, batch.keys, &answers.values);
        break;
      case kOfFamily:
        db->MultiGet(read, batch.families[0], count, batch.keys.data(), found.data(),
                     answers.statuses.data());
        break;
      case kOfFamilies:
      case kHows:
        db->MultiGet(read, count, batch.families.data(), batch.keys.data(), found.data(),
                     answers.statuses.data());
        break;
    }
    for (size_t i = 0; i < count; ++i) {
      if (answers.values[i].empty()) answers.values[i] = found[i].ToString();
    }
    return answers;
  }

  void Compare(Random* random, const rocksdb::Snapshot* snapshot) {
    static constexpr const char* kHow[] = {
        "Get",      "Get into a string",    "GetEntity",           "KeyMayExist",
        "MultiGet", "MultiGet of a family", "MultiGet of families"};
    rocksdb::ReadOptions read;
    read.snapshot = snapshot;
    Batch batch{.how = static_cast<How>(random->Uniform(kHows))};
    const size_t count = batch.how < kMultiGet ? 1 : 1 + random->Uniform(40);
    ColumnFamilyHandle* family = fixed_[random->Uniform(fixed_.size())];
    // Nor do this and the next one bear blobs.
    const bool is_limited = batch.how == kGetEntity || batch.how == kMayExist;
    if (is_limited && config_.blobs) family = fixed_[0];
    for (size_t i = 0; i < count; ++i) {
      batch.texts.push_back(RandomKey(random));
      // Stock GetEntity crashes where it has to merge.
      if (batch.how == kGetEntity && batch.texts[i][0] == 'k') batch.texts[i][0] = 'e';
      if (batch.how != kOfFamily && !is_limited) family = fixed_[random->Uniform(fixed_.size())];
      batch.families.push_back(family);
    }
    batch.keys.assign(batch.texts.begin(), batch.texts.end());
    const Answers ours = Read(db_.get(), read, batch);
    const Answers base = Read(base_, read, batch);
    counts_.checks += count;
    for (size_t i = 0; i < count; ++i) {
      const Status& status = ours.statuses[i];
      if (status.IsNotFound()) {
        counts_.denied += !base.statuses[i].ok();
        if (base.statuses[i].ok()) Missed(batch.families[i], batch.texts[i], kHow[batch.how]);
      } else if (status.ok() && !(base.statuses[i].IsNotFound() && drops_files_)) {
        if (!base.statuses[i].ok() || ours.values[i] != base.values[i]) {
          Different(batch.texts[i], kHow[batch.how], status, base.statuses[i]);
        }
      }
    }
  }

  struct Held {
    const rocksdb::Snapshot* snapshot;
    std::unique_ptr<rocksdb::Iterator> keys;
    ColumnFamilyHandle* family;
    uint64_t turns;
  };

  void ReadAlong() {
    Random random(seed_ * 7 + 1);
    std::list<Held> held;
    const auto let_go = [&](std::list<Held>::iterator at) {
      at->keys.reset();
      base_->ReleaseSnapshot(at->snapshot);
      return held.erase(at);
    };
    if (config_.fault.empty()) filter_->WaitUntilCounted();
    while (!stops_) {
      if (held.size() < 4 && random.OneIn(20)) {
        Held one{base_->GetSnapshot(), nullptr, fixed_[random.Uniform(fixed_.size())],
                 random.Uniform(2000)};
        rocksdb::ReadOptions read;
        read.snapshot = one.snapshot;
        one.keys.reset(base_->NewIterator(read, one.family));
        one.keys->SeekToFirst();
        held.push_back(std::move(one));
        ++counts_.snapshots;
        ++counts_.iterators;
      }
      const rocksdb::Snapshot* const fresh = base_->GetSnapshot();
      for (int i = 0; i < 8; ++i) Compare(&random, fresh);
      base_->ReleaseSnapshot(fresh);
      for (auto at = held.begin(); at != held.end();) {
        Compare(&random, at->snapshot);
        for (int i = 0; i < 5 && at->keys->Valid() && !drops_files_; ++i, at->keys->Next()) {
          ++counts_.checks;
          if (!filter_->MayContain(at->family, at->keys->key())) {
            Missed(at->family, at->keys->key().ToString(), "an iterator");
          }
        }
        at = at->turns-- == 0 ? let_go(at) : std::next(at);
      }
    }
    while (!held.empty()) let_go(held.begin());
  }

  // Threads that run freely hardly ever meet between a reader's two questions. Another one flushes:
  // who holds a guard may not wait for what may be waiting for its end.
  void FlushBetweenQuestions() {
    if (!std::exchange(opens_window_, false)) return;
    const uint64_t before = flushed_between_;
    wants_flush_ = true;
    for (int i = 0; i < 500 && flushed_between_ == before && !stops_; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  void FlushWhereWanted() {
    while (!stops_) {
      if (wants_flush_.exchange(false)) {
        for (ColumnFamilyHandle* family : fixed_) (void)base_->Flush({}, family);
        ++flushed_between_;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // --- what is written -------------------------------------------------------------------------

  void Write(int thread) {
    Random random(seed_ * 7 + 2 + static_cast<uint64_t>(thread));
    std::list<std::pair<ColumnFamilyHandle*, std::string>> once;  // keys that were put once
    uint64_t next_once = random.Uniform(kKeys);
    while (!stops_) {
      rocksdb::WriteOptions write;
      write.disableWAL = !config_.logs;
      rocksdb::WriteBatch batch;
      std::unique_ptr<rocksdb::Transaction> transaction;
      if (transactions_ != nullptr && random.OneIn(2)) {
        rocksdb::TransactionOptions options;
        transaction.reset(transactions_->BeginTransaction(write, options));
      }
      rocksdb::WriteBatchBase* const to_batch = transaction == nullptr ? &batch : nullptr;
      std::vector<std::pair<ColumnFamilyHandle*, std::string>> written;
      for (uint64_t i = 1 + random.Uniform(20); i > 0; --i) {
        ColumnFamilyHandle* const family = fixed_[random.Uniform(fixed_.size())];
        const uint64_t number = random.Uniform(kKeys / kWriters) * kWriters + thread;
        const std::string key = Numbered('k', number);
        const std::string value(random.Uniform(80), static_cast<char>('a' + random.Uniform(26)));
        switch (random.Uniform(12)) {
          case 0:
          case 1:
          case 2:
            transaction ? transaction->Delete(family, key) : to_batch->Delete(family, key);
            break;
          case 3:
            transaction ? transaction->Merge(family, key, value)
                        : to_batch->Merge(family, key, value);
            break;
          case 4:
            if (config_.kind == Kind::kPlain && !config_.disk_fails && random.OneIn(20)) {
              batch.DeleteRange(family, key, Numbered('k', number + 1 + random.Uniform(30)));
            }
            break;
          case 5:
            if (config_.kind == Kind::kPlain && !config_.blobs) {
              batch.PutEntity(family, Numbered('e', number),
                              rocksdb::WideColumns{{"a", value}, {"b", value}});
            }
            break;
          case 6: {
            const std::string single =
                Numbered('s', next_once++ % 40000 * kWriters + static_cast<uint64_t>(thread));
            transaction ? transaction->Put(family, single, value)
                        : to_batch->Put(family, single, value);
            once.emplace_back(family, single);
            written.push_back(once.back());
            break;
          }
          case 7:
            if (once.size() > 200) {
              const auto& [of, single] = once.front();
              transaction ? transaction->SingleDelete(of, single)
                          : to_batch->SingleDelete(of, single);
              once.pop_front();
            }
            break;
          default:
            transaction ? transaction->Put(family, key, value) : to_batch->Put(family, key, value);
            written.emplace_back(family, key);
        }
      }
      if (transaction != nullptr) {
        ++counts_.transactions;
        if (config_.kind != Kind::kUnprepared && random.OneIn(3)) {
          (void)transaction->SetName(std::to_string(seed_) + "." + std::to_string(thread) + "." +
                                     std::to_string(next_name_++));
          if (transaction->Prepare().ok() && random.OneIn(4)) {
            std::this_thread::sleep_for(std::chrono::milliseconds(random.Uniform(20)));
          }
        }
        if (random.OneIn(8) || !transaction->Commit().ok()) (void)transaction->Rollback();
      } else {
        (void)db_->Write(write, &batch);
      }
      ++counts_.writes;
      // Who changes a level waits until no flush is due.
      if (random.OneIn(2)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      // A range that the other one deletes, and what is dropped with its file, is gone before or
      // after both questions.
      for (const auto& [family, key] : written) {
        opens_window_ = key[0] == 's' && random.OneIn(50);  // it is in a memtable only
        Ask(family, key, "who wrote it");
      }
    }
  }

  // --- what else happens -----------------------------------------------------------------------

  ColumnFamilyHandle* AnyFamily() { return fixed_[random_.Uniform(fixed_.size())]; }

  void Disturb() {
    const uint64_t choice = random_.Uniform(100);
    // Universal compactions of ingested files that are newer than a memtable which is being flushed
    // fail RocksDB's own check, after which nothing is ever installed again.
    const bool may_ingest = (config_.kind == Kind::kPlain || config_.kind == Kind::kCommitted) &&
                            config_.style != Style::kUniversal;
    if (choice < 18) {
      ++counts_.flushes;
      (void)db_->Flush({}, AnyFamily());
    } else if (choice < 25) {
      if (config_.style != Style::kFifo) CompactRange();
    } else if (choice < 40) {
      if (config_.style != Style::kFifo) CompactFiles();
    } else if (choice < 52) {
      if (may_ingest) Ingest();
    } else if (choice < 55) {
      Import();
    } else if (choice < 60) {
      ChangeFamilies();
    } else if (choice < 64) {
      if (drops_files_ && config_.style != Style::kFifo) DropFiles();
    } else if (choice < 68) {
      if (std::exchange(keeps_files_, !keeps_files_)) {
        (void)db_->EnableFileDeletions(false);
      } else {
        (void)db_->DisableFileDeletions();
      }
    } else if (choice < 71) {
      (void)db_->SetOptions(AnyFamily(),
                            {{"disable_auto_compactions", random_.OneIn(4) ? "true" : "false"}});
    } else if (choice < 75) {
      if (config_.loses_files) LoseKeyFile();
    } else if (choice < 78) {
      if (config_.disk_fails) FailDisk();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(random_.Uniform(30)));
    }
  }

  void CompactRange() {
    rocksdb::CompactRangeOptions options;
    options.exclusive_manual_compaction = random_.OneIn(2);
    options.max_subcompactions = static_cast<uint32_t>(random_.Uniform(4));
    if (random_.OneIn(8)) {
      options.change_level = true;
      // Files that are moved to level 0 together may fail RocksDB's own check, after which nothing
      // is ever installed again.
      options.target_level = 1 + static_cast<int>(random_.Uniform(5));
    }
    if (random_.OneIn(2)) {
      options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    }
    const std::string from = Numbered('k', random_.Uniform(kKeys));
    const std::string to = Numbered('k', random_.Uniform(kKeys));
    const Slice begin = from;
    const Slice end = to;
    const bool is_whole = random_.OneIn(2);
    ++counts_.compactions;
    (void)db_->CompactRange(options, AnyFamily(), is_whole ? nullptr : &begin,
                            is_whole || from >= to ? nullptr : &end);
  }

  void CompactFiles() {
    ColumnFamilyHandle* const family = AnyFamily();
    rocksdb::ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(family, &metadata);
    std::vector<std::string> names;
    int deepest = 0;
    for (const auto& level : metadata.levels) {
      for (const auto& file : level.files) {
        if (!random_.OneIn(3) || names.size() > 3) continue;
        names.push_back(file.name);
        deepest = level.level;
      }
    }
    if (names.empty()) return;
    const int to = std::min(6, deepest + static_cast<int>(random_.Uniform(3)));
    if (db_->CompactFiles(rocksdb::CompactionOptions(), family, names, to).ok()) {
      ++counts_.files_compacted;
    }
  }

  std::string MakeSst(char kind, std::vector<std::string>* keys) {
    const std::string path = config_.directory + "/in" + std::to_string(next_name_++) + ".sst";
    rocksdb::Options options;
    options.merge_operator = options_.merge_operator;
    rocksdb::SstFileWriter writer({}, options);
    if (!writer.Open(path).ok()) return path;
    for (uint64_t i = random_.Uniform(kKeys); i < kKeys && keys->size() < 60;
         i += 1 + random_.Uniform(4)) {
      keys->push_back(Numbered(kind, i));
      (void)(random_.OneIn(5) ? writer.Delete(keys->back()) : writer.Put(keys->back(), "ingested"));
    }
    (void)writer.Finish();
    return path;
  }

  void Ingest() {
    const bool is_behind = random_.OneIn(6);
    std::vector<std::string> keys;
    const std::string path = MakeSst(is_behind ? 'u' : 'i', &keys);
    rocksdb::IngestExternalFileOptions options;
    options.move_files = random_.OneIn(2);
    options.failed_move_fall_back_to_copy = true;
    ++counts_.ingestions;
    if (is_behind) {
      // Missed until it is counted: these keys are asked for at the end.
      (void)base_->IngestExternalFile(AnyFamily(), {path}, options);
    } else if (random_.OneIn(3)) {
      rocksdb::IngestExternalFileArg into[2];
      for (int i = 0; i < 2; ++i) {
        into[i].column_family = fixed_[static_cast<size_t>(i)];
        into[i].external_files = {path};
        into[i].options = options;
        into[i].options.move_files = false;
      }
      (void)db_->IngestExternalFiles({into[0], into[1]});
      for (const std::string& key : keys) Ask(fixed_[random_.Uniform(2)], key, "who ingested it");
    } else {
      ColumnFamilyHandle* const family = AnyFamily();
      (void)db_->IngestExternalFile(family, {path}, options);
      for (const std::string& key : keys) Ask(family, key, "who ingested it");
    }
    std::error_code error;
    std::filesystem::remove(path, error);
  }

  void Import() {
    rocksdb::Checkpoint* made = nullptr;
    if (!rocksdb::Checkpoint::Create(base_, &made).ok()) return;
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
    const std::string exported = config_.directory + "/export";
    std::error_code error;
    std::filesystem::remove_all(exported, error);
    const rocksdb::Snapshot* const snapshot = random_.OneIn(2) ? base_->GetSnapshot() : nullptr;
    rocksdb::ExportImportFilesMetaData* metadata = nullptr;
    ColumnFamilyHandle* handle = nullptr;
    if (checkpoint->ExportColumnFamily(fixed_[1], exported, &metadata).ok()) {
      const bool is_behind = random_.OneIn(3);
      rocksdb::ColumnFamilyOptions options = options_;
      if (is_behind) filter_->Attach(&options);
      rocksdb::DB* const into = is_behind ? base_ : db_.get();
      const Status status = into->CreateColumnFamilyWithImport(
          options, NewName(), rocksdb::ImportColumnFamilyOptions(), *metadata, &handle);
      if (status.ok()) {
        ++counts_.imports;
        if (is_behind && random_.OneIn(2) && config_.style != Style::kFifo) {
          (void)into->CompactRange({}, handle, nullptr, nullptr);
        }
        if (is_behind) filter_->Show(handle);
        AskAll(handle, nullptr, "who imported it");
        if (snapshot != nullptr) AskAll(handle, snapshot, "a snapshot from before the import");
        filter_->WaitUntilCounted();
        if (random_.OneIn(2)) WaitUntilCounted(handle);
        AskAll(handle, nullptr, "who imported it before");
        if (snapshot != nullptr) AskAll(handle, snapshot, "a snapshot from before the import");
        temporary_.push_back(handle);
      }
    }
    delete metadata;
    if (snapshot != nullptr) base_->ReleaseSnapshot(snapshot);
    std::filesystem::remove_all(exported, error);
  }

  // Gives up when something else keeps it in doubt.
  void WaitUntilCounted(ColumnFamilyHandle* handle) {
    for (int i = 0; i < 100 && !filter_->DoubtsOf(handle).empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  std::string NewName() { return "t" + std::to_string(random_.Uniform(6)); }

  void ChangeFamilies() {
    ++counts_.families;
    if (temporary_.size() > 2 || (!temporary_.empty() && random_.OneIn(2))) {
      ColumnFamilyHandle* const handle = temporary_.front();
      temporary_.erase(temporary_.begin());
      if (handle->GetName()[0] == 't') {
        (void)db_->DropColumnFamily(handle);
        AskAll(handle, nullptr, "who dropped it");
      }
      (void)db_->DestroyColumnFamilyHandle(handle);
      return;
    }
    const bool is_behind = random_.OneIn(3);
    rocksdb::ColumnFamilyOptions options = options_;
    ColumnFamilyHandle* handle = nullptr;
    if (is_behind && random_.OneIn(2)) filter_->Attach(&options);
    rocksdb::DB* const into = is_behind ? base_ : db_.get();
    if (!into->CreateColumnFamily(options, NewName(), &handle).ok()) return;
    rocksdb::WriteOptions write;
    write.disableWAL = !config_.logs;
    for (int i = 0; i < 50; ++i) {
      (void)db_->Put(write, handle, Numbered('k', random_.Uniform(kKeys)), "v");
    }
    if (random_.OneIn(2)) (void)db_->Flush({}, handle);
    AskAll(handle, nullptr, "who made it");
    if (is_behind) filter_->Show(handle);
    AskAll(handle, nullptr, "who showed it");
    temporary_.push_back(handle);
  }

  void DropFiles() {
    const uint64_t first = random_.Uniform(kKeys);
    const std::string from = Numbered('k', first);
    const std::string to = Numbered('k', first + 500);
    const Slice begin = from;
    const Slice end = to;
    ++counts_.files_dropped;
    (void)rocksdb::DeleteFilesInRange(base_, AnyFamily(), &begin, &end);
  }

  void LoseKeyFile() {
    std::vector<std::filesystem::path> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(keys_path_, error)) {
      files.push_back(entry.path());
    }
    if (files.empty()) return;
    ++counts_.lost_key_files;
    const auto& path = files[random_.Uniform(files.size())];
    switch (random_.Uniform(4)) {
      case 0:
        std::filesystem::remove(path, error);
        break;
      case 1:
        std::filesystem::rename(path, files[random_.Uniform(files.size())], error);
        break;
      case 2:
        std::filesystem::resize_file(path, random_.Uniform(5000), error);
        break;
      default: {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(random_.Uniform(4000)));
        file.put(static_cast<char>(random_()));
      }
    }
  }

  void FailDisk() {
    using Mood = FaultyFileSystem::Mood;
    ++counts_.disk_faults;
    disk_->SetMood(random_.OneIn(2) ? Mood::kFull : Mood::kFailing);
    (void)db_->Flush({}, AnyFamily());
    std::this_thread::sleep_for(std::chrono::milliseconds(random_.Uniform(50)));
    disk_->SetMood(Mood::kWell);
    for (int i = 0; i < 50 && !db_->Resume().ok(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  // --- the end ---------------------------------------------------------------------------------

  void Finish() {
    (void)db_->EnableFileDeletions(true);
    for (ColumnFamilyHandle* family : fixed_) {
      (void)db_->SetOptions(family, {{"disable_auto_compactions", "true"}});
    }
    filter_->WaitUntilCounted();
    filter_->WaitUntilSettled();
    for (auto* handles : {&fixed_, &temporary_}) {
      for (ColumnFamilyHandle* handle : *handles) AskAll(handle, nullptr, "who looks at the end");
    }
    const TreeFilter::Figures figures = filter_->tree().figures();
    if (config_.loses_files) return;
    bool is_exact = filter_->tree().IsExact() && figures.filter.missed == 0;
    if (!is_exact) {
      std::fprintf(stderr, "INEXACT %s: %llu missed removals, %llu stale copies\n",
                   config_.Text().c_str(), static_cast<unsigned long long>(figures.filter.missed),
                   static_cast<unsigned long long>(figures.stale));
    }
    is_exact = HaveKeyFilesAllKeys() && is_exact;
    ++(is_exact ? counts_.exact : counts_.inexact);
  }

  // What the filter was compared with is what the SST files hold; a key of which one holds nothing
  // but a tombstone cannot be read back.
  bool HaveKeyFilesAllKeys() {
    std::vector<rocksdb::LiveFileMetaData> files;
    db_->GetLiveFilesMetaData(&files);
    for (const rocksdb::LiveFileMetaData& file : files) {
      uint32_t family = 0;
      bool is_known = false;
      for (const auto* handles : {&fixed_, &temporary_}) {
        for (ColumnFamilyHandle* handle : *handles) {
          if (handle->GetName() != file.column_family_name) continue;
          family = handle->GetID();
          is_known = filter_->DoubtsOf(handle).empty();
        }
      }
      const auto keys =
          KeyFile::Open(keys_path_ + "/" + std::to_string(file.file_number) + ".keys");
      if (!is_known) continue;
      std::vector<uint64_t> hashes;
      std::vector<uint64_t> read;
      const bool is_read = ReadSst(db_->GetEnv(), file.db_path + file.name, [&](auto key) {
                             read.push_back(filter_->tree().HashOf(family, key));
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

  static thread_local bool opens_window_;  // the next question is one to flush in

  const OracleConfig config_;
  const uint64_t seed_;
  OracleCounts& counts_;
  const std::string path_;
  const std::string keys_path_;
  Random random_;  // of who disturbs
  const bool drops_files_;
  std::shared_ptr<FaultyFileSystem> disk_;
  std::unique_ptr<rocksdb::Env> env_;
  rocksdb::Options options_;
  std::shared_ptr<DatabaseFilter> filter_;
  std::unique_ptr<FilteredDB> db_;
  rocksdb::DB* base_ = nullptr;
  rocksdb::TransactionDB* transactions_ = nullptr;
  std::vector<ColumnFamilyHandle*> fixed_;
  std::vector<ColumnFamilyHandle*> temporary_;  // of who disturbs
  bool keeps_files_ = false;
  std::atomic<uint64_t> next_name_{0};
  std::atomic<bool> wants_flush_{false};
  std::atomic<uint64_t> flushed_between_{0};
  std::atomic<bool> stops_{false};
};

thread_local bool Life::opens_window_ = false;

}  // namespace

OracleConfig ConfigOf(uint64_t seed) {
  static constexpr std::pair<Kind, Style> kShapes[] = {
      {Kind::kPlain, Style::kLevel},      {Kind::kPlain, Style::kUniversal},
      {Kind::kCommitted, Style::kLevel},  {Kind::kPlain, Style::kRemote},
      {Kind::kPrepared, Style::kLevel},   {Kind::kPlain, Style::kFifo},
      {Kind::kUnprepared, Style::kLevel}, {Kind::kPlain, Style::kLevel},
  };
  const auto& [kind, style] = kShapes[seed % std::size(kShapes)];
  const uint64_t turn = seed / std::size(kShapes);
  const bool is_plain = kind == Kind::kPlain && style != Style::kRemote;
  return {.seed = seed,
          .kind = kind,
          .style = style,
          .logs = kind == Kind::kPrepared || kind == Kind::kUnprepared || (seed + turn) % 3 != 0,
          .blobs = is_plain && (seed + turn) % 4 == 1,
          .disk_fails = is_plain && seed % std::size(kShapes) == 7,
          .loses_files = (seed + turn) % 2 == 1};
}

std::string OracleConfig::Text() const {
  static constexpr const char* kKinds[] = {
      "DB", "TransactionDB (committed)", "TransactionDB (prepared)", "TransactionDB (unprepared)"};
  static constexpr const char* kStyles[] = {"level", "universal", "fifo", "remote"};
  return "seed " + std::to_string(seed) + ": " + kKinds[static_cast<int>(kind)] + ", " +
         kStyles[static_cast<int>(style)] + (logs ? "" : ", no log") + (blobs ? ", blobs" : "") +
         (disk_fails ? ", failing disk" : "") + (loses_files ? ", key files get lost" : "") +
         (fault.empty() ? "" : ", fault " + fault);
}

bool RunLife(const OracleConfig& config, uint64_t life, double seconds, OracleCounts* counts) {
  return Life(config, life, counts).Run(seconds);
}

}  // namespace tamis::lsm
