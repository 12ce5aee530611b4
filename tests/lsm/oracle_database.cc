#include "tests/lsm/oracle_database.h"

#include <rocksdb/merge_operator.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/utilities/transaction.h>

#include <cstdio>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "tamis/lsm/rocksdb_version.h"
#include "tests/lsm/foreign_assertions.h"

namespace tamis::lsm {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::Status;
using Kind = OracleConfig::Kind;
using Style = OracleConfig::Style;
using Writes = OracleConfig::Writes;

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
#if TAMIS_ROCKSDB_SINCE(9, 1)
  rocksdb::CompactionServiceScheduleResponse Schedule(const rocksdb::CompactionServiceJobInfo& info,
                                                      const std::string& input) override {
    Note(info, input);
    return {std::to_string(info.job_id), rocksdb::CompactionServiceJobStatus::kSuccess};
  }
  rocksdb::CompactionServiceJobStatus Wait(const std::string& job, std::string* result) override {
    return Compact(std::stoull(job), result);
  }
#else
  rocksdb::CompactionServiceJobStatus StartV2(const rocksdb::CompactionServiceJobInfo& info,
                                              const std::string& input) override {
    Note(info, input);
    return rocksdb::CompactionServiceJobStatus::kSuccess;
  }
  rocksdb::CompactionServiceJobStatus WaitForCompleteV2(
      const rocksdb::CompactionServiceJobInfo& info, std::string* result) override {
    return Compact(info.job_id, result);
  }
#endif

 private:
  struct Job {
    std::string database;
    std::string input;
  };

  void Note(const rocksdb::CompactionServiceJobInfo& info, const std::string& input) {
    const std::lock_guard lock(mutex_);
    jobs_[info.job_id] = {info.db_name, input};
  }
  rocksdb::CompactionServiceJobStatus Compact(uint64_t id, std::string* result) {
    Job job;
    {
      const std::lock_guard lock(mutex_);
      job = std::move(jobs_[id]);
      jobs_.erase(id);
    }
    rocksdb::CompactionServiceOptionsOverride options;
    options.merge_operator = std::make_shared<LastOperand>();
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory());
    const std::string output = path_ + "/" + std::to_string(next_.fetch_add(1));
    const Status status =
        rocksdb::DB::OpenAndCompact(job.database, output, job.input, result, options);
    return status.ok() ? rocksdb::CompactionServiceJobStatus::kSuccess
                       : rocksdb::CompactionServiceJobStatus::kFailure;
  }

  const std::string path_;
  std::mutex mutex_;
  std::map<uint64_t, Job> jobs_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace

std::string OracleDatabase::Numbered(char kind, uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%c%05u", kind, static_cast<uint32_t>(number));
  return text;
}

OracleDatabase::OracleDatabase(const OracleConfig& config, uint64_t life, OracleCounts* counts)
    : config(config),
      seed(config.seed * 1000 + life),
      counts(*counts),
      path(config.directory + "/db"),
      keys_path(path + "/tamis.keys"),
      drops_files(!config.has_model && (config.style == Style::kFifo || config.seed % 3 == 0)),
      random(seed) {}

rocksdb::Options OracleDatabase::MakeOptions() {
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
  if (config.style == Style::kUniversal) {
    options.compaction_style = rocksdb::kCompactionStyleUniversal;
  }
  if (config.style == Style::kFifo) {
    options.compaction_style = rocksdb::kCompactionStyleFIFO;
    options.compaction_options_fifo.max_table_files_size = 256 << 10;
    options.max_background_compactions = 1;  // two of them may choose the same file
    options.max_background_flushes = 1;
  }
  if (config.style == Style::kRemote) {
    std::filesystem::create_directories(config.directory + "/remote");
    options.compaction_service = std::make_shared<OtherMachine>(config.directory + "/remote");
  }
  options.allow_concurrent_memtable_write = config.writes != Writes::kAlone;
  // Not beside range deletions, whose memtable would take the hints of the other one.
  if (config.hints) {
    options.memtable_insert_with_hint_prefix_extractor.reset(rocksdb::NewCappedPrefixTransform(2));
  }
  options.enable_pipelined_write = config.writes == Writes::kPipelined;
  options.unordered_write = config.writes == Writes::kUnordered;
  options.two_write_queues =
      config.writes == Writes::kTwoQueues || config.writes == Writes::kUnordered;
  options.atomic_flush = config.flushes_together;
  // Atomic flushes for several reasons at once fail an assertion of RocksDB.
  if (config.flushes_together) NoteFault();
  if (config.disk_fails) {
    disk = std::make_shared<FaultyFileSystem>();
    env = rocksdb::NewCompositeEnv(disk);
    options.env = env.get();
  }
  return options;
}

std::vector<std::string> OracleDatabase::FixedNames() const {
  std::vector<std::string> names = {rocksdb::kDefaultColumnFamilyName, "a", "b"};
  while (names.size() < static_cast<size_t>(config.families)) {
    names.push_back("more" + std::to_string(names.size()));
  }
  return names;
}

Status OracleDatabase::OpenBase(rocksdb::DBOptions db_options,
                                std::vector<rocksdb::ColumnFamilyDescriptor> families) {
  std::vector<ColumnFamilyHandle*> handles;
  std::vector<size_t> compacted;
  rocksdb::TransactionDBOptions kind;
  kind.default_lock_timeout = 50;
  // Keys that are put once are deleted by SingleDelete, also by a rollback.
  kind.rollback_deletion_type_callback = [](rocksdb::TransactionDB*, ColumnFamilyHandle*,
                                            const Slice& key) { return key[0] == 's'; };
  Status status;
  kind.write_policy = config.kind == Kind::kPrepared     ? rocksdb::WRITE_PREPARED
                      : config.kind == Kind::kUnprepared ? rocksdb::WRITE_UNPREPARED
                                                         : rocksdb::WRITE_COMMITTED;
  if (config.wraps_filter) {
    rocksdb::TransactionDB::PrepareWrap(&db_options, &families, &compacted);
  }
  if (config.kind == Kind::kPlain || config.wraps_filter) {
    std::unique_ptr<rocksdb::DB> opened;
    status = OpenDatabase(&opened, db_options, path, families, &handles);
    base = opened.release();
  } else if (config.kind == Kind::kOptimistic) {
    status =
        rocksdb::OptimisticTransactionDB::Open(db_options, path, families, &handles, &optimistic);
    base = optimistic;
  } else {
    status =
        rocksdb::TransactionDB::Open(db_options, kind, path, families, &handles, &transactions);
    base = transactions;
  }
  if (!status.ok()) return status;
  auto filtered = std::make_unique<FilteredDB>(base, filter, handles);
  for (ColumnFamilyHandle* handle : handles) {
    const size_t place = fixed.size();
    (place < FixedNames().size() ? fixed : temporary).push_back(handle);
  }
  if (!config.wraps_filter) {
    db = std::move(filtered);
    return status;
  }
  status = rocksdb::TransactionDB::WrapStackableDB(filtered.release(), kind, compacted, handles,
                                                   &transactions);
  db.reset(transactions);
  return status;
}

std::unique_ptr<rocksdb::Transaction> OracleDatabase::BeginTransaction(
    const rocksdb::WriteOptions& write, uint64_t flush_threshold) {
  if (optimistic != nullptr) {
    return std::unique_ptr<rocksdb::Transaction>(optimistic->BeginTransaction(write));
  }
  if (transactions == nullptr) return nullptr;
  rocksdb::TransactionOptions options;
  if (config.kind == Kind::kUnprepared) {
    options.write_batch_flush_threshold = static_cast<int64_t>(flush_threshold);
  }
  return std::unique_ptr<rocksdb::Transaction>(transactions->BeginTransaction(write, options));
}

void OracleDatabase::DecideRecovered() {
  if (recovered.empty()) return;
  const auto at = recovered.begin() + static_cast<long>(random.Uniform(recovered.size()));
  (void)(random.OneIn(2) ? (*at)->Commit() : (*at)->Rollback());
  recovered.erase(at);
}

bool OracleDatabase::Open(std::function<void()> between_questions) {
  options = MakeOptions();
  Faults faults;
  for (const auto& [name, fault] : kFaults) faults.*fault = name == config.fault;
  // With it readers take another way through the filter, so some lives are without.
  if (!config.fault.empty() || seed % 3 != 0) {
    faults.between_questions = std::move(between_questions);
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  std::vector<std::string> names;
  (void)rocksdb::DB::ListColumnFamilies(options, path, &names);
  for (const std::string& name : FixedNames()) {
    families.emplace_back(name, options);
    const bool is_second = families.size() % 2 == 1 && families.size() > 2;  // "b", and so on
    families.back().options.enable_blob_files = config.blobs && is_second;
    families.back().options.min_blob_size = 40;
    families.back().options.enable_blob_garbage_collection = true;
    if (config.has_model) families.back().options.blob_garbage_collection_age_cutoff = 1;
  }
  for (const std::string& name : names) {
    if (name[0] == 't') families.emplace_back(name, options);
  }
  filter = *DatabaseFilter::Create({.directory = keys_path,
                                    .env = options.env,
                                    .faults = std::make_shared<const Faults>(faults)});
  rocksdb::DBOptions db_options(options);
  filter->Attach(&db_options, &families);
  if (const Status status = OpenBase(db_options, families); !status.ok()) {
    std::fprintf(stderr, "cannot open: %s\n", status.ToString().c_str());
    return false;
  }
  if (transactions != nullptr) {
    std::vector<rocksdb::Transaction*> prepared;
    transactions->GetAllPreparedTransactions(&prepared);
    counts.recovered += prepared.size();
    for (rocksdb::Transaction* transaction : prepared) recovered.emplace_back(transaction);
  }
  ++counts.lives;
  return true;
}

void OracleDatabase::Close() {
  if (db == nullptr) return;
  while (!recovered.empty()) DecideRecovered();
  for (auto* handles : {&fixed, &temporary}) {
    for (ColumnFamilyHandle* handle : *handles) (void)db->DestroyColumnFamilyHandle(handle);
  }
  filter->Stop();
  // RocksDB's assertions do not bear transactions that are prepared and not decided; and a database
  // that is closed while it recovers from a fault by itself may come to no end (RocksDB's issue
  // 11440).
  if (config.HasUndecided() || config.disk_fails) {
    (void)db.release();
    (void)env.release();
  }
  db.reset();
}

}  // namespace tamis::lsm
